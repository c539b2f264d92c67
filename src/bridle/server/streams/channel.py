"""A stream of the log for all who follow it: read once, made into frames once.

Owns the one feed, the ring that it fills and the crowd that it calls. What a frame is, is for those
who make channels of their own to say; here it is the event itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from msgspec import Struct

from ...errors import BridleError
from ...journal import Batch, Event, EventLog, Live
from .crowd import Crowd
from .frames import Frame, live_frame, stored_frame
from .ring import CHUNK_BYTES, MAX_BYTES, MAX_FRAMES, Chunk, Ring
from .wants import Want

#: The loop is not held longer than this at a time.
SLICE_SECONDS = 0.004
RETRY_SECONDS = 1.0
#: So many events are read at once from before the ring; fewer where they are large.
PAGE, SMALLEST_PAGE, LARGEST_PAGE = 64, 4, 512

_log = logging.getLogger(__name__)


class Sizes(Struct, frozen=True, kw_only=True):
    """How much a channel keeps for those who are a little behind."""

    frames: int = MAX_FRAMES
    bytes: int = MAX_BYTES


class Channel:
    """Begins to follow when it is made; `after` is the number that it follows from."""

    def __init__(self, log: EventLog, stream: str, after: int, sizes: Sizes) -> None:
        self.stream = stream
        self.ring = Ring(after, sizes.frames, sizes.bytes)
        self.crowd = Crowd()
        #: How much it holds, beside what every channel does.
        self.weight = 0
        self._log = log
        self._feed = log.follow(stream, after)
        self._loop = asyncio.get_running_loop()
        self._page = PAGE
        self._following = asyncio.ensure_future(self._follow())

    async def last(self) -> int:
        return (await self._log.info(self.stream)).last_seq

    async def past(self, cursor: int, want: Want, most: int | None) -> Chunk:
        events = await self._log.read(self.stream, cursor, min(self._page, most or self._page))
        if not events:  # deleted: what there is, is in the ring
            return Chunk(b"", max(cursor, self.ring.floor))
        size = sum(len(event.body) for event in events)
        fitting = CHUNK_BYTES * len(events) // max(size, 1)
        self._page = max(SMALLEST_PAGE, min(LARGEST_PAGE, fitting))
        frames = [frame for frame in map(stored_frame, events) if want.takes(frame)]
        told = frames[-1].seq if frames else 0
        data = b"".join([frame.wire(want.veil) for frame in frames])
        return Chunk(data, events[-1].seq, told, len(frames))

    async def aclose(self) -> None:
        self.crowd.close()
        self._feed.close()
        self._following.cancel()
        await asyncio.wait([self._following])

    async def _follow(self) -> None:
        while True:
            try:
                batch = await anext(self._feed)
            except StopAsyncIteration:
                return
            except BridleError as error:  # nothing is lost by it: the feed goes on from its cursor
                _log.exception("the stream %s can't be read; it is tried again", self.stream)
                self._failed(error)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            await self._take(batch)

    async def _take(self, batch: Batch) -> None:
        until = self._loop.time() + SLICE_SECONDS
        for event in batch.events:
            try:
                for frame in self._frames(event):
                    self.ring.add(frame)
            except Exception:  # noqa: BLE001 - one event's mistake must not end what all follow
                _log.exception("an event of %s can't be shown", self.stream)
            if self._loop.time() > until:
                self._grown()
                await asyncio.sleep(0)
                until = self._loop.time() + SLICE_SECONDS
        self._grown()

    def _frames(self, event: Event | Live) -> Iterable[Frame]:
        if isinstance(event, Live):
            return (live_frame(event, self.ring.last),)
        return (stored_frame(event),)

    def _grown(self) -> None:
        self.crowd.call()

    def _failed(self, error: BridleError) -> None:
        """The log can't be read just now."""
