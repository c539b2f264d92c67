"""Which policy a session is under: applied by a person's recorded act, and pinned by its hash.

Owns the texts, by digest, and the events that apply them; does not read files and does not judge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from hashlib import sha256

import msgspec
from msgspec import Struct

from ..errors import WrongRevision
from ..journal import Durability, Event, Journal, Projection
from ..journal.owner import Owners
from .errors import ApprovalError
from .events import sealed
from .model import Person
from .standing import only_a_person

POLICIES = "policies"
POLICY_APPLIED = "policy.applied"
SESSION_POLICY = "session-policy"


class StoredPolicy(Struct, frozen=True):
    """A policy's text, where it came from, and who was the first to apply it."""

    text: str
    source: str
    by: Person
    at: float


class PolicyApplied(Struct, frozen=True):
    """`files` are those that it was read from, and that the agent must not change."""

    digest: str
    source: str
    by: Person
    at: float
    files: tuple[str, ...] = ()


_APPLIED = msgspec.json.Decoder(PolicyApplied)


def policy_digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


class Policies:
    """The policies that were applied to the sessions of a journal."""

    def __init__(self, journal: Journal, owners: Owners, now: Callable[[], float]) -> None:
        self._texts = journal.bucket(POLICIES, StoredPolicy)
        self._owners = owners
        self._now = now
        self._sessions: Projection[PolicyApplied | None] = Projection(
            journal.log,
            journal.records,
            SESSION_POLICY,
            PolicyApplied | None,  # type: ignore[arg-type]
            start=lambda _: None,
            fold=_fold,
        )

    async def apply(
        self, session: str, text: str, *, source: str, by: Person, files: Sequence[str] = ()
    ) -> PolicyApplied:
        """From now on the session is under this text. The text is kept before it is referred to."""
        only_a_person(by, f"under which policy session {session} is")
        digest, now = policy_digest(text), self._now()
        try:
            await self._texts.create(digest, StoredPolicy(text, source, by, now), Durability.POWER)
        except WrongRevision:
            await self.text(digest)  # it is there, and what it should be
        applied = PolicyApplied(digest, source, by, now, tuple(files))
        event = sealed(POLICY_APPLIED, applied, now)
        await asyncio.shield(self._owners.of(session).append([event], Durability.POWER))
        return applied

    async def applied(self, session: str) -> PolicyApplied | None:
        """The one that is in force."""
        return (await self._sessions.get(session)).state

    async def text(self, digest: str) -> str:
        """The policy's text, checked against its digest."""
        found = await self._texts.get(digest)
        if found is None or policy_digest(found.value.text) != digest:
            problem = "is not there" if found is None else "was changed since it was applied"
            raise ApprovalError(f"the policy {digest[:12]}… {problem}")
        return found.value.text

    async def list(self) -> list[StoredPolicy]:
        return [document.value for document in await self._texts.list()]


def _fold(applied: PolicyApplied | None, event: Event) -> PolicyApplied | None:
    return _APPLIED.decode(event.body) if event.kind == POLICY_APPLIED else applied
