"""Which policy a session is under: applied by a recorded act, and pinned by its hash.

The act is a person's; an agent's it can be once, when it makes a session below itself. Owns the
texts, by digest, and the events that apply them; does not read files and does not judge.
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
from .errors import ApprovalError, MayNotDecide
from .events import sealed
from .model import Agent, Person
from .standing import only_a_person

POLICIES = "policies"
POLICY_APPLIED = "policy.applied"
SESSION_POLICY = "session-policy"
#: So many beginnings of a birth are looked at; the next event is always that it was made.
MOST_BIRTHS = 100


class StoredPolicy(Struct, frozen=True):
    """A policy's text, where it came from, and who was the first to apply it."""

    text: str
    source: str
    by: Person | Agent
    at: float


class PolicyApplied(Struct, frozen=True):
    """`files` are those that it was read from, and that the agent must not change."""

    digest: str
    source: str
    by: Person | Agent
    at: float
    files: tuple[str, ...] = ()


_APPLIED = msgspec.json.Decoder(PolicyApplied)


def policy_digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


class Policies:
    """The policies that were applied to the sessions of a journal."""

    def __init__(self, journal: Journal, owners: Owners, now: Callable[[], float]) -> None:
        self._texts = journal.bucket(POLICIES, StoredPolicy)
        self._log = journal.log
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
        self,
        session: str,
        text: str,
        *,
        source: str,
        by: Person | Agent,
        files: Sequence[str] = (),
        lineage: Sequence[str] = (),
    ) -> PolicyApplied:
        """From now on the session is under this text. The text is kept before it is referred to.

        An agent may do so for a session below itself (`lineage` are its ancestors) that is just
        being made.
        """
        if isinstance(by, Agent):
            await self._check_birth(session, by, lineage)
        else:
            only_a_person(by, f"under which policy session {session} is")
        digest = await self.keep(text, source=source, by=by)
        now = self._now()
        applied = PolicyApplied(digest, source, by, now, tuple(files))
        event = sealed(POLICY_APPLIED, applied, now)
        await asyncio.shield(self._owners.of(session).append([event], Durability.POWER))
        return applied

    async def keep(self, text: str, *, source: str, by: Person | Agent) -> str:
        """Have a policy's text; gives its digest. It is in force nowhere by that."""
        digest = policy_digest(text)
        kept = StoredPolicy(text, source, by, self._now())
        try:
            await self._texts.create(digest, kept, Durability.POWER)
        except WrongRevision:
            await self.text(digest)  # it is there, and what it should be
        return digest

    async def _check_birth(self, session: str, by: Agent, lineage: Sequence[str]) -> None:
        what = f"under which policy session {session} is"
        if by.session == session or by.session not in lineage:
            raise MayNotDecide(by, what, "it is not below this agent")
        # A birth may have been cut short right here, and be tried again.
        for event in await self._log.read(session, 0, MOST_BIRTHS):
            if event.kind != POLICY_APPLIED or _APPLIED.decode(event.body).by != by:
                raise MayNotDecide(by, what, "only a person may change it")

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
