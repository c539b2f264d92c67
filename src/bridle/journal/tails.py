"""Who follows which stream. Owns the step from history to live; does not store or wait for disks.

Everything here happens on the event loop. A feed is, per stream, either *live*, and is handed what
was committed, or *behind*, and reads the log from its cursor. It becomes live when it has read up
to what was last handed out, and falls behind when too much waits for it. So nothing is told twice,
nothing stored is missed, and a feed at the end of a stream reads no disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from weakref import WeakSet, ref

from ..errors import JournalClosed
from .bell import Bell
from .events import Batch, Event, Live

Read = Callable[[str, int, int], Awaitable[list[Event]]]

PAGE = 512
#: What may wait for a feed, of all its streams, before it has to read the log instead.
MAX_WAITING_EVENTS = 4_096
MAX_WAITING_BYTES = 8 * 1024 * 1024


class _Tail:
    """The end of one stream that somebody follows: what was last handed out, and to whom."""

    __slots__ = ("feeds", "last")

    def __init__(self) -> None:
        self.last = 0
        self.feeds: list[ref[TailFeed]] = []


class Tails:
    """All streams that are followed now. A stream that is not costs nothing."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._tails: dict[str, _Tail] = {}
        self._feeds: WeakSet[TailFeed] = WeakSet()

    def follow(self, stream: str, after: int) -> TailFeed:
        feed = TailFeed(self, self._read)
        self._feeds.add(feed)
        feed.add(stream, after)
        return feed

    def committed(self, stream: str, events: Sequence[Event], size: int) -> None:
        """These are stored: tell everybody who is live."""
        tail = self._tails.get(stream)
        if tail:
            tail.last = events[-1].seq
            self._offer(tail, Batch(stream, events), size)

    def passing(self, stream: str, events: Sequence[Live]) -> None:
        """These are not stored: tell everybody who is live, and forget them."""
        tail = self._tails.get(stream)
        if tail:
            size = sum(len(event.body) for event in events)
            self._offer(tail, Batch(stream, events), size)

    def last_told(self, stream: str) -> int:
        return self._tails[stream].last

    def join(self, stream: str, feed: TailFeed) -> None:
        self._tails.setdefault(stream, _Tail()).feeds.append(ref(feed))

    def leave(self, stream: str, feed: TailFeed | None) -> None:
        tail = self._tails[stream]
        tail.feeds = [kept for kept in tail.feeds if kept() not in (None, feed)]
        if not tail.feeds:
            del self._tails[stream]

    def close(self) -> None:
        for feed in list(self._feeds):
            feed.close()

    def _offer(self, tail: _Tail, batch: Batch, size: int) -> None:
        are_all_there = True
        for reference in tail.feeds:
            feed = reference()
            if feed is None:
                are_all_there = False
            else:
                feed.offer(batch, size)
        if not are_all_there:
            self.leave(batch.stream, None)


class _Place:
    """Where a feed is on one stream."""

    __slots__ = ("is_behind", "offered", "taken")

    def __init__(self, after: int) -> None:
        self.taken = after  # by the reader
        self.offered = after  # taken, or waiting to be
        self.is_behind = True


class TailFeed:
    """One reader's cursors, and what waits for it. See `contract.Feed` for what it promises."""

    def __init__(self, tails: Tails, read: Read) -> None:
        self._tails = tails
        self._read = read
        self._places: dict[str, _Place] = {}
        self._behind: deque[str] = deque()
        self._waiting: deque[tuple[Batch, int]] = deque()
        self._events = self._bytes = 0
        self._bell = Bell()
        self._is_closed = False
        self._is_logs_turn = False

    def add(self, stream: str, after: int = 0) -> None:
        if self._is_closed or stream in self._places:
            return
        self._places[stream] = _Place(after)
        self._behind.append(stream)
        self._tails.join(stream, self)
        self._bell.ring()

    def remove(self, stream: str) -> None:
        if self._places.pop(stream, None) is None:
            return
        self._tails.leave(stream, self)
        if stream in self._behind:
            self._behind.remove(stream)
        self._forget_waiting(stream)

    def close(self) -> None:
        for stream in list(self._places):
            self.remove(stream)
        self._is_closed = True
        self._bell.ring()

    def offer(self, batch: Batch, size: int) -> None:
        """What was just committed, or is passing, on a stream that this feed follows."""
        place = self._places[batch.stream]
        if place.is_behind:
            return
        first, last = batch.events[0], batch.events[-1]
        if isinstance(first, Event) and isinstance(last, Event):
            if last.seq <= place.offered:  # it was read from the log before we were told
                return
            if first.seq <= place.offered:
                batch = Batch(batch.stream, batch.events[place.offered - first.seq + 1 :])
            elif first.seq > place.offered + 1:  # never told, or deleted: the log knows
                self._fall_behind(batch.stream)
                return
            place.offered = last.seq
        self._put(batch, size)
        if self._events > MAX_WAITING_EVENTS or self._bytes > MAX_WAITING_BYTES:
            self._drop_waiting()
        self._bell.ring()

    def __aiter__(self) -> AsyncIterator[Batch]:
        return self

    async def __anext__(self) -> Batch:
        while True:
            # By turns, so that neither a busy stream nor a long history keeps the other back.
            self._is_logs_turn = not self._is_logs_turn
            if self._behind and (self._is_logs_turn or not self._waiting):
                batch = await self._read_on(self._behind[0])
                if batch:
                    return batch
            elif self._waiting:
                return self._take()
            elif self._is_closed:
                raise StopAsyncIteration
            else:
                await self._bell.wait()

    async def _read_on(self, stream: str) -> Batch | None:
        place = self._places[stream]
        told = self._tails.last_told(stream)
        try:
            events = await self._read(stream, place.taken, PAGE)
        except JournalClosed:
            if self._is_closed:
                return None
            raise
        if self._places.get(stream) is not place:  # removed while we read
            return None
        if events:
            place.taken = place.offered = events[-1].seq
            self._behind.rotate(-1)
            return Batch(stream, events)
        if self._tails.last_told(stream) == told:  # nothing came while we read: this is the end
            place.taken = place.offered = max(place.taken, told)
            place.is_behind = False
            self._behind.remove(stream)
        return None

    def _take(self) -> Batch:
        batch, size = self._waiting.popleft()
        self._events -= len(batch.events)
        self._bytes -= size
        last = batch.events[-1]
        if isinstance(last, Event):
            self._places[batch.stream].taken = last.seq
        return batch

    def _put(self, batch: Batch, size: int) -> None:
        self._waiting.append((batch, size))
        self._events += len(batch.events)
        self._bytes += size

    def _drop_waiting(self) -> None:
        """Too much waits: it is read from the log, when the reader comes to it."""
        for stream in {batch.stream for batch, _ in self._waiting}:
            self._fall_behind(stream)

    def _fall_behind(self, stream: str) -> None:
        place = self._places[stream]
        place.offered = place.taken
        place.is_behind = True
        self._behind.append(stream)
        self._forget_waiting(stream)
        self._bell.ring()

    def _forget_waiting(self, stream: str) -> None:
        kept = [waiting for waiting in self._waiting if waiting[0].stream != stream]
        self._waiting.clear()
        self._events = self._bytes = 0
        for batch, size in kept:
            self._put(batch, size)
