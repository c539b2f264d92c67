"""What holds agents back: lineage, budgets, and a disk that is nearly full.

Owns when one is paused and goes on; who does it is the charge. One timer for all budgets of time,
and one while the disk is low: none when nothing is due.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from collections.abc import Callable, Coroutine
from typing import Any

from ..errors import BridleError, NotPossible, words_of
from ..views import stream
from ..views.stream import Limits, PauseCause
from .agent import MOST_WORDS
from .budgets import Ledger
from .charge import Charge
from .lineage import Family, LineageLimits, Orphans, check_birth, check_start, orphans_of
from .means import Means
from .sessions import Sessions
from .states import is_live

LOOK_SECONDS = 1.0
#: The disk is good again when it has so many times the free space at which agents were paused.
ENOUGH = 1.25

_log = logging.getLogger(__name__)


class Guards:
    """For all sessions of a supervisor. `changed` is told when there is room again."""

    def __init__(
        self,
        means: Means,
        sessions: Sessions,
        lineage: LineageLimits,
        free_bytes: int,
        changed: Callable[[], None],
    ) -> None:
        self._means = means
        self._sessions = sessions
        self._lineage = lineage
        self._free_bytes = free_bytes
        self._changed = changed
        self._looked = 0.0
        self._seen: dict[str, object] = {}
        self._is_low = False
        self._frozen: set[str] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.family = Family()
        self.ledger = Ledger(self.family)

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        for task in self._tasks:
            task.cancel()

    # --- who there is

    def put(self, charge: Charge) -> None:
        """There is one more."""
        self._seen[charge.id] = _standing(charge)
        self.ledger.put(charge.record)

    def told(self, charge: Charge) -> None:
        """Its stream has grown. What counts here seldom changes."""
        standing = _standing(charge)
        if self._seen.get(charge.id) != standing:
            self._seen[charge.id] = standing
            was_live = self.family.is_live(charge.id)
            self.ledger.put(charge.record)
            self._look_at_tree(charge)
            if was_live and not is_live(charge.record.state):
                self._own(self._orphan(charge))
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self._look_at_disk()

    def _look_at_tree(self, charge: Charge) -> None:
        """What one has used is used for all that share it."""
        root = (*charge.record.lineage, charge.id)[0]
        for session in (root, *self.family.live_below(root)):
            if session in self._sessions:  # the root may have been deleted
                self.look(self._sessions.get(session))

    def drop(self, charge: Charge) -> None:
        self.ledger.check_delete(charge.id)
        self.ledger.drop(charge.id)
        self._seen.pop(charge.id, None)

    def check_birth(self, parent: Charge | None, limits: Limits) -> None:
        above = parent.id if parent else None
        check_birth(above, self.family, self._lineage)
        if parent and parent.is_to_stop:
            raise NotPossible("start a child", parent.record.state, "it is to stop", parent.id)
        lineage = (*parent.record.lineage, parent.id) if parent else ()
        self.ledger.check_birth(lineage, limits, self._means.now())

    def check_start(self, charge: Charge) -> None:
        check_start(charge.id, self.family, self._lineage)
        self.ledger.check_start(charge.id, self._means.now())

    def born_below(self, parent: Charge) -> None:
        """It has one more child: if it has ended meanwhile, that was not known to be one."""
        if not is_live(parent.record.state):
            self._own(self._orphan(parent))

    def find_orphans(self) -> None:
        """Those whose parent ended just before an earlier supervisor did. Who was started again
        after that was meant to be."""
        for charge in self._sessions:
            ended = charge.record.launch.ended_at if charge.record.launch else None
            if charge.record.external:
                ended = math.inf  # for good
            if ended is None or is_live(charge.record.state):
                continue
            children = [self._sessions.get(c.id) for c in self.family.live_children(charge.id)]
            if any(child.record.queued_at < ended for child in children):
                self._own(self._orphan(charge))

    async def _orphan(self, parent: Charge) -> None:
        """It has ended, however that was: its rule says what becomes of those below it."""
        words = f"its parent {parent.id} has ended"
        orphans = orphans_of(parent.id, self.family)
        children = [self._sessions.get(name) for name in orphans.stop if name in self._sessions]
        # One may be stopping already, or have stopped, and that not be noted yet.
        wanted = [one for one in children if one.is_at_work or one.record.facts.is_queued]
        stops = [child.stop("", words) for child in wanted if not child.is_to_stop]
        await asyncio.gather(*stops, return_exceptions=True)
        self._hand_over(orphans, words)

    def _hand_over(self, orphans: Orphans, words: str) -> None:
        """Those who outlive their parent have another lineage from now on."""
        shares = self.ledger.shares(orphans, self._means.now())
        for move in orphans.moves:
            if move.id not in self._sessions:
                continue
            charge, now = self._sessions.get(move.id), self._means.now()
            body = stream.HandedOver(lineage=move.lineage, at=now, words=words)
            charge.write(stream.HANDED_OVER, body)
            if move.id in shares:
                charge.write(stream.BUDGET, stream.BudgetSet(limits=shares[move.id], at=now))
            if charge.agent:
                charge.agent.desk.lineage = move.lineage

    # --- budgets

    async def set_limits(self, charge: Charge, limits: Limits, by: str) -> None:
        now = self._means.now()
        self.ledger.check_change(charge.id, limits, now)
        await charge.store(stream.BUDGET, stream.BudgetSet(limits=limits, at=now, by=by))

    def counts(self, charge: Charge) -> bool:
        """Whether what it uses is limited: then a second prompt may be one too many."""
        left = self.ledger.left(charge.id, self._means.now())
        return any(amount is not None for amount in (left.turns, left.cost_usd, left.tokens))

    def look(self, charge: Charge) -> None:
        """Has it, or one above it, used up what it had?"""
        record, now = charge.record, self._means.now()
        is_paused = "budget" in record.facts.pauses
        reached = self.ledger.reached(charge.id, now) if is_live(record.state) else None
        if reached and not is_paused:
            self.pause(charge, "budget", reached.words)
        elif is_paused and not reached:
            charge.write(stream.UNPAUSED, stream.Unpaused(cause="budget", at=now))
        self._wait_for_deadline(now)

    def _wait_for_deadline(self, now: float) -> None:
        timer = self._timers.pop("budget", None)
        if timer:
            timer.cancel()
        due = self.ledger.next_deadline(now)
        if due is not None:
            loop = asyncio.get_running_loop()
            self._timers["budget"] = loop.call_later(max(due - now, 0.05), self._is_due)

    def _is_due(self) -> None:
        for charge in self._sessions:
            self.look(charge)

    def pause(self, charge: Charge, cause: PauseCause, words: str) -> None:
        """Have it stand still: its turn is ended, and nothing more is told to it."""
        if cause in charge.record.facts.pauses or cause in charge.pausing:
            return
        charge.pausing.add(cause)
        body = stream.Paused(cause=cause, at=self._means.now(), words=words[:MOST_WORDS])
        charge.write(stream.PAUSED, body)
        if charge.agent and charge.record.facts.is_turn_running:
            self._own(self._interrupt(charge))

    async def _interrupt(self, charge: Charge) -> None:
        try:
            if charge.agent:
                await charge.agent.session.interrupt()
        except BridleError as error:
            _log.warning("session %s was not interrupted: %s", charge.id, words_of(error))

    # --- the disk

    def has_room(self) -> bool:
        """Whether another agent may begin to write."""
        return not self._is_low

    def begin(self) -> None:
        """Some may have been paused by an earlier supervisor, for a disk that was full then."""
        self._is_low = any("disk" in charge.record.facts.pauses for charge in self._sessions)
        self._look_at_disk()

    def _look_at_disk(self) -> None:
        self._looked = time.monotonic()
        try:
            free = _free(self._means.home)
        except OSError as error:
            _log.warning("the free space of %s can't be seen: %s", self._means.home, error)
            return
        if free < self._free_bytes and not self._is_low:
            self._own(self._freeze(free))
        elif self._is_low and free >= self._free_bytes * ENOUGH:
            self._thaw()
        if self._is_low:
            self._look_again()

    def _look_again(self) -> None:
        if timer := self._timers.pop("disk", None):
            timer.cancel()
        loop = asyncio.get_running_loop()
        self._timers["disk"] = loop.call_later(LOOK_SECONDS, self._look_at_disk)

    async def _freeze(self, free: int) -> None:
        self._is_low = True
        words = f"{free >> 20} MB are free on the disk of {self._means.home}: make room"
        _log.error("agents are paused: %s", words)
        for charge in self._sessions:
            if charge.agent:
                body = stream.Paused(cause="disk", at=self._means.now(), words=words)
                charge.write(stream.PAUSED, body)
                self._frozen.add(charge.id)
                await charge.agent.process.pause()
        self._look_again()

    def _thaw(self) -> None:
        self._is_low = False
        for charge in self._sessions:
            # That it was frozen may not be in the log yet: what is full can't be written to.
            if "disk" in charge.record.facts.pauses or charge.id in self._frozen:
                if charge.agent:
                    charge.agent.process.unpause()
                body = stream.Unpaused(cause="disk", at=self._means.now())
                charge.write(stream.UNPAUSED, body)
        self._frozen.clear()
        self._changed()

    def _own(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("agents could not be held back: %s", words_of(error), exc_info=error)


def _standing(charge: Charge) -> object:
    """All of a session that counts for lineage and budgets."""
    record = charge.record
    usage = record.usage
    return record.state, record.turns, usage.micros, usage.tokens, record.limits, record.lineage


def _free(folder: object) -> int:
    found = os.statvfs(str(folder))
    return found.f_bavail * found.f_frsize
