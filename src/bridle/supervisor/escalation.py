"""Who is asked about what a session wants to do: its ancestors one after the other, then people.

Owns the steps, and when the next one is due: a time that is up, an ancestor that is gone, or one
that passes it on. One timer for all. What an ancestor may grant is for `granting` to say; whatever
fails on the way goes to people. They may decide at any step.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from ..approvals.clock import Deadlines
from ..approvals.errors import AlreadyDecided, MayNotDecide, UnknownApproval
from ..approvals.model import (
    Agent,
    Approval,
    ApprovalRequest,
    Approve,
    Choice,
    PassedOver,
    Step,
)
from ..approvals.wording import duration
from ..errors import words_of
from ..policy.verdicts import Call
from ..process.stop import uncancelled
from .charge import Charge
from .granting import Grants
from .means import Means
from .record import SessionRecord
from .sessions import Sessions
from .states import is_live

#: So much is kept of what an agent says when it passes something on.
MOST_WORDS = 2_000
#: What can't be written down is tried again after so many seconds.
RETRY_SECONDS = 1.0

_log = logging.getLogger(__name__)


class Escalation:
    """For all sessions of a supervisor. `told` is called when one has changed."""

    def __init__(self, means: Means, sessions: Sessions) -> None:
        self._means = means
        self._sessions = sessions
        self._approvals = means.approvals
        self._clock = means.approvals.clock
        self._grants = Grants(means)
        self._deadlines = Deadlines(self._clock, self._is_due)
        #: What is put to an ancestor now, by its id, and by the sessions that it depends on.
        self._put: dict[str, Approval] = {}
        self._about: dict[str, set[str]] = {}
        self._passing: dict[str, asyncio.Task[None]] = {}
        self._following: asyncio.Task[None] | None = None
        means.approvals.address = self.address

    # --- from the start to the end

    def begin(self) -> None:
        """Go on with what was put to somebody before: what came due meanwhile goes on at once."""
        self._following = asyncio.ensure_future(self._follow())

    async def aclose(self) -> None:
        self._put.clear()
        self._about.clear()
        await self._deadlines.aclose()
        following = [self._following] if self._following else []
        tasks = [*following, *self._passing.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _follow(self) -> None:
        async for news in self._approvals.watch():
            for approval in news:
                try:
                    self._heard(approval)
                except Exception:  # noqa: BLE001 - one approval's mistake must not stop the others
                    _log.exception("approval %s can't be followed", approval.id)

    def _heard(self, approval: Approval) -> None:
        self._forget(approval.id)
        if approval.status != "pending" or not approval.asked:
            return
        self._put[approval.id] = approval
        for session in (approval.session, approval.asked):
            self._about.setdefault(session, set()).add(approval.id)
        until = approval.steps[-1].until
        if until is not None:
            self._deadlines.set(approval.id, until)
        self._look(approval)

    def _forget(self, approval_id: str) -> None:
        before = self._put.pop(approval_id, None)
        self._deadlines.drop(approval_id)
        for session in (before.session, before.asked) if before else ():
            self._about[session].discard(approval_id)
            if not self._about[session]:
                del self._about[session]

    # --- whom it is put to

    async def address(self, request: ApprovalRequest) -> tuple[Step, ...]:
        """Whom a new request is put to; nothing is people."""
        try:
            child = self._sessions.get(request.session).record
            is_for_people = request.guard or request.kind == "elicitation"
            if is_for_people or not (child.lineage and child.asks_above and self._after):
                return ()
            return (await self._next(request, child),)
        except Exception as error:  # noqa: BLE001 - whatever it is, people can be asked
            _log.exception("whom session %s asks can't be told", request.session)
            why = f"who is to be asked can't be told: {words_of(error)}"[:MOST_WORDS]
            return (Step(at=self._clock.now(), why=why),)

    async def _next(
        self, request: ApprovalRequest, child: SessionRecord, why: str = "", by: str = ""
    ) -> Step:
        """The nearest ancestor that was not tried yet and may grant it, else people."""
        tried = {step.to for step in request.steps}
        tried |= {passed.session for step in request.steps for passed in step.over}
        over: list[PassedOver] = []
        for name in reversed(child.lineage if self._after else ()):
            if name in tried:
                continue
            reason = await self._unfit(name, child, request)
            now = self._clock.now()
            if not reason:
                until = now + self._after
                return Step(to=name, at=now, until=until, why=why, by=by, over=tuple(over))
            over.append(PassedOver(name, reason[:MOST_WORDS]))
        return Step(at=self._clock.now(), why=why, by=by, over=tuple(over))

    async def _unfit(self, name: str, child: SessionRecord, request: ApprovalRequest) -> str:
        """Why this ancestor is not asked; "" if it is."""
        if name not in self._sessions:
            return "it was deleted"
        charge = self._sessions.get(name)
        if not _lives(charge):
            return "it has ended"
        if not charge.record.loopback and charge.record.external != "root":
            return "it has no tools to answer with"
        if request.kind != "tool":
            return ""
        try:
            return await self._grants.refusal(charge, child, _call(request, child))
        except Exception as error:  # noqa: BLE001 - what can't be read grants nothing
            _log.warning("what session %s may grant can't be told: %s", name, words_of(error))
            return f"what it may grant can't be told: {words_of(error)}"

    @property
    def _after(self) -> float:
        return self._means.escalate_after

    # --- when it goes on by itself

    def told(self, charge: Charge) -> None:
        """This session is another one than before: perhaps it has ended, or was handed over."""
        for approval_id in list(self._about.get(charge.id, ())):
            self._look(self._put[approval_id])

    def _look(self, approval: Approval) -> None:
        if why := self._gone(approval):
            self._pass_on(approval, why)

    def _gone(self, approval: Approval) -> str:
        """Why whom it is put to can't be asked any more; "" if it can."""
        if approval.session not in self._sessions:
            return ""  # it is being deleted, with all that it asks
        asked, child = approval.asked, self._sessions.get(approval.session)
        if asked not in self._sessions:
            return f"session {asked} was deleted"
        if not _lives(self._sessions.get(asked)):
            return f"session {asked} has ended"
        return "" if asked in child.record.lineage else f"session {asked} is no longer above it"

    def _is_due(self, approval_id: str) -> None:
        approval = self._put.get(approval_id)
        if approval:
            last = approval.steps[-1]
            given = round((last.until or last.at) - last.at, 3)
            slow = f"session {last.to} did not answer in {duration(given)}"
            self._pass_on(approval, self._gone(approval) or slow)

    def _pass_on(self, approval: Approval, why: str) -> None:
        if approval.id not in self._passing:
            task = asyncio.ensure_future(self._passed_on(approval, why))
            self._passing[approval.id] = task
            task.add_done_callback(lambda _: self._passing.pop(approval.id, None))

    async def _passed_on(self, approval: Approval, why: str) -> None:
        try:
            child = self._sessions.get(approval.session)
            if child.is_to_stop:
                return  # nobody need be asked any more
            whole = await self._approvals.get(approval.id)
            step = await self._next(whole, child.record, why)
            await self._approvals.escalate(approval.id, step, known=len(whole.steps))
        except AlreadyDecided:
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not stay where it is
            _log.warning("approval %s can't be passed on yet: %s", approval.id, words_of(error))
            if approval.id in self._put:
                self._deadlines.set(approval.id, self._clock.now() + RETRY_SECONDS)

    # --- what an agent does

    async def escalate(self, approval_id: str, by: Agent, why: str) -> Approval:
        """Have it put to the next. Done again it is what it was."""
        approval, child, _ = await self._open_to(approval_id, by)
        if approval.asked != by.session:
            return approval
        step = await self._next(approval, child, why[:MOST_WORDS], by.session)
        return await self._approvals.escalate(approval_id, step, known=len(approval.steps))

    async def respond(
        self, approval_id: str, choice: Choice, by: Agent, shown: str | None
    ) -> Approval:
        """Decide it, if what it may delegate reaches so far."""
        approval, child, granter = await self._open_to(approval_id, by)
        if not isinstance(choice, Approve):
            return await self._approvals.decide(approval_id, choice, by=by, shown=shown)

        async def work() -> Approval:
            call = _call(approval, child, choice.input)
            async with self._grants.held(granter, child, call, approval, choice) as rule:
                await self._open_to(approval_id, by)  # much may have happened meanwhile
                decide = self._approvals.decide
                return await decide(approval_id, choice, by=by, shown=shown, under=rule)

        # Else who is cancelled in the middle of it would have granted without being counted.
        return await uncancelled(work())

    async def _open_to(self, approval_id: str, by: Agent) -> tuple[Approval, SessionRecord, Charge]:
        """An approval that the agent may have a say in, with who asks and who decides. What is not
        below it looks to it as if it were not there."""
        approval = await self._approvals.get(approval_id)
        if approval.session not in self._sessions or by.session not in self._sessions:
            raise UnknownApproval(approval_id)
        child = self._sessions.get(approval.session).record
        granter = self._sessions.get(by.session)
        if by.session not in child.lineage:
            raise UnknownApproval(approval_id)
        if approval.status != "pending":
            raise AlreadyDecided(approval)
        what = f"approval {approval_id}"
        if not approval.was_put_to(by.session):
            raise MayNotDecide(by, what, "it was not put to this agent; others are asked")
        if not _lives(granter):
            raise MayNotDecide(by, what, "its session has ended")
        return approval, child, granter


def _lives(charge: Charge) -> bool:
    """Whether it may still answer: not if it is told to stop."""
    state = charge.record.state
    return is_live(state) and state != "stopping" and not charge.is_to_stop


def _call(
    request: ApprovalRequest, child: SessionRecord, given: dict[str, Any] | None = None
) -> Call:
    """The call that would be made. Its paths are those of the session that makes it."""
    where = request.cwd or child.folder
    return Call(request.tool, request.input if given is None else given, cwd=where)
