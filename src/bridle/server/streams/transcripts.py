"""What is folded from a session's stream, kept up to date while somebody looks at it.

Owns one fold of each view per session, shared by all who look: the first look reads the stream from
its beginning, in slices, and from then on the fold grows with it. Those who follow a transcript get
each entry again when it has changed.
"""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence

import msgspec

from ...errors import BridleError, UnknownSession
from ...journal import Event, EventLog, Live
from ...supervisor.notes import entry as entry_of
from ...views import (
    FilesState,
    Timeline,
    Transcript,
    TranscriptEntry,
    UsageState,
    files,
    read,
    usage,
)
from .channel import Channel, Sizes
from .frames import Frame, live_frame
from .ring import CHUNK_BYTES, Chunk
from .wants import Want

ENTRY = b"entry"
DELTA = "delta"

_encode = msgspec.json.Encoder().encode


class Story(Channel):
    """All views of one session. It is a channel of entries: a frame is what one event has added to
    the transcript and changed in it, `seq` the number of that event."""

    def __init__(self, log: EventLog, stream: str, sizes: Sizes) -> None:
        self.transcript = Transcript()
        self.timeline = Timeline()
        self.files = FilesState()
        self.usage = UsageState()
        #: Each change of an entry in order: the event's number, and the entry's position.
        self._changes = array("q")
        self._positions = array("q")
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        super().__init__(log, stream, 0, sizes)

    @property
    def seq(self) -> int:
        """The last event that is in it."""
        return self.transcript.state.seq

    async def reached(self, seq: int) -> None:
        """Until this event is in it."""
        if self.seq < seq:
            done = self._loop.create_future()
            self._waiting.append((seq, done))
            await done

    async def past(self, cursor: int, want: Want, most: int | None) -> Chunk:
        """Entries whose latest change is after the cursor, in the order of these changes."""
        parts: list[bytes] = []
        size, count, at = 0, 0, bisect_right(self._changes, cursor)
        while at < len(self._changes) and size < CHUNK_BYTES and count != most:
            seq, first = self._changes[at], at
            while at < len(self._changes) and self._changes[at] == seq:
                at += 1
            found = self._still(seq, self._positions[first:at])
            if found:
                parts.append(_frame(seq, found).wire(want.veil))
                size += len(parts[-1])
                cursor, count = seq, count + 1
        told = cursor if count else 0
        if at == len(self._changes):
            cursor = max(cursor, self.seq)
        await asyncio.sleep(0)  # there may be many of them, and no disk is waited for
        return Chunk(b"".join(parts), cursor, told, count)

    def _still(self, seq: int, positions: Sequence[int]) -> list[TranscriptEntry]:
        """Of what the event changed, what nothing has changed since."""
        found = (self.transcript.page(after=at - 1, limit=1)[0] for at in positions)
        return [entry for entry in found if entry.changed == seq]

    async def last(self) -> int:
        last = await super().last()
        await self.reached(last)
        return last

    async def aclose(self) -> None:
        self._failed(UnknownSession(self.stream))
        await super().aclose()

    def _frames(self, event: Event | Live) -> Iterable[Frame]:
        if isinstance(event, Live):
            return (live_frame(event, self.seq, DELTA),) if self.crowd else ()
        reading = read(entry_of(event))
        self.timeline.add(reading)
        files.fold(self.files, reading)
        usage.fold(self.usage, reading)
        changes = self.transcript.add(reading)
        if not changes:
            return ()
        found = sorted((*changes.added, *changes.changed), key=_position)
        for entry in found:
            self._changes.append(event.seq)
            self._positions.append(entry.position)
        self.weight = len(self._changes) + len(self.timeline)
        if self.crowd:
            return (_frame(event.seq, found),)
        self.ring.skip(event.seq)  # nobody follows: who comes later reads the entries themselves
        return ()

    def _grown(self) -> None:
        super()._grown()
        for seq, done in self._waiting:
            if seq <= self.seq and not done.done():
                done.set_result(None)
        self._waiting = [(seq, done) for seq, done in self._waiting if not done.done()]

    def _failed(self, error: BridleError) -> None:
        for _, done in self._waiting:
            if not done.done():
                done.set_exception(error)
        self._waiting = []


def _frame(seq: int, entries: Sequence[TranscriptEntry]) -> Frame:
    return Frame(seq, "entry", [(ENTRY, _encode(entry)) for entry in entries], id=str(seq))


def _position(entry: TranscriptEntry) -> int:
    return entry.position
