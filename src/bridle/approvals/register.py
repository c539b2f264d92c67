"""What is pending, and the race for its end. The log is written first, and its order is the truth.

Owns the claim: whoever has it writes an approval's end, and everybody else waits for what the log
says to that. So no approval ever has two ends on their way. Plain calls, which never block; does
not judge who may decide.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Literal

from ..errors import WrongSequence
from ..journal import Durability, NewEvent
from ..journal.owner import Owners
from .clock import Clock, Deadlines
from .events import Delivered, Ended, Escalated, OutcomeSeen, event_of
from .fold import fold, view
from .model import (
    Approval,
    Cancelled,
    Decided,
    Ending,
    Expired,
    Outcome,
    Reject,
    Requested,
    Step,
)
from .pending import Pending
from .remember import Remembered, event_of_rule, rule_of
from .shelf import Shelf
from .watch import Watches

#: An append that was sent behind one that failed has done nothing wrong, and is sent again.
TRIES = 3

Then = Callable[[int, BaseException | None], None]

_log = logging.getLogger(__name__)


class Register:
    """The approvals that are not finished."""

    def __init__(self, owners: Owners, shelf: Shelf, remembered: Remembered, clock: Clock) -> None:
        self._owners = owners
        self._shelf = shelf
        self._remembered = remembered
        self._clock = clock
        self._deadlines = Deadlines(clock, self._is_due)
        self._unlogged: dict[str, Pending] = {}  # ended, and the log could not be told
        self._calls: dict[tuple[str, str, str], str] = {}
        self._noting: Counter[str] = Counter()  # what is on its way to be noted of an approval
        self._underway: set[asyncio.Future[int]] = set()
        self.watches = Watches()
        self.pending: dict[str, Pending] = {}
        #: Decided, and not delivered or run as far as we know.
        self.unfinished: dict[str, Approval] = {}

    # --- what is there

    def found(self, approval: Approval) -> None:
        """One that was not finished when we last stopped."""
        self._remember_call(approval)
        if approval.status != "pending":
            self.unfinished[approval.id] = approval
            return
        pending = self.pending[approval.id] = Pending(approval)
        pending.approval = approval
        pending.stored.set_result(None)

    def watch_times(self) -> None:
        """From now on, what was found expires when its time is up."""
        for pending in self.pending.values():
            self._watch_time(pending)

    def visible(self) -> Iterator[Approval]:
        stored = (pending.approval for pending in self.pending.values() if pending.is_visible)
        return chain(stored, self.unfinished.values())

    def of_launch(self, session: str, launch: str) -> list[Approval]:
        """Also those that nobody may see yet: for who asked them."""
        pending = (pending.as_told for pending in self.pending.values())
        every = chain(pending, self.unfinished.values())
        return [a for a in every if a.session == session and a.launch == launch]

    def of_call(self, session: str, launch: str, tool_use_id: str) -> str | None:
        """The approval of a call, while it is not finished."""
        return self._calls.get((session, launch, tool_use_id))

    def is_noting(self, approval_id: str) -> bool:
        """Whether it is on its way to the log that its answer was told, or what became of it."""
        return approval_id in self._noting

    async def aclose(self) -> None:
        """Wait for what is on its way. What is pending stays so."""
        await self._deadlines.aclose()
        self._log_what_is_unlogged()
        while self._underway:
            await asyncio.wait(self._underway)

    # --- asking

    def add(self, requested: Requested) -> Pending:
        events = [event_of(requested)]  # raises for what can't be stored, before anything is kept
        pending = self.pending[requested.id] = Pending(requested)
        self._write(pending.approval.session, events, partial(self._asked, pending, requested))
        return pending

    def _asked(
        self, pending: Pending, requested: Requested, seq: int, error: BaseException | None
    ) -> None:
        if error:
            del self.pending[requested.id]
            pending.fail(error)
            return
        asked = fold(None, seq, requested)
        assert asked
        pending.approval = view(asked)
        pending.stored.set_result(None)
        self._remember_call(asked)
        self._watch_time(pending)
        self._changed(pending.approval)
        if pending.ending:  # it was cancelled meanwhile
            self._end(pending, pending.ending)

    # --- ending

    def decide(self, pending: Pending, decided: Decided) -> asyncio.Future[Approval]:
        """Write the decision, which nobody else may do meanwhile. If it can't be stored, a no holds
        all the same and is stored when that works again; after a yes it is pending as before."""
        assert pending.claim is None
        done: asyncio.Future[Approval] = asyncio.get_running_loop().create_future()
        self._end(pending, decided, done)
        return done

    def cancel(self, pending: Pending, cancelled: Cancelled) -> None:
        """From now on nobody can decide it. The asker is told at once, even if nothing can be
        written."""
        if pending.ending:
            return
        pending.ending = cancelled
        pending.tell(pending.as_told)
        # Else it follows what is on its way to the log.
        if pending.claim is None and pending.stored.done():
            self._end(pending, cancelled)

    def expire(self, pending: Pending) -> None:
        """Unless somebody is just deciding it, or it is cancelled."""
        if pending.claim is None and pending.ending is None:
            approval, now = pending.approval, self._clock.now()
            after = (approval.expires or now) - approval.created
            pending.ending = Expired(after, now)
            self._end(pending, pending.ending)

    def is_due(self, pending: Pending) -> bool:
        expires = pending.approval.expires
        return expires is not None and expires <= self._clock.now()

    def _end(
        self,
        pending: Pending,
        ending: Ending,
        done: asyncio.Future[Approval] | None = None,
    ) -> None:
        approval = pending.approval
        rule = rule_of(approval, ending) if isinstance(ending, Decided) else None
        # A session's rule rides in the batch of the decision that has it remembered.
        also = [event_of_rule(rule)] if rule and rule.session else []
        events = [event_of(Ended(approval.id, ending)), *also]
        pending.claim = asyncio.get_running_loop().create_future()
        then = partial(self._ended, pending, ending, len(also), done)
        self._write(approval.session, events, then, Durability.POWER)

    def _ended(
        self,
        pending: Pending,
        ending: Ending,
        behind: int,
        done: asyncio.Future[Approval] | None,
        last: int,
        error: BaseException | None,
    ) -> None:
        claim, pending.claim = pending.claim, None
        if error:
            self._not_ended(pending, ending, error)
            if done and not done.done():
                if pending.ending is ending:
                    done.set_result(pending.as_told)
                else:
                    done.set_exception(error)
        else:
            approval = self._is_over(pending, ending, last - behind)
            if done and not done.done():
                done.set_result(approval)
        if claim:
            claim.set_result(None)

    def _is_over(self, pending: Pending, ending: Ending, seq: int) -> Approval:
        before = pending.approval
        whole = fold(before, seq, Ended(before.id, ending))
        assert whole
        del self.pending[before.id]
        self._deadlines.drop(before.id)
        self.unfinished[before.id] = view(whole)
        rule = rule_of(whole, ending) if isinstance(ending, Decided) else None
        if rule:
            self._remembered.added(rule)  # in force before the agent hears of it
        self._changed(self.unfinished[before.id])
        pending.end(whole)
        if pending.ending and pending.ending is not ending:
            # Taken back while the decision was on its way to the log: decided, and without effect.
            self.note(OutcomeSeen(before.id, _without_effect(pending.ending)))
        return whole

    def _not_ended(self, pending: Pending, ending: Ending, error: BaseException) -> None:
        if pending.ending is None and is_no(ending):
            pending.ending = ending  # a no holds whatever the log says
        if pending.ending is None:
            self._watch_time(pending)
        elif pending.ending is ending:
            _log.error("approval %s is over; that can't be stored: %s", pending.approval.id, error)
            self._unlogged[pending.approval.id] = pending
            pending.end(pending.as_told)
        else:
            self._end(pending, pending.ending)

    def _log_what_is_unlogged(self) -> None:
        unlogged, self._unlogged = self._unlogged, {}
        for pending in unlogged.values():
            if pending.ending and pending.claim is None:
                self._end(pending, pending.ending)

    # --- passing on

    def escalate(self, pending: Pending, step: Step) -> asyncio.Future[Approval]:
        """Put it to somebody else. Until the log has that nobody may end it, but what cancels it
        holds at once."""
        assert pending.claim is None
        loop = asyncio.get_running_loop()
        body, done = Escalated(pending.approval.id, (step,)), loop.create_future()
        events = [event_of(body)]
        pending.claim = loop.create_future()
        self._write(pending.approval.session, events, partial(self._escalated, pending, body, done))
        return done

    def _escalated(
        self,
        pending: Pending,
        body: Escalated,
        done: asyncio.Future[Approval],
        seq: int,
        error: BaseException | None,
    ) -> None:
        claim, pending.claim = pending.claim, None
        if not error:
            after = fold(pending.approval, seq, body)
            assert after
            pending.approval = view(after)
            self._changed(pending.approval)
        if not done.done():
            done.set_exception(error) if error else done.set_result(pending.approval)
        if pending.ending:  # it was cancelled meanwhile
            self._end(pending, pending.ending)
        else:
            self._watch_time(pending)
        if claim:
            claim.set_result(None)

    # --- after the end

    def note(self, body: Delivered | OutcomeSeen) -> None:
        """Something that is seen of an approval that has ended."""
        approval = self.unfinished.get(body.id)
        if approval is None and body.id in self.pending:
            approval = self.pending[body.id].approval
        if approval is None or _is_known(approval, body):
            return
        self._noting[body.id] += 1
        self._write(approval.session, [event_of(body)], partial(self._noted, body))

    def _noted(self, body: Delivered | OutcomeSeen, seq: int, error: BaseException | None) -> None:
        self._noting[body.id] -= 1
        if not self._noting[body.id]:
            del self._noting[body.id]
        pending, ended = self.pending.get(body.id), self.unfinished.get(body.id)
        before = ended or (pending.approval if pending else None)
        assert before  # it is kept as long as something of it is on its way
        if error:
            _log.error("what became of approval %s can't be stored: %s", body.id, error)
            self._let_go(before)
            return
        after = fold(before, seq, body)
        assert after
        if pending:
            pending.approval = view(after)
        else:
            self.unfinished[body.id] = view(after)
        self._changed(view(after))

    # --- the rest

    def store(self, stream: str, events: Sequence[NewEvent]) -> asyncio.Future[None]:
        """Append what stands for itself."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def then(_: int, error: BaseException | None) -> None:
            if done.done():
                return
            if error:
                done.set_exception(error)
            else:
                done.set_result(None)

        self._write(stream, events, then)
        return done

    def _changed(self, approval: Approval) -> None:
        """It is in the log: now it may be seen."""
        self._let_go(approval)
        self._shelf.put(approval)
        self.watches.tell(approval)

    def _let_go(self, approval: Approval) -> None:
        """No longer keep it in memory, if it is finished."""
        if approval.is_finished and approval.id not in self._noting:
            self.unfinished.pop(approval.id, None)
            call = _call_of(approval)
            if call and self._calls.get(call) == approval.id:
                del self._calls[call]

    def _remember_call(self, approval: Approval) -> None:
        call = _call_of(approval)
        if call:
            self._calls[call] = approval.id

    def _watch_time(self, pending: Pending) -> None:
        if pending.approval.expires is not None and pending.ending is None:
            self._deadlines.set(pending.approval.id, pending.approval.expires)

    def _is_due(self, approval_id: str) -> None:
        pending = self.pending.get(approval_id)
        if pending:
            self.expire(pending)

    def _write(
        self,
        stream: str,
        events: Sequence[NewEvent],
        then: Then,
        durability: Durability = Durability.PROCESS,
        tries: int = TRIES,
    ) -> None:
        """Append, and call `then` with the number of the last event or with the error."""

        def written(stored: asyncio.Future[int]) -> None:
            self._underway.discard(stored)
            error = stored.exception()
            if isinstance(error, WrongSequence) and tries > 1:
                self._write(stream, events, then, durability, tries - 1)
                return
            then(0 if error else stored.result(), error)
            if not error and self._unlogged:
                self._log_what_is_unlogged()

        stored = self._owners.of(stream).append(events, durability)
        self._underway.add(stored)
        stored.add_done_callback(written)


def _call_of(approval: Approval) -> tuple[str, str, str] | None:
    if approval.tool_use_id is None:
        return None
    return approval.session, approval.launch, approval.tool_use_id


def is_no(ending: Ending) -> bool:
    return isinstance(ending, Decided) and isinstance(ending.choice, Reject)


def _without_effect(ending: Ending) -> Outcome:
    if not isinstance(ending, Cancelled):
        return Outcome("withdrawn", ending.at)
    how: Literal["withdrawn", "process died"] = "withdrawn"
    if ending.cause == "process ended":
        how = "process died"
    return Outcome(how, ending.at, ending.words)


def _is_known(approval: Approval, body: Delivered | OutcomeSeen) -> bool:
    known = approval.delivered if isinstance(body, Delivered) else approval.outcome
    return known is not None
