"""Policies that people keep under a name, and what a caller may give as one.

Owns who may change them, and how; the records are the supervisor's, whose agents may name one, too.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ..approvals import Person
from ..errors import InvalidPolicy, WrongRevision
from ..journal import Durability, Journal
from ..policy.presets import NAMES
from ..supervisor.kept_policies import BUCKET, NAME, KeptPolicy, kept_policy, parsed
from ..supervisor.policies import PolicyGiven
from .given import is_file, path_of
from .problems import Problem


class Kept(Struct, frozen=True, kw_only=True):
    """One of them, with its name, and with the revision that it has now."""

    name: str
    revision: int
    policy: KeptPolicy


class KeptPolicies:
    """The policies of a home, by name."""

    def __init__(self, journal: Journal, now: Callable[[], float]) -> None:
        self._journal = journal
        self._records = journal.bucket(BUCKET, KeptPolicy)
        self._now = now

    async def list(self) -> list[Kept]:
        found = await self._records.list()
        return [Kept(name=one.key, revision=one.revision, policy=one.value) for one in found]

    async def get(self, name: str) -> Kept:
        found = await self._records.get(name) if NAME.fullmatch(name) else None
        if found is None:
            raise unknown_policy(name)
        return Kept(name=name, revision=found.revision, policy=found.value)

    async def put(self, name: str, text: str, by: Person, revision: int | None) -> Kept:
        """Keep it, if it can be read: InvalidPolicy names the line. With a revision, only if it is
        still at that one (0: if there is none)."""
        check_name(name)
        parsed(name, text)
        kept = KeptPolicy(text=text, by=by, at=self._now())
        if revision is None:
            found = await self._records.change(name, lambda _: kept, Durability.POWER)
            return Kept(name=name, revision=found.revision, policy=kept)
        made = await self._records.put(name, kept, revision, Durability.POWER)
        return Kept(name=name, revision=made.revision, policy=kept)

    async def delete(self, name: str) -> None:
        """Sessions that are under what it said stay under that."""
        found = await self.get(name)
        try:
            await self._records.delete(name, found.revision, Durability.POWER)
        except WrongRevision:
            await self.delete(name)  # somebody has just put it

    async def given(self, text: str) -> PolicyGiven:
        """What a caller names: a preset, one that is kept, or a file."""
        if text in NAMES:
            return text
        path = path_of(text) if text.endswith((".toml", ".json")) else None
        if path:
            if not is_file(path):
                raise InvalidPolicy(text[:200], None, "there is no such file")
            return path
        kept = await kept_policy(self._journal, text)
        if kept is None:
            raise unknown_policy(text)
        return kept


def check_name(name: str) -> None:
    if name in NAMES:
        words, remedy = f"{name} is a preset.", "Give it another name."
        raise Problem(409, "name_taken", words, remedy, {"name": name})
    if not NAME.fullmatch(name) or name.endswith((".toml", ".json")):
        words = (
            "A policy's name has up to 100 letters, digits, - _ and . in it, begins with none of"
            " - and ., and does not end like a file's."
        )
        raise Problem(400, "invalid_name", words, "Give it another name.")


def unknown_policy(name: str) -> Problem:
    return Problem(
        404,
        "unknown_policy",
        f"There is no policy {name[:100]!r}.",
        f"Give a preset ({', '.join(NAMES)}), the name of one that is kept (GET /policies), or the"
        " absolute path of a .toml or .json file.",
    )
