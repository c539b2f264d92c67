"""What an agent grants to those below it: as much as its own policy lets it delegate, and no more.

Owns the check and the counting of a decision; what a policy lets an agent delegate is for
`delegation` to say, and how often it did is the `tally`'s.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from ..approvals.errors import MayNotDecide
from ..approvals.model import Agent, Approval, Approve, ForSession
from ..errors import BridleError, words_of
from ..policy.delegation import Granted, Refused
from ..policy.verdicts import Call
from .births import strictest
from .charge import Charge
from .delegations import delegation_of, pinned, policy_under
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

    async def refusal(self, granter: Charge, child: SessionRecord, call: Call) -> str:
        """Why it may not grant this call; "" if it may."""
        async with self._tally.of(granter.id) as counting:
            found = await self._may(granter, child, call, counting.counts)
        return found.because if isinstance(found, Refused) else ""

    @asynccontextmanager
    async def held(
        self,
        granter: Charge,
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
            if isinstance(choice.remember, ForSession):
                await self._check_for_good(granter, child, found, what)
            if not found.is_limited:
                yield found.rule
                return
            await counting.take(found.key, approval.id)
            is_spent = False
            try:
                yield found.rule
                is_spent = True
            finally:
                await _settle(counting, is_spent=is_spent)

    async def _check_for_good(
        self, granter: Charge, child: SessionRecord, found: Granted, what: str
    ) -> None:
        """What an agent has remembered must have the agent's own rights above it, as they are."""
        by = Agent(granter.id)
        if found.is_limited:
            raise MayNotDecide(by, what, "what is limited can't be granted for good: say once")
        bounds = [one.policy for one in child.ceilings if one.session == granter.id]
        if not bounds:
            reason = "a person has made that session, so only a person may give it a rule"
            raise MayNotDecide(by, what, reason)
        policy = await policy_under(self._means, granter.record)
        if policy.with_preset(strictest(granter, policy.preset)).digest not in bounds:
            reason = "its own rights are others than when it made that session: say once"
            raise MayNotDecide(by, what, reason)

    async def _may(
        self, granter: Charge, child: SessionRecord, call: Call, used: Mapping[str, int]
    ) -> Granted | Refused:
        policy = await pinned(self._means, granter.record.policy, granter.record.guarded)
        preset = strictest(granter, policy.preset)
        delegation = await delegation_of(self._means, granter.record, preset, child)
        age = self._means.now() - granter.record.created_at
        return delegation.grant(call, folder=child.folder, age=age, used=used)


async def _settle(counting: Counting, *, is_spent: bool) -> None:
    try:
        await counting.settle(is_spent=is_spent)
    except BridleError as error:  # it is looked at again before the next one is counted
        _log.warning("what was granted is not counted yet: %s", words_of(error))
