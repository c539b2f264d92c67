"""What an agent grants to those below it: as much as its own policy lets it delegate, and no more.

Owns the check and the counting of a decision; what a policy lets an agent delegate is for
`delegation` to say, and how often it did is the `tally`'s.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from msgspec import Struct

from ..approvals.errors import MayNotDecide
from ..approvals.model import Agent, Approval, Approve, ForSession
from ..approvals.policies import Policies
from ..errors import BridleError, words_of
from ..policy.policy import Policy
from ..policy.verdicts import Allowed, Call
from ..session.ground import ground_of
from .means import Means
from .record import SessionRecord
from .tally import Counting, Tally

INSTEAD = "escalate it, and whoever is above decides"

_log = logging.getLogger(__name__)


class Grants:
    """For all sessions of a supervisor."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._tally = Tally(means.approvals)

    async def refusal(self, granter: SessionRecord, child: SessionRecord, call: Call) -> str:
        """Why it may not grant this call; "" if it may."""
        async with self._tally.of(granter.id) as counting:
            found = await self._may(granter, child, call, counting.counts)
        return found.because if isinstance(found, Refused) else ""

    @asynccontextmanager
    async def held(
        self,
        granter: SessionRecord,
        child: SessionRecord,
        call: Call,
        approval: Approval,
        choice: Approve,
    ) -> AsyncIterator[str]:
        """While it decides: gives the rule that entitles it. Where that is limited, it is counted;
        what fails gives it back. Raises MayNotDecide where it may not. Not to be cancelled."""
        by, what = Agent(granter.id), f"approval {approval.id}"
        if approval.is_cut:
            raise MayNotDecide(by, what, f"not all of it can be seen any more; {INSTEAD}")
        async with self._tally.of(granter.id) as counting:
            found = await self._may(granter, child, call, counting.counts)
            if isinstance(found, Refused):
                raise MayNotDecide(by, what, f"{found.because}; {INSTEAD}")
            if not found.is_limited:
                yield found.rule
                return
            if isinstance(choice.remember, ForSession):
                raise MayNotDecide(by, what, "what is limited can't be granted for good: say once")
            await counting.take(found.key, approval.id)
            is_spent = False
            try:
                yield found.rule
                is_spent = True
            finally:
                await _settle(counting, is_spent=is_spent)

    async def _may(
        self,
        granter: SessionRecord,
        child: SessionRecord,
        call: Call,
        used: Mapping[str, int],  # noqa: ARG002
    ) -> Granted | Refused:
        policies = Policies(self._means.journal, self._means.owners, self._means.now)
        policy = Policy.read(await policies.text(granter.policy), granter.guarded)
        also = tuple(map(str, granter.spec.get("add_dirs", ())))
        ground = ground_of(granter.folder, also=also, guarded=policy.files, **granter.homes)  # type: ignore[arg-type]
        verdict = policy.on(ground).judge(call)
        if isinstance(verdict, Allowed):
            return Granted(verdict.rule, verdict.rule, False)
        return Refused(verdict.because)


class Granted(Struct, frozen=True):
    rule: str
    key: str
    is_limited: bool


class Refused(Struct, frozen=True):
    because: str


async def _settle(counting: Counting, *, is_spent: bool) -> None:
    try:
        await counting.settle(is_spent=is_spent)
    except BridleError as error:  # it is looked at again before the next one is counted
        _log.warning("what was granted is not counted yet: %s", words_of(error))
