"""Sessions whose process is not ours: what they ask, and when it is no longer asked.

Owns their gates, one for each, and who waits for an answer: a caller that goes away has some time
to come back and ask the same again, for its connection may be all that has failed. They are born as
others are (`births`); who calls for one is known by a token, which is the server's.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct, UnsetType
from msgspec.structs import replace

from ..approvals.desk import Desk
from ..approvals.errors import ApprovalsClosed
from ..approvals.fold import digest_of
from ..errors import NotPossible
from ..policy.verdicts import Denied
from ..protocol.control import CanUseTool
from ..protocol.permissions import Allow, Decision, Deny
from ..session.gate import Gate
from .charge import Charge
from .making import gate_of
from .means import Means
from .sessions import Sessions
from .states import is_live

#: How long who asks may be away before the question is withdrawn.
PATIENCE = 30.0
#: So many questions of one may wait at a time: people have to read them.
MOST_QUESTIONS = 64


class _Seat(Struct):
    gate: Gate
    desk: Desk


class Outside:
    """For all such sessions of a supervisor. Their only launch has the session's own id."""

    def __init__(self, means: Means, sessions: Sessions) -> None:
        self._means = means
        self._sessions = sessions
        self._seats: dict[str, _Seat] = {}
        self._seating = asyncio.Lock()
        self._questions: dict[tuple[str, str, str], _Question] = {}
        #: What nobody has asked again since we were opened, by the approvals' ids.
        self._unclaimed: dict[str, asyncio.TimerHandle] = {}
        self._is_held = False

    async def begin(self) -> None:
        """Who asked before a restart may ask again; of one that was stopped then, all is over."""
        for charge in self._sessions:
            if not charge.record.external:
                continue
            for approval in await self._means.approvals.list(status="pending", session=charge.id):
                if is_live(charge.record.state):
                    self._wait_for(approval.id)
                else:
                    self._means.approvals.withdraw(approval.id, "process ended", "it was stopped")

    def _wait_for(self, approval: str) -> None:
        def give_up() -> None:
            self._unclaimed.pop(approval, None)
            self._means.approvals.withdraw(approval, words="nobody asks it any more")

        loop = asyncio.get_running_loop()
        self._unclaimed[approval] = loop.call_later(PATIENCE, give_up)

    async def ask(
        self, session: str, request: CanUseTool, *, patience: float = PATIENCE
    ) -> Decision:
        """May it run? The same call asked again is the same question until it is allowed: that
        is for one call, and is told to whoever has asked last.

        Cancelled, the caller has gone away: after `patience` seconds the question is withdrawn,
        unless somebody asks it again by then.
        """
        charge = self._sessions.get(session)
        seat = await self._seat(charge)
        self._check(charge)  # now: it may have been stopped meanwhile
        if paused := charge.record.facts.pauses:
            return await self._denied(seat, request, f"its session is paused: {', '.join(paused)}")
        self._claim(charge.id, request)
        decision = await self._question(charge.id, seat, request, patience).answer()
        if decision is None:
            return Deny("Bridle denied this: the same call was asked about again meanwhile")
        seat.gate.answered(request, decision)
        seat.gate.forget(request.tool_use_id or "")
        return _with_input(decision, request)

    def _check(self, charge: Charge) -> None:
        record = charge.record
        if not record.external:
            raise NotPossible("ask", record.state, "its own process asks for it", charge.id)
        if not is_live(record.state) or charge.is_to_stop:
            hint = "make another one with `bridle mcp token --permit`"
            raise NotPossible("ask", record.state, hint, charge.id)

    async def _seat(self, charge: Charge) -> _Seat:
        self._check(charge)
        async with self._seating:
            if charge.id not in self._seats:
                made = await gate_of(self._means, charge.record, charge.id)
                self._seats[charge.id] = _Seat(*made)
            return self._seats[charge.id]

    def _question(
        self, session: str, seat: _Seat, request: CanUseTool, patience: float
    ) -> _Question:
        """The one that is asked already, or a new one."""
        called, tool = request.tool_use_id or "", request.tool_name
        key = session, called, digest_of("tool", tool, request.input)
        if key in self._questions:
            return self._questions[key]
        if sum(asker == session for asker, _, _ in self._questions) >= MOST_QUESTIONS:
            hint = f"{MOST_QUESTIONS} of its questions wait already"
            raise NotPossible("ask", "awaiting approval", hint, session)

        def forget(question: _Question) -> None:
            if self._questions.get(key) is question:
                del self._questions[key]

        made = _Question(self._asked(seat, request), patience, forget)
        if self._is_held:
            made.hold()
        self._questions[key] = made
        return made

    async def _asked(self, seat: _Seat, request: CanUseTool) -> Decision:
        given = seat.gate.question(request)
        return await given if inspect.isawaitable(given) else given

    async def _denied(self, seat: _Seat, request: CanUseTool, because: str) -> Deny:
        seat.desk.judged(request, Denied(rule="", because=because))
        return Deny(f"Bridle denied this: {because}")

    def _claim(self, session: str, request: CanUseTool) -> None:
        called = request.tool_use_id or ""
        approval = self._means.approvals.of_call(session, session, called)
        if timer := self._unclaimed.pop(approval or "", None):
            timer.cancel()

    def ended(self, session: str, how: str) -> None:
        """It was stopped: whoever waits is told no."""
        seat = self._seats.pop(session, None)
        if seat:
            seat.gate.ended(how)
        approvals = self._means.approvals
        for approval in approvals.unfinished(session, session):
            if approval.status == "pending":  # of an earlier time, and not asked again since
                approvals.withdraw(approval.id, "process ended", how)

    def hold(self) -> None:
        """Nobody can come back from now on, for the server ends: what is asked stays."""
        self._is_held = True
        for timer in self._unclaimed.values():
            timer.cancel()
        for question in self._questions.values():
            question.hold()

    async def aclose(self) -> None:
        """Let go: what is asked stays so, for whoever asks again."""
        self.hold()
        for seat in self._seats.values():
            seat.desk.detach()
        tasks = [question.end() for question in list(self._questions.values())]
        if tasks:
            await asyncio.wait(tasks)


