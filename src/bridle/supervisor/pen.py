"""Writes a session's events down, in order, until it works.

Owns the waiting: one append is on its way at a time, what comes meanwhile goes together in the
next, and what fails is tried again. Nothing is lost by that: what an agent says stays in its spool.
Whoever must not wait for the log asks `is_stuck`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence

from ..errors import JournalClosed, words_of
from ..journal import NewEvent
from ..journal.events import MAX_BATCH_BYTES, MAX_BATCH_EVENTS, MAX_BODY
from ..journal.owner import StreamOwner

#: Well below what a batch may have.
MOST_EVENTS = MAX_BATCH_EVENTS // 2
MOST_BYTES = MAX_BATCH_BYTES // 2
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.05, 2.0

Then = Callable[[], object]

_log = logging.getLogger(__name__)


class Note:
    """Events that belong together, and who wants to know that they are stored."""

    __slots__ = ("events", "held", "size", "then")

    def __init__(self, events: Sequence[NewEvent], then: Then | None) -> None:
        self.events = events
        self.then = then
        self.size = sum(map(_size, events))
        #: What it takes in memory.
        self.held = sum(len(event.body) for event in events)


def fits(events: Sequence[NewEvent]) -> bool:
    """Whether they can be stored together."""
    return len(events) <= 1 or (
        len(events) <= MOST_EVENTS and sum(map(_size, events)) <= MOST_BYTES
    )


def _fitting(events: Sequence[NewEvent]) -> int:
    """How many of the first can."""
    size = 0
    for count, event in enumerate(events[:MOST_EVENTS]):
        size += _size(event)
        if size > MOST_BYTES:
            return max(count, 1)
    return min(len(events), MOST_EVENTS)


def _size(event: NewEvent) -> int:
    # A larger body goes to a blob, and is not counted.
    return min(len(event.body), MAX_BODY)


class Pen:
    """For one stream."""

    def __init__(
        self,
        owner: StreamOwner,
        ahead: Callable[[Sequence[NewEvent]], Sequence[NewEvent]] = lambda _: (),
    ) -> None:
        self._owner = owner
        #: What must be stored before these.
        self._ahead = ahead
        self._waiting: deque[Note] = deque()
        self._writing: list[Note] = []
        self._retry: asyncio.TimerHandle | None = None
        self._pause = FIRST_RETRY_SECONDS
        self._is_closed = False
        self._is_telling = False
        self._untold = 0  # of those who wanted to know that theirs is stored
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_in_trouble = asyncio.Event()
        self._promises: set[asyncio.Future[None]] = set()
        self.is_stuck = False
        #: How many bytes wait to be written.
        self.backlog = 0
        #: The number of the last event that it has written.
        self.last_seq = 0

    @property
    def is_quiet(self) -> bool:
        """Whether all that was given is stored, and everybody was told."""
        return not (self._waiting or self._writing or self._untold)

    def write(self, events: Sequence[NewEvent], then: Then | None = None) -> Note:
        """Append these, then call `then`. Those that are given together are stored together, unless
        they are more than a batch can hold. Gives what `take_back` needs."""
        if ahead := self._ahead(events):
            self._add(Note(ahead, None))
        while not fits(events):
            count = _fitting(events)
            self._add(Note(events[:count], None))
            events = events[count:]
        note = Note(events, then)
        self._add(note)
        if not self._writing and not self._is_telling:
            self._next()
        return note

    def _add(self, note: Note) -> None:
        if not self._is_closed:
            self._waiting.append(note)
            self.backlog += note.held
            self._idle.clear()

    def take_back(self, note: Note) -> bool:
        """Do not write this, if it is not on its way yet."""
        if note not in self._waiting:
            return False
        self.backlog -= note.held
        note.events, note.then, note.size, note.held = (), None, 0, 0
        return True

    async def stored(self, events: Sequence[NewEvent]) -> None:
        """Append these, and wait until it is done."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.write(events, lambda: None if done.done() else done.set_result(None))
        self._promises.add(done)
        if self._is_closed:
            self._break_promises()
        try:
            await done
        finally:
            self._promises.discard(done)

    async def idle(self) -> None:
        """Until nothing waits."""
        await self._idle.wait()

    async def idle_or_stuck(self) -> None:
        """Until nothing waits, or it can't be written just now."""
        waits = [asyncio.ensure_future(one.wait()) for one in (self._idle, self._is_in_trouble)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _break_promises(self) -> None:
        for promise in self._promises:
            if not promise.done():
                promise.set_exception(JournalClosed("the session is not looked after any more"))

    def close(self) -> None:
        """Write nothing more: what waits is dropped."""
        self._is_closed = True
        self._waiting.clear()
        if self._retry:
            self._retry.cancel()
            self._retry = None
            self._writing = []
        self._break_promises()
        if not self._writing:
            self._idle.set()

    # --- one append at a time

    def _next(self) -> None:
        while self._waiting and not self._waiting[0].events:
            self._tell([self._waiting.popleft()])
        if not self._waiting:
            self._idle.set()
            return
        count = size = 0
        while self._waiting:
            note = self._waiting[0]
            count, size = count + len(note.events), size + note.size
            if self._writing and (count > MOST_EVENTS or size > MOST_BYTES):
                break
            self._writing.append(self._waiting.popleft())
        self._append()

    def _append(self) -> None:
        self._retry = None
        events = [event for note in self._writing for event in note.events]
        self._owner.append(events).add_done_callback(self._settled)

    def _settled(self, stored: asyncio.Future[int]) -> None:
        error = None if stored.cancelled() else stored.exception()
        if error or stored.cancelled():
            self._failed(error or asyncio.CancelledError())
            return
        if self.is_stuck:
            self.is_stuck = False
            self._is_in_trouble.clear()
            self._pause = FIRST_RETRY_SECONDS
        self.last_seq = stored.result()
        written, self._writing = self._writing, []
        self._tell(written)
        self._next()

    def _tell(self, notes: Sequence[Note]) -> None:
        # Who is told may write more: nobody is to be told of that before all of these are.
        self._is_telling = True
        self._untold = len(notes)
        for note in notes:
            self._untold -= 1
            self.backlog -= note.held
            _tell(note)
        self._is_telling = False

    def _failed(self, error: BaseException) -> None:
        if self._is_closed or isinstance(error, JournalClosed):
            self._writing = []
            self._is_closed = True
            self._break_promises()
            self._idle.set()
            return
        if not self.is_stuck:
            _log.error("%s can't be written down: %s", self._owner.stream, words_of(error))
            self.is_stuck = True
            self._is_in_trouble.set()
        self._retry = asyncio.get_running_loop().call_later(self._pause, self._append)
        self._pause = min(self._pause * 2, LAST_RETRY_SECONDS)


def _tell(note: Note) -> None:
    if note.then:
        try:
            note.then()
        except Exception:  # noqa: BLE001 - what one does with it must not stop the next
            _log.exception("a mistake after something was stored")
