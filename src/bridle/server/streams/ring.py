"""The latest frames of a stream, for all who follow it.

Owns them, and what was joined of them: most followers are at the same place, so the bytes for one
are the bytes for all. Who has fallen behind its beginning has to read elsewhere.
"""

from __future__ import annotations

from bisect import bisect_right

from msgspec import Struct

from .frames import Frame
from .wants import Want

#: So many frames are kept, and so many bytes of them; then the first quarter is let go.
MAX_FRAMES = 2_048
MAX_BYTES = 4 * 1024 * 1024
#: So much is sent at once, unless one frame is larger. What was sent and not read yet is in memory
#: for each client.
CHUNK_BYTES = 128 * 1024
#: So many of them are kept for others who are at the same place.
MAX_JOINED = 32


class Chunk(Struct, frozen=True, gc=False):
    """Bytes to send. `cursor` is the last number that is in them or was passed over, `told` the
    last that is in them, `count` how many are; `place` is where to go on in the ring."""

    data: bytes
    cursor: int
    told: int = 0
    count: int = 0
    place: int = 0


class Ring:
    """Places count frames from the first that was ever added, numbers are those of events."""

    def __init__(
        self, after: int, max_frames: int = MAX_FRAMES, max_bytes: int = MAX_BYTES
    ) -> None:
        #: All that is stored after this number, up to the last one, is here.
        self.floor = after
        self.last = after
        self.start = 0
        self._max_frames = max_frames
        self._max_bytes = max_bytes
        self._frames: list[Frame] = []
        self._bytes = 0
        self._joined: dict[tuple[int, int | None, Want], Chunk] = {}

    @property
    def end(self) -> int:
        return self.start + len(self._frames)

    def add(self, frame: Frame) -> None:
        self._frames.append(frame)
        self._bytes += frame.size
        self.last = frame.seq
        self._joined.clear()
        if len(self._frames) > self._max_frames or self._bytes > self._max_bytes:
            self._let_go()

    def skip(self, seq: int) -> None:
        """There is nothing to keep up to here."""
        self.start, self._frames, self._bytes = self.end, [], 0
        self.floor = self.last = seq
        self._joined.clear()

    def _let_go(self) -> None:
        frames, size, gone = self._max_frames * 3 // 4, self._max_bytes * 3 // 4, 0
        while gone < len(self._frames) and (
            len(self._frames) - gone > frames or self._bytes > size
        ):
            self._bytes -= self._frames[gone].size
            gone += 1
        self.floor = self._frames[gone - 1].seq
        self.start += gone
        del self._frames[:gone]

    def place_after(self, cursor: int) -> int:
        """Where one is who has had all up to this number, and has not been here yet: what is live
        and was told before is not for them."""
        return self.start + bisect_right(self._frames, cursor, key=_number)

    def chunk(self, place: int, cursor: int, want: Want, most: int | None = None) -> Chunk:
        """What is here for one at this place who has had all up to the cursor; `most` are stored
        events. The same for all who ask the same."""
        while place < self.end and _is_old(self._frames[place - self.start], cursor):
            place += 1  # read from the log, before it was told here
        if place >= self.end:
            return Chunk(b"", cursor, place=place)
        key = (place, most, want)
        chunk = self._joined.get(key)
        if chunk is None:
            if len(self._joined) >= MAX_JOINED:
                self._joined.clear()
            chunk = self._joined[key] = self._join(place, want, most)
        return chunk

    def _join(self, place: int, want: Want, most: int | None) -> Chunk:
        parts, size, count, cursor, told = [], 0, 0, 0, 0
        for frame in self._frames[place - self.start :]:
            if count == most or size >= CHUNK_BYTES:
                break
            place += 1
            cursor = frame.seq
            if want.takes(frame):
                data = frame.wire(want.veil)
                parts.append(data)
                size += len(data)
                if not frame.is_live:
                    count, told = count + 1, frame.seq
        return Chunk(b"".join(parts), cursor, told, count, place)


def _number(frame: Frame) -> int:
    return frame.seq


def _is_old(frame: Frame, cursor: int) -> bool:
    return frame.seq < cursor or (frame.seq == cursor and not frame.is_live)
