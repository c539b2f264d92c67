"""Who follows which stream. Owns the step from history to live; does not store or wait for disks.

Everything here happens on the event loop. The *tail* of a stream that somebody follows is what was
told last, kept once for all of its readers. A reader takes from the tail where that goes on from
what it has taken before; where it does not, the reader is behind, and reads the log until it does.
So nothing is told twice, nothing stored is missed, nobody is waited for, and who is at the end of a
stream reads no disk.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from weakref import WeakSet, ref

from ..errors import InvalidEntry, JournalClosed
from .bell import ONE_READER, Bell
from .events import MAX_SEQ, Batch, Event, Live

Read = Callable[[str, int, int], Awaitable[list[Event]]]

PAGE = 512
#: How much the tails of all streams may hold; then what was told first has to be read from the log.
MAX_TOLD_BYTES = 16 * 1024 * 1024
#: What an event takes in memory beside its body, about.
OVERHEAD = 256


class Tails:
    """The tails of all streams that are followed now. A stream that is not costs nothing."""

    def __init__(self, read: Read, is_underway: Callable[[str], bool]) -> None:
        self.read = read
        self.is_underway = is_underway
        self._loop = asyncio.get_running_loop()
        self._tails: dict[str, _Tail] = {}
        self._feeds: WeakSet[TailFeed] = WeakSet()
        #: What was told, of all streams in one order: the first is forgotten first.
        self._told: deque[tuple[_Tail, int]] = deque()
        self._bytes = 0

    def follow(self, stream: str, after: int) -> TailFeed:
        feed = TailFeed(self)
        self._feeds.add(feed)
        feed.add(stream, after)
        return feed

    def tell(self, stream: str, events: Sequence[Event | Live], size: int) -> None:
        """These were stored, or are passing by: tell everybody who follows the stream."""
        tail = self._tails.get(stream)
        if tail is None:
            return
        tail.tell(Batch(stream, events))
        size += OVERHEAD * len(events)
        self._told.append((tail, size))
        self._bytes += size
        while self._bytes > MAX_TOLD_BYTES:
            tail, size = self._told.popleft()
            tail.forget_first()
            self._bytes -= size

    def join(self, feed: TailFeed, stream: str, after: int) -> _Place:
        tail = self._tails.setdefault(stream, _Tail())
        place = _Place(feed, stream, after, tail)
        tail.places.append(place)
        return place

    def leave(self, place: _Place) -> None:
        place.tail.places.remove(place)
        if not place.tail.places:
            place.tail.batches.clear()
            del self._tails[place.stream]

    def forget(self, places: list[_Place]) -> None:
        """Of a feed that nobody holds any more."""
        for place in places:
            self.leave(place)

    def forget_soon(self, places: list[_Place]) -> None:
        """Not now: Python's collector runs in any thread, and in the middle of anything."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self.forget, places)

    def close(self) -> None:
        for feed in list(self._feeds):
            feed.close()


