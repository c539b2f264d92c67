"""How often an agent has granted what it may grant only so often.

Owns the counts, which outlive us: one is taken before a decision is stored, and given back if there
was none. So a crash may cost an agent one grant until it is looked at again, and never gives it one
more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct
from msgspec.structs import replace

from ..approvals import Approvals
from ..approvals.errors import UnknownApproval
from ..approvals.model import Agent, Reject
from ..journal import Durability

BUCKET = "grants"


class Used(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """By the key of each entry that has a limit; `held` is the approval for which one was taken
    last, while it is not known whether it was decided so."""

    counts: dict[str, int] = {}
    held: tuple[str, str] | None = None

    def took(self, key: str, approval: str) -> Used:
        counts = {**self.counts, key: self.counts.get(key, 0) + 1}
        return Used(counts=counts, held=(key, approval))

    def given_back(self) -> Used:
        if self.held is None:
            return self
        key, _ = self.held
        return Used(counts={**self.counts, key: self.counts[key] - 1})

    def spent(self) -> Used:
        return replace(self, held=None)


class Tally:
    """For all agents of a home."""

    def __init__(self, approvals: Approvals) -> None:
        self._approvals = approvals
        self._bucket = approvals.journal.bucket(BUCKET, Used)
        self._locks: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def of(self, agent: str) -> AsyncIterator[Counting]:
        """What an agent has used: nobody else counts for it meanwhile."""
        lock = self._locks.setdefault(agent, asyncio.Lock())
        async with lock:
            found = await self._bucket.get(agent)
            used = found.value if found else Used()
            counting = Counting(self, agent, used)
            if used.held:  # we ended in the middle of it
                is_spent = await self._was_granted(used.held[1], agent)
                await counting.settle(is_spent=is_spent)
            yield counting

    async def put(self, agent: str, used: Used) -> None:
        await self._bucket.change(agent, lambda _: used, Durability.POWER)

    async def _was_granted(self, approval_id: str, agent: str) -> bool:
        """What can't be found is taken for granted."""
        try:
            decision = (await self._approvals.get(approval_id)).decision
        except UnknownApproval:
            return True
        is_theirs = decision is not None and decision.by == Agent(agent)
        return is_theirs and not (decision and isinstance(decision.choice, Reject))


class Counting:
    """One agent's counts, while they are its alone to change."""

    def __init__(self, tally: Tally, agent: str, used: Used) -> None:
        self._tally = tally
        self._agent = agent
        self._used = used

    @property
    def counts(self) -> dict[str, int]:
        return self._used.counts

    async def take(self, key: str, approval: str) -> None:
        await self._change(self._used.took(key, approval))

    async def settle(self, *, is_spent: bool) -> None:
        await self._change(self._used.spent() if is_spent else self._used.given_back())

    async def _change(self, used: Used) -> None:
        await self._tally.put(self._agent, used)
        self._used = used
