"""Approvals: asked, waited for, decided once; by whom it may be, and seen only when stored.

The face of the package. Who may decide is for `standing` to say, the race for the end is the
`register`'s, records are the `shelf`'s, and what the agent is told is in `answer`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from ..errors import Asleep
from ..ids import new_token
from ..journal import Journal, NewEvent
from ..journal.owner import Owners
from ..policy.force import InForce
from .clock import Clock, SystemClock
from .errors import AlreadyDecided, ApprovalError, ApprovalsClosed, UnknownApproval
from .events import Delivered, OutcomeSeen
from .fold import digest_of, directory_of
from .model import (
    Approval,
    ApprovalRequest,
    Cancelled,
    Cause,
    Choice,
    Decided,
    Decider,
    Outcome,
    Requested,
    Status,
    Step,
)
from .pending import Pending
from .register import Register
from .remember import Remembered
from .shelf import Shelf
from .standing import (
    RuleCheck,
    check_choice,
    check_input,
    check_rule,
    check_standing,
    is_rule,
)
from .watch import ApprovalWatch

#: Says whom a request is put to first. People may decide it in any case.
Address: TypeAlias = Callable[[ApprovalRequest], Awaitable[tuple[Step, ...]]]


@asynccontextmanager
async def open_approvals(
    journal: Journal,
    *,
    clock: Clock | None = None,
    owners: Owners | None = None,
    check: RuleCheck | None = is_rule,
    expires_in: float | None = None,
    is_asleep: bool = False,
) -> AsyncIterator[Approvals]:
    """The approvals of a journal, with those that were pending when it was last closed.

    `check` raises for what is no rule; with None nothing can be remembered. `owners` are those
    through which others write to the sessions' streams. `expires_in` are seconds; None is never.
    If they are asleep, they can be looked at, and nothing becomes of them.
    """
    approvals = Approvals(
        journal, clock or SystemClock(), owners or Owners(journal.log), check, expires_in
    )
    try:
        await (approvals.look() if is_asleep else approvals.start())
        yield approvals
    finally:
        await approvals.aclose()


class Approvals:
    """Belongs to the journal's event loop. Made by `open_approvals`."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        owners: Owners,
        check: RuleCheck | None,
        expires_in: float | None,
    ) -> None:
        self._check_of_rules = check
        self._expires_in = expires_in
        self.journal = journal
        #: The policies of the sessions that have a desk here.
        self.policies: dict[str, InForce] = {}
        #: Whom what a session asks is put to, where somebody knows its ancestors.
        self.address: Address = _as_given
        self.clock = clock
        self.owners = owners
        self.remembered = Remembered(journal, owners, clock.now)
        self._shelf = Shelf(journal, self.remembered.keep)
        self._register = Register(owners, self._shelf, self.remembered, clock)
        self._is_closed = False
        self._is_asleep = False

    async def look(self) -> None:
        """Find what is not finished, and let it be."""
        self._is_asleep = self.remembered.is_asleep = True
        for approval in await self._shelf.load():
            self._register.found(approval)

    async def start(self) -> None:
        """Find what is not finished, as the log has it. What came due meanwhile has expired."""
        for approval in await self._shelf.load():
            self._register.found(approval)
        self._register.watch_times()
        pending = self._register.pending.values()
        due = [asyncio.shield(p.over) for p in pending if self._register.is_due(p)]
        await asyncio.gather(*due)

    async def aclose(self) -> None:
        """Let go: what is pending stays so, for whoever opens them again."""
        self._is_closed = True
        await self._register.aclose()
        for pending in self._register.pending.values():
            pending.fail(ApprovalsClosed("the approvals are closed"))
        await self._shelf.saved()
        self._register.watches.close()

    # --- asking

    async def open(self, request: ApprovalRequest, *, expires_in: float | None = None) -> Approval:
        """Ask. The same call of the same launch is asked once: asked again it is what it was."""
        found = await self._asked(request, expires_in)
        if isinstance(found, Approval):
            return await self._shelf.whole(found)
        await asyncio.shield(found.stored)
        return await self.get(found.approval.id)

    async def ask(
        self,
        request: ApprovalRequest,
        *,
        expires_in: float | None = None,
        left: Callable[[str], None] | None = None,
        stopped: Callable[[], Cancelled | None] = lambda: None,
    ) -> Approval:
        """Ask, and wait for what the agent is to be told.

        Cancelled, it withdraws what it asked, at once: nobody is left to be told. (Or it does what
        `left` does with the id.) `stopped` says whether it was stopped while we looked whether it
        had been asked before.
        """
        found = await self._asked(request, expires_in)
        if isinstance(found, Approval):
            return await self._whole(found)
        if stop := stopped():
            self._register.cancel(found, stop)
        found.askers += 1
        try:
            await asyncio.shield(found.stored)
            return await asyncio.shield(found.told)
        except asyncio.CancelledError:
            if found.askers == 1:
                (left or self.withdraw)(found.approval.id)
            raise
        finally:
            found.askers -= 1

    async def wait(self, approval_id: str) -> Approval:
        """Until it has ended."""
        pending = self._register.pending.get(approval_id)
        if pending and pending.is_visible:
            return await asyncio.shield(pending.over)
        return await self.get(approval_id)

    async def _asked(
        self, request: ApprovalRequest, expires_in: float | None
    ) -> Pending | Approval:
        """The one that is there, or else a new one, on its way to the log."""
        digest = digest_of(request.kind, request.tool, request.input, directory_of(request))
        number = 1
        # Before it is looked for: nothing may come between that and the asking.
        request = replace(request, steps=await self.address(request))
        while True:
            approval_id = _id_of(request, digest, number)
            stored = await self._shelf.get(approval_id) if request.tool_use_id else None
            self._check_open()
            pending = self._register.pending.get(approval_id)
            found = pending.as_told if pending else stored
            if found is None:
                limit = self._expires_in if expires_in is None else expires_in
                return self._register.add(self._requested(request, approval_id, digest, limit))
            if not _is_withdrawn(found) and not self._is_used(found):
                return pending or found
            number += 1  # that one is over, and now it is asked anew

    def _is_used(self, approval: Approval) -> bool:
        """Whether it has let a call run of which we do not hear: its process is not ours, so that
        the only launch of the session has the session's id."""
        if approval.status != "allowed" or approval.launch != approval.session:
            return False
        return approval.delivered is not None or self._register.is_noting(approval.id)

    def _requested(
        self, request: ApprovalRequest, approval_id: str, digest: str, limit: float | None
    ) -> Requested:
        now = self.clock.now()
        facts = {name: getattr(request, name) for name in ApprovalRequest.__struct_fields__}
        expires = None if limit is None else now + limit
        return Requested(**facts, id=approval_id, digest=digest, created=now, expires=expires)

    # --- ending

    async def decide(
        self,
        approval_id: str,
        choice: Choice,
        *,
        by: Decider,
        shown: str | None = None,
        under: str = "",
    ) -> Approval:
        """Decide it, if nobody has: AlreadyDecided says who was first.

        `by` is who it is by the pipe or the token that they came with, never by what they say.
        `shown` is the digest of what they had before them, `under` the rule that entitles them,
        where they are no person. A yes that can't be stored leaves it pending as before; a no holds
        all the same.
        """
        pending = await self._free(approval_id)
        self._check(pending.approval, choice, by, shown)
        decided = Decided(by, choice, self.clock.now(), shown or "", under)
        return await self._register.decide(pending, decided)

    def _check(self, approval: Approval, choice: Choice, by: Decider, shown: str | None) -> None:
        check_standing(by, approval, choice)
        check_choice(approval, choice, shown)
        policy = self.policies.get(approval.session)
        check_input(by, approval, choice, policy)
        check_rule(approval, choice, self._check_of_rules, policy)

    async def cancel(self, approval_id: str, why: str = "") -> Approval:
        """No longer ask it; AlreadyDecided if it has ended."""
        pending = await self._free(approval_id)
        self._register.cancel(pending, Cancelled("cancelled", self.clock.now(), why))
        return await asyncio.shield(pending.over)

    async def expire(self, approval_id: str) -> Approval:
        """Let its time be up; AlreadyDecided if it has ended."""
        pending = await self._free(approval_id)
        self._register.expire(pending)
        return await asyncio.shield(pending.over)

    async def escalate(self, approval_id: str, step: Step, *, known: int) -> Approval:
        """Put it to whom the step says, if it has so many steps until now: else somebody else has
        passed it on, and it is left there. AlreadyDecided if it has ended."""
        pending = await self._free(approval_id)
        if len(pending.approval.steps) != known:
            return pending.approval
        return await self._register.escalate(pending, step)

    async def _free(self, approval_id: str) -> Pending:
        """One that is pending and that nobody else is about to end."""
        while True:
            self._check_open()
            pending = self._register.pending.get(approval_id)
            if pending is None or not pending.is_visible:
                raise AlreadyDecided(await self.get(approval_id))
            if pending.claim:
                await asyncio.wait([pending.claim])
            elif pending.ending:  # the log could not be told
                raise AlreadyDecided(pending.as_told)
            elif self._register.is_due(pending):
                self._register.expire(pending)
            else:
                return pending

    def withdraw(self, approval_id: str, cause: Cause = "withdrawn", words: str = "") -> None:
        """The agent no longer asks. Logged at once; a decision that is there has no effect."""
        if not self._is_writing:
            return
        pending = self._register.pending.get(approval_id)
        if pending:
            self._register.cancel(pending, Cancelled(cause, self.clock.now(), words))
        else:
            self.outcome(approval_id, Outcome("withdrawn", self.clock.now(), words))

    def delivered(self, approval_id: str) -> None:
        """The answer was written to the agent."""
        if self._is_writing:
            self._register.note(Delivered(approval_id, self.clock.now()))

    def outcome(self, approval_id: str, outcome: Outcome) -> None:
        """What became of it."""
        if self._is_writing:
            self._register.note(OutcomeSeen(approval_id, outcome))

    def store(self, session: str, events: Sequence[NewEvent]) -> asyncio.Future[None]:
        """Append other events of the session's, in order with those of its approvals."""
        self._check_open()
        return self._register.store(session, events)

    def passed(self, session: str, seq: int) -> None:
        """All of the session's events up to this one were seen: the next start need not read them
        again."""
        if self._is_writing:
            self._shelf.passed(session, seq)

    async def forget(self, session: str) -> None:
        """Of a session whose stream was deleted."""
        if self._is_asleep:
            raise Asleep
        await self._shelf.forget(session)

    # --- looking

    async def get(self, approval_id: str) -> Approval:
        """All of it, with its whole input."""
        return await self._shelf.whole(await self._view(approval_id))

    def watch(self) -> ApprovalWatch:
        """Those that are not finished, then each change."""
        self._check_open()
        return self._register.watches.open(self._register.visible())

    def unfinished(self, session: str, launch: str) -> list[Approval]:
        """Of a launch: those that wait, and those of which more is to be heard. For its desk: also
        those that are not stored yet, which nobody else may see."""
        return self._register.of_launch(session, launch)

    def of_call(self, session: str, launch: str, tool_use_id: str) -> str | None:
        """The id of a call's approval, while that is not finished."""
        return self._register.of_call(session, launch, tool_use_id)

    async def list(
        self, *, status: Status | None = None, session: str | None = None
    ) -> list[Approval]:
        """The oldest first; large inputs are cut."""

        def fits(approval: Approval) -> bool:
            return (status is None or approval.status == status) and (
                session is None or approval.session == session
            )

        # None that is pending is anywhere else than here.
        stored = [] if status == "pending" else await self._shelf.all(fits)
        found = {approval.id: approval for approval in (*stored, *self._register.visible())}
        return sorted(filter(fits, found.values()), key=_age)

    # --- the rest

    async def _view(self, approval_id: str) -> Approval:
        pending = self._register.pending.get(approval_id)
        if pending and pending.is_visible:
            return pending.approval
        ended = self._register.unfinished.get(approval_id)
        found = ended or await self._shelf.get(approval_id)
        if found is None:
            raise UnknownApproval(approval_id)
        return found

    async def _whole(self, approval: Approval) -> Approval:
        """Half of what somebody has decided is something else."""
        whole = await self._shelf.whole(approval)
        if whole.is_cut:
            raise ApprovalError(f"approval {approval.id} is decided, and the log has lost how")
        return whole

    @property
    def _is_writing(self) -> bool:
        return not self._is_closed and not self._is_asleep

    def _check_open(self) -> None:
        if self._is_asleep:
            raise Asleep
        if self._is_closed:
            raise ApprovalsClosed("the approvals are closed")


async def _as_given(request: ApprovalRequest) -> tuple[Step, ...]:
    return request.steps


def _id_of(request: ApprovalRequest, digest: str, number: int) -> str:
    """The same for the same call, so that after a restart it is found by being asked again."""
    if request.tool_use_id is None:
        return new_token(10)
    call = [request.session, request.launch, request.tool_use_id, digest, number]
    return sha256(msgspec.json.encode(call)).hexdigest()[:20]


def _is_withdrawn(approval: Approval) -> bool:
    return isinstance(approval.ending, Cancelled) and approval.ending.cause == "withdrawn"


def _age(approval: Approval) -> tuple[float, str, int]:
    return approval.created, approval.session, approval.requested_seq