class _Tail:
    """What was told last on one stream, and where its readers are."""

    __slots__ = ("batches", "end", "last_seq", "places")

    def __init__(self) -> None:
        self.batches: deque[Batch] = deque()
        self.end = 0  # how many batches were ever told: the place of the next one
        self.last_seq = 0  # the last number that was told; 0 before the first
        self.places: list[_Place] = []

    @property
    def start(self) -> int:
        """The place of the first batch that is still here."""
        return self.end - len(self.batches)

    def kind_at(self, place: int | None) -> type | None:
        """Whether stored or live events are next at this place; None at the end."""
        if place is None or place >= self.end:
            return None
        return type(self.batches[place - self.start].events[0])

    def tell(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.end += 1
        last = batch.events[-1]
        if isinstance(last, Event):
            self.last_seq = last.seq
        for place in self.places:
            feed = place.feed()
            if feed:
                feed.wake(place)

    def forget_first(self) -> None:
        if self.batches:
            self.batches.popleft()


class _Place:
    """Where a feed is on one stream."""

    __slots__ = ("feed", "is_listed", "joined", "stream", "tail", "taken", "upto")

    def __init__(self, feed: TailFeed, stream: str, after: int, tail: _Tail) -> None:
        self.feed = ref(feed)
        self.stream = stream
        self.tail = tail
        self.joined = tail.end  # what it had told before
        self.taken = after  # the last number that was given to the reader
        self.upto: int | None = None  # what was taken of the tail; None: it is behind
        self.is_listed = False  # among those that have something, or may have

    @property
    def is_behind(self) -> bool:
        return self.upto is None or self.upto < self.tail.start

    @property
    def is_at_the_end(self) -> bool:
        return self.upto == self.tail.end

    def take(self) -> Batch | None:
        """What waits in the tail, up to a page of it and all of a kind; None at its end."""
        batch = self._next()
        if batch is None or self.is_at_the_end:
            return batch
        kind, events = type(batch.events[0]), list(batch.events)
        while (
            len(events) < PAGE and self.tail.kind_at(self.upto) is kind and (more := self._next())
        ):
            events += more.events
        return Batch(self.stream, events)

    def _next(self) -> Batch | None:
        tail = self.tail
        assert self.upto is not None
        while self.upto < tail.end:
            batch = tail.batches[self.upto - tail.start]
            self.upto += 1
            last = batch.events[-1]
            if isinstance(last, Live):
                if self.upto > self.joined:
                    return batch
            elif last.seq > self.taken:
                new = last.seq - self.taken
                self.taken = last.seq
                if new < len(batch.events):  # the others were read from the log
                    batch = Batch(self.stream, batch.events[-new:])
                return batch
        return None

    def has_read(self, events: list[Event], told: int, is_underway: bool) -> None:
        """What the log had after the last that was taken. `told` is what was told before, and
        `is_underway` whether there may be some of it that will be told only now."""
        # What was told, is not in the tail and not in the log either, was deleted.
        self.taken = events[-1].seq if events else max(self.taken, told)
        upto = self.tail.start
        for number, batch in enumerate(self.tail.batches, upto + 1):
            first, last = batch.events[0], batch.events[-1]
            if isinstance(first, Event) and isinstance(last, Event):
                if first.seq > self.taken + 1:
                    return  # there is more to read before it
                if last.seq > self.taken:
                    if first.seq <= self.taken:
                        upto = number - 1  # a part of it was read: what is live before it is older
                    break
                upto = number
        else:
            if self.taken < self.tail.last_seq or (events and not self.tail.last_seq):
                return
            if self.taken > self.tail.last_seq and is_underway:
                upto = self.tail.end  # live events here may be older than what was read
        self.upto = upto


class TailFeed:
    """One reader's places. See `contract.Feed` for what it promises."""

    def __init__(self, tails: Tails) -> None:
        self._tails = tails
        self._places: dict[str, _Place] = {}
        #: Those that have something, or may have. By turns, so that none keeps the others back.
        self._listed: deque[_Place] = deque()
        self._bell = Bell()
        self._is_reading = False
        self._is_closed = False

    def add(self, stream: str, after: int = 0) -> None:
        if after < 0:
            raise InvalidEntry(f"can't follow from {after}: numbers start at 1")
        if stream in self._places:
            raise InvalidEntry(f"stream {stream!r} is followed already: remove it first")
        if self._is_closed:
            return
        place = self._places[stream] = self._tails.join(self, stream, min(after, MAX_SEQ))
        self.wake(place)

    def remove(self, stream: str) -> None:
        place = self._places.pop(stream, None)
        if place:
            self._tails.leave(place)
            if place.is_listed:
                self._listed.remove(place)

    def close(self) -> None:
        for stream in list(self._places):
            self.remove(stream)
        self._is_closed = True
        self._bell.ring()

    def __del__(self) -> None:
        """Nobody holds it any more."""
        if self._places:
            self._tails.forget_soon(list(self._places.values()))

    def wake(self, place: _Place) -> None:
        """There is something at this place."""
        if not place.is_listed:
            self._list(place)
            self._bell.ring()

    def __aiter__(self) -> AsyncIterator[Batch]:
        return self

    async def __anext__(self) -> Batch:
        if self._is_reading:
            raise RuntimeError(ONE_READER)
        while not self._is_closed:
            if not self._listed:
                await self._bell.wait()
                continue
            place = self._listed.popleft()
            place.is_listed = False
            try:
                batch = await self._read(place) if place.is_behind else place.take()
            finally:  # also if it can't be read: the others have their turn first
                if not (place.is_at_the_end or place.is_listed):
                    self._list(place)
            if batch:
                return batch
        raise StopAsyncIteration

    def _list(self, place: _Place) -> None:
        if self._places.get(place.stream) is place:  # it was not removed
            place.is_listed = True
            self._listed.append(place)

    async def _read(self, place: _Place) -> Batch | None:
        self._is_reading = True
        told = place.tail.last_seq
        try:
            events = await self._tails.read(place.stream, place.taken, PAGE)
        except JournalClosed:
            self.close()
            return None
        finally:
            self._is_reading = False
        if self._places.get(place.stream) is not place:  # removed while we read
            return None
        place.has_read(events, told, self._tails.is_underway(place.stream))
        return Batch(place.stream, events) if events else None
