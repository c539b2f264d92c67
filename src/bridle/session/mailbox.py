"""Messages that nobody has read yet: never dropped, and never too many in memory.

Owns the order of what is unread. Past a limit of bytes, messages go to a temporary file and are
decoded again when they are read. Deltas of a partial message are live only: past a number of unread
ones the oldest are dropped, and counted.
"""

from __future__ import annotations

import asyncio
from collections import deque

from ..protocol.careful import Malformed, UnreadableRequest, read_line
from ..protocol.events import MessageReceived
from ..protocol.messages import Message, StreamEvent
from ..protocol.unknown import Unknown
from .spill import Spill

UNREAD_BYTES = 8 * 1024 * 1024
UNREAD_DELTAS = 10_000
#: Dropping one at a time would look through all that is unread for each.
DROP_AT_ONCE = 1_000


class _Spilled:
    """Stands for messages that are in the file, in their place among those in memory."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 1


class Mailbox:
    """What one reader has not read yet."""

    def __init__(
        self, unread_bytes: int = UNREAD_BYTES, unread_deltas: int = UNREAD_DELTAS
    ) -> None:
        self._limit = unread_bytes
        self._most_deltas = unread_deltas
        self._items: deque[MessageReceived | _Spilled] = deque()
        self._bytes = 0
        self._deltas = 0
        self._spill: Spill | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._is_closed = False
        self._keeps = True
        self._error: BaseException | None = None
        #: How many unread deltas were dropped.
        self.dropped_deltas = 0

    def __len__(self) -> int:
        """How many messages are unread."""
        return sum(i.count if isinstance(i, _Spilled) else 1 for i in self._items)

    def put(self, event: MessageReceived) -> None:
        if not self._keeps:
            return
        if event.message.__class__ is StreamEvent:
            self._items.append(event)
            self._deltas += 1
            if self._deltas >= self._most_deltas + DROP_AT_ONCE:
                self._drop_deltas()
        elif self._bytes < self._limit or not self._spilled(event):
            self._items.append(event)
            self._bytes += len(event.raw)
        if self._waiters:
            self._wake()

    def close(self, error: BaseException | None = None) -> None:
        """Nothing more will come: who has read everything is told so, or given the error."""
        if not self._is_closed:
            self._is_closed = True
            self._error = error
            self._wake()

    def discard(self) -> None:
        """Nobody will read any of it."""
        self._keeps = False
        self._items.clear()
        self._close_spill()
        self._bytes = self._deltas = 0

    async def get(self) -> Message | Unknown:
        """The oldest unread message; at the end StopAsyncIteration, or the error."""
        while True:
            if self._deltas > self._most_deltas:
                self._drop_deltas()
            if self._items:
                item = self._items.popleft()
                if isinstance(item, _Spilled):
                    return self._from_spill(item)
                message = item.message
                if message.__class__ is StreamEvent:
                    self._deltas -= 1
                else:
                    self._bytes -= len(item.raw)
                return message
            if self._is_closed:
                if self._error:
                    raise self._error.with_traceback(None)
                raise StopAsyncIteration
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def _drop_deltas(self) -> None:
        """Drop the oldest deltas that are too many; what lay between them moves together."""
        surplus = self._deltas - self._most_deltas
        self._deltas -= surplus
        self.dropped_deltas += surplus
        kept: deque[MessageReceived | _Spilled] = deque()
        for item in self._items:
            if isinstance(item, _Spilled):
                last = kept[-1] if kept else None
                if isinstance(last, _Spilled):
                    last.count += item.count
                    continue
            elif surplus and item.message.__class__ is StreamEvent:
                surplus -= 1
                continue
            kept.append(item)
        self._items = kept

    # --- the file

    def _spilled(self, event: MessageReceived) -> bool:
        """Put it into the file; False where the disk would not take it."""
        if self._spill is None:
            self._spill = Spill()
        if not self._spill.append(event.raw):
            return False
        last = self._items[-1] if self._items else None
        if isinstance(last, _Spilled):
            last.count += 1
        else:
            self._items.append(_Spilled())
        return True

    def _from_spill(self, item: _Spilled) -> Message | Unknown:
        assert self._spill
        raw = self._spill.pop()
        item.count -= 1
        if item.count:
            self._items.appendleft(item)
        if not self._spill.count:
            self._close_spill()
        return _message(raw)

    def _close_spill(self) -> None:
        if self._spill:
            self._spill.close()
            self._spill = None


def _message(raw: bytes) -> Message | Unknown:
    decoded = read_line(raw).decoded
    if isinstance(decoded, Message | Unknown):
        return decoded
    # It was a message when it was put here, so the file has changed under us: show it all the same.
    reason = decoded.reason if isinstance(decoded, Malformed | UnreadableRequest) else "no message"
    return Unknown("", raw, reason)
