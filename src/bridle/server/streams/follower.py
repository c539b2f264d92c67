"""One who follows: a cursor, and nothing of the stream's own.

Owns the step from the past to the ring and back: who is behind the ring reads pages of the past
until the ring goes on from there, with no gap and no double.
"""

from __future__ import annotations

from typing import Protocol

from .crowd import Crowd
from .frames import BEAT, block, mark
from .ring import Chunk, Ring
from .wants import Want


class Source(Protocol):
    """What is followed."""

    @property
    def ring(self) -> Ring: ...

    @property
    def crowd(self) -> Crowd: ...

    async def past(self, cursor: int, want: Want, most: int | None) -> Chunk:
        """Some of what is after the cursor, from before the ring."""

    async def last(self) -> int:
        """The last number that there is."""


class Following(Protocol):
    """What is sent to one client, piece by piece."""

    @property
    def crowd(self) -> Crowd: ...

    @property
    def is_over(self) -> bool:
        """Whether the client has all that it wanted."""

    async def more(self) -> bytes:
        """All that there is for it now, up to a chunk; nothing if it is at the end."""

    def beat(self) -> bytes:
        """A sign of life."""


class Follower:
    """After `most` stored events it is over; None is never."""

    def __init__(self, source: Source, cursor: int, want: Want, most: int | None = None) -> None:
        self._source = source
        self._cursor = cursor
        self._want = want
        self._most = most
        self._place: int | None = None
        self._is_checked = cursor <= source.ring.last
        self._marked = cursor

    @property
    def crowd(self) -> Crowd:
        return self._source.crowd

    @property
    def is_over(self) -> bool:
        return self._most == 0

    async def more(self) -> bytes:
        if not self._is_checked:
            reset = await self._checked()
            if reset:
                return reset
        while not self.is_over:
            chunk = await self._next()
            is_end = chunk.cursor == self._cursor and not chunk.data
            self._cursor = chunk.cursor
            if self._most is not None:
                self._most -= chunk.count
            self._marked = chunk.told or self._marked
            if chunk.data or is_end:
                return chunk.data
        return b""

    def beat(self) -> bytes:
        """Where much was passed over, also how far: a resume need not read it again."""
        if self._marked == self._cursor:
            return BEAT
        self._marked = self._cursor
        return mark(str(self._cursor))

    async def _next(self) -> Chunk:
        ring = self._source.ring
        if self._place is None or self._place < ring.start:
            if self._cursor < ring.floor:
                self._place = None
                return await self._source.past(self._cursor, self._want, self._most)
            self._place = ring.place_after(self._cursor)
        chunk = ring.chunk(self._place, self._cursor, self._want, self._most)
        self._place = chunk.place
        return chunk

    async def _checked(self) -> bytes:
        """A cursor beyond the end is of a stream that was longer once, before a power loss or in
        another copy of the home: what the client has of it after the end is not so any more."""
        last = await self._source.last()
        self._is_checked = True
        if self._cursor <= last:
            return b""
        self._cursor = self._marked = last
        return block(b"reset", b'{"seq":%d}' % last, b"%d" % last)