class _Question:
    """Asked by however many callers, of whom the last is answered. It outlives them for a while;
    `over` is called when it is not asked any more."""

    def __init__(
        self,
        asking: Coroutine[Any, Any, Decision],
        patience: float,
        over: Callable[[_Question], None],
    ) -> None:
        self.task = asyncio.ensure_future(asking)
        self.task.add_done_callback(lambda _: over(self))
        self._patience = patience
        self._over = over
        self._callers: list[object] = []
        self._is_held = False
        self._is_told = False
        self._leaving: asyncio.TimerHandle | None = None

    async def answer(self) -> Decision | None:
        """None for one after whom another one has asked."""
        caller = object()
        self._callers.append(caller)
        if self._leaving:
            self._leaving.cancel()
        try:
            # Not by `shield`: that the question has ended does not cancel who asks.
            await asyncio.wait([self.task])
        finally:
            is_last = caller is self._callers[-1]
            self._callers.remove(caller)
            if not self._callers and not self.task.done() and not self._is_held:
                loop = asyncio.get_running_loop()
                self._leaving = loop.call_later(self._patience, self._give_up)
        if self.task.cancelled():
            raise ApprovalsClosed("the server ends; the question waits for the next one")
        is_told, self._is_told = self._is_told, self._is_told or is_last
        return self.task.result() if is_last and not is_told else None

    def _give_up(self) -> None:
        self._over(self)  # first, so that who asks now asks anew
        self.task.cancel()

    def hold(self) -> None:
        """Wait, whether anybody is there or not."""
        self._is_held = True
        if self._leaving:
            self._leaving.cancel()

    def end(self) -> asyncio.Task[Decision]:
        self.task.cancel()
        return self.task


def _with_input(decision: Decision, request: CanUseTool) -> Decision:
    """CLIs want the whole input back."""
    if isinstance(decision, Allow) and isinstance(decision.updated_input, UnsetType):
        return replace(decision, updated_input=request.input)
    return decision
