"""The one writer of a stream, for all who have something to write there.

Owns the stream's last number and the order of appends; does not know what they mean. After an
append that failed it finds out where the stream really ends before it appends the next.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from functools import partial

from ..errors import InvalidEntry, JournalClosed, JournalError, WrongSequence, words_of
from .contract import EventLog
from .events import Durability, NewEvent

#: After these it is certain that nothing was stored.
_CERTAIN = (InvalidEntry, JournalClosed, WrongSequence)


class _Batch:
    __slots__ = ("durability", "error", "events", "future", "last")

    def __init__(
        self, events: Sequence[NewEvent], durability: Durability, future: asyncio.Future[int]
    ) -> None:
        self.events = events
        self.durability = durability
        self.future = future
        self.last = 0  # the number that its last event has, if it is stored
        self.error: Exception | None = None


class StreamOwner:
    """Appends to one stream, in the order of the calls; none need be awaited before the next.

    If one fails, those that were sent behind it fail with WrongSequence, and may be tried again.
    """

    def __init__(self, log: EventLog, stream: str) -> None:
        self._log = log
        self._last: int | None = None  # unknown at first, and after a failure
        self._waiting: deque[_Batch] = deque()  # until it is known
        self._doubtful: list[_Batch] = []  # failed, and may be stored all the same
        self._underway = 0
        self._finding: asyncio.Task[int] | None = None
        self.stream = stream

    def append(
        self, events: Sequence[NewEvent], durability: Durability = Durability.PROCESS
    ) -> asyncio.Future[int]:
        """As `EventLog.append`, without having to know the last number."""
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        batch = _Batch(events, durability, future)
        if self._last is None or self._waiting:
            self._waiting.append(batch)
            self._find()
        else:
            self._send(batch, self._last)
        return future

    def _send(self, batch: _Batch, last: int) -> None:
        self._last = batch.last = last + len(batch.events)
        self._underway += 1
        stored = self._log.append(self.stream, batch.events, last, batch.durability)
        stored.add_done_callback(partial(self._settled, batch))

    def _settled(self, batch: _Batch, stored: asyncio.Future[int]) -> None:
        self._underway -= 1
        error = asyncio.CancelledError() if stored.cancelled() else stored.exception()
        if error is None:
            _tell(batch.future, stored.result())
        else:
            self._last = None
            batch.error = _as_error(error)
            if isinstance(error, _CERTAIN):
                _fail(batch.future, batch.error)
            else:
                self._doubtful.append(batch)
        if self._waiting or self._doubtful:
            self._find()

    def _find(self) -> None:
        """Once nothing is on its way: where does the stream end?"""
        if self._finding is None and not self._underway:
            self._finding = asyncio.get_running_loop().create_task(self._find_out())
            self._finding.add_done_callback(self._found)

    async def _find_out(self) -> int:
        return (await self._log.info(self.stream)).last_seq

    def _found(self, task: asyncio.Task[int]) -> None:
        self._finding = None
        doubtful, self._doubtful = self._doubtful, []
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None:
            # Only here: who appended before the doubtful are told would move it behind them.
            self._last = task.result()
        for batch in doubtful:
            # Nobody else writes here: what reaches so far has this batch in it.
            if self._last is not None and batch.last <= self._last:
                _tell(batch.future, batch.last)
            elif batch.error:
                _fail(batch.future, batch.error)
        while self._waiting:
            batch = self._waiting.popleft()
            if self._last is not None:
                self._send(batch, self._last)
            elif error:
                _fail(batch.future, _as_error(error))


class Owners:
    """The owners of a journal's streams: one of each, for whoever writes there."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._owners: dict[str, StreamOwner] = {}

    def of(self, stream: str) -> StreamOwner:
        owner = self._owners.get(stream)
        if owner is None:
            owner = self._owners[stream] = StreamOwner(self._log, stream)
        return owner


def _as_error(error: BaseException) -> Exception:
    if isinstance(error, Exception):
        return error
    return JournalError(f"it was not stored: {words_of(error)}")


def _tell(future: asyncio.Future[int], last: int) -> None:
    if not future.done():  # it is: somebody has stopped waiting
        future.set_result(last)


def _fail(future: asyncio.Future[int], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
