"""The event log over a store: large payloads first, each stream in order, then those who follow.

Owns the order of what is on its way to the store; does not store. A *lane* is a stream with
something on its way; a stream without costs nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from msgspec.structs import replace

from ..errors import InvalidEntry, JournalClosed, JournalError, words_of
from .entries import check_live, check_name, prepared
from .events import (
    HEAD_SIZE,
    MAX_BODY,
    MAX_SEQ,
    Durability,
    Event,
    Live,
    NewEvent,
    StreamInfo,
)
from .store import Append, Store
from .tails import TailFeed, Tails
from .tombstones import DELETED

#: However many are asked for; a page of the store's is shorter.
MAX_READ = 1 << 31


class _Lane:
    __slots__ = ("held", "underway")

    def __init__(self) -> None:
        #: Batches that are not settled, and live events that must not overtake them.
        self.underway: deque[Append | Sequence[Live]] = deque()
        #: Those of the batches that wait until a large payload is stored, and what is behind them.
        self.held: deque[Append] = deque()


class Log:
    """See `contract.EventLog` for what it promises."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lanes: dict[str, _Lane] = {}
        self._tails = Tails(store.read, self._lanes.__contains__)
        self._storing: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._loop = asyncio.get_running_loop()

    def append(
        self,
        stream: str,
        events: Sequence[NewEvent],
        expect_last_seq: int,
        durability: Durability = Durability.PROCESS,
    ) -> asyncio.Future[int]:
        if asyncio.get_running_loop() is not self._loop:
            raise InvalidEntry("a journal belongs to the event loop on which it was opened")
        future: asyncio.Future[int] = self._loop.create_future()
        lane = self._lanes.get(stream)
        try:
            self._check_open()
            if lane is None:
                check_name("stream", stream)
            write = prepared(stream, events, expect_last_seq, durability, future)
        except JournalError as error:
            future.set_exception(error)
            return future
        except (TypeError, AttributeError, OverflowError) as error:  # of what is no event at all
            future.set_exception(InvalidEntry(f"append takes a list of NewEvent: {error}"))
            return future
        if lane is None:
            lane = self._lanes[stream] = _Lane()
        lane.underway.append(write)
        if not write.is_ready:
            self._hold(lane, write)
        elif lane.held:
            lane.held.append(write)
        else:
            self._store.submit(write)
        return future

    def publish(self, stream: str, events: Sequence[Live]) -> None:
        self._check_open()
        events = tuple(events)
        check_live(events)
        lane = self._lanes.get(stream)
        if lane:
            lane.underway.append(events)
        else:
            self._pass_on(stream, events)

    async def read(self, stream: str, after: int = 0, limit: int = 100) -> list[Event]:
        self._check_open()
        if after < 0 or limit < 1:
            raise InvalidEntry(f"can't read {limit} events after {after}")
        return await self._store.read(stream, min(after, MAX_SEQ), min(limit, MAX_READ))

    def follow(self, stream: str, after: int = 0) -> TailFeed:
        self._check_open()
        return self._tails.follow(stream, after)

    async def info(self, stream: str) -> StreamInfo:
        self._check_open()
        return await self._store.info(stream)

    async def streams(self, prefix: str = "") -> list[StreamInfo]:
        self._check_open()
        return await self._store.streams(prefix)

    async def delete(self, stream: str, expect_last_seq: int, why: str = DELETED) -> None:
        self._check_open()
        await self._store.delete(stream, expect_last_seq, why)

    def settled(self, write: Append) -> None:
        """The store has it, or never will: tell everybody, in the stream's order."""
        write.is_settled = True
        lane = self._lanes[write.stream]
        while lane.underway:
            first = lane.underway[0]
            if isinstance(first, Append):
                if not first.is_settled:
                    return
                if not first.error:
                    self._tails.tell(first.stream, first.events, first.size)
                if first.blobs:
                    self._store.release_blobs(first.blobs)
                first.tell()
            else:
                self._pass_on(write.stream, first)
            lane.underway.popleft()
        del self._lanes[write.stream]

    def _pass_on(self, stream: str, events: Sequence[Live]) -> None:
        if events:
            self._tails.tell(stream, events, sum(len(event.body) for event in events))

    def close(self) -> None:
        """Take no more."""
        self._is_closed = True

    async def drain(self) -> None:
        """Those that wait for a blob go to the store."""
        if self._storing:
            await asyncio.wait(self._storing)

    def end_feeds(self) -> None:
        self._tails.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise JournalClosed("the journal is closed")

    def _hold(self, lane: _Lane, write: Append) -> None:
        def stored(task: asyncio.Task[None]) -> None:
            self._storing.discard(task)
            error = asyncio.CancelledError() if task.cancelled() else task.exception()
            if isinstance(error, JournalError):
                write.error = error
            elif error:  # a mistake, or the end of the program
                write.error = JournalError(f"a payload was not stored: {words_of(error)}")
            write.is_ready = True
            self._send(lane)

        lane.held.append(write)
        task = asyncio.get_running_loop().create_task(self._store_blobs(write))
        self._storing.add(task)
        task.add_done_callback(stored)

    async def _store_blobs(self, write: Append) -> None:
        for index, event in enumerate(write.events):
            if len(event.body) > MAX_BODY:
                blob = await self._store.put_blob(event.body)
                write.blobs.append(blob)
                head = event.body[:HEAD_SIZE]
                write.events[index] = replace(event, body=head, blob=blob)
                write.size += HEAD_SIZE

    def _send(self, lane: _Lane) -> None:
        """Those that are ready and not behind one that is not."""
        while lane.held and lane.held[0].is_ready:
            ready = lane.held.popleft()
            if ready.error:
                self.settled(ready)
            else:
                self._store.submit(ready)
