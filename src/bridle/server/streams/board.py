"""Everything that a dashboard shows, as one stream: the latest of each thing, in order of change.

Owns the numbers of the changes, and how long one that is over is remembered. It is no log: who is
slow, or was away, gets the latest state of each thing that has changed meanwhile, and who was away
for too long gets all of the present.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from ...ids import new_token
from .crowd import Crowd
from .frames import BEAT, Frame, block
from .ring import CHUNK_BYTES, MAX_JOINED, Chunk
from .wants import Want

Name: TypeAlias = Literal["session", "session.deleted", "approval", "fleet"]

#: So many things that are over are remembered, for those who were away: sessions that were
#: deleted, approvals that are finished.
MAX_OVER = 1_000

_encode = msgspec.json.Encoder().encode


class Place(Struct, frozen=True):
    """Where a client was: at the change `number` of a board that had this name."""

    boot: str
    number: int


def place_of(text: str) -> Place | None:
    """From the id of an event, as a client gives it back; None if it is none."""
    boot, _, number = text.rpartition("-")
    is_one = boot.isalnum() and number.isascii() and number.isdecimal() and len(number) < 16
    return Place(boot, int(number)) if is_one else None


class Board:
    """Things are known by a key, and those that are not there any more for some time too."""

    def __init__(self, max_over: int = MAX_OVER) -> None:
        self.boot = new_token(4)
        self.crowd = Crowd()
        #: The number of the last change, and of the last one that was forgotten.
        self.last = 0
        self.floor = 0
        self._max_over = max_over
        #: In order of change.
        self._frames: dict[str, Frame] = {}
        self._over: dict[str, None] = {}
        self._joined: dict[tuple[int, int, Want], Chunk] = {}

    def put(self, key: str, name: Name, what: object, *, is_over: bool = False) -> None:
        """Something is so now; `is_over`: it is no part of the present any more."""
        self.last += 1
        self._frames.pop(key, None)
        self._over.pop(key, None)
        blocks = [(name.encode(), _encode(what))]
        self._frames[key] = Frame(self.last, name, blocks, id=f"{self.boot}-{self.last}")
        if is_over:
            self._over[key] = None
            while len(self._over) > self._max_over:
                oldest = next(iter(self._over))
                del self._over[oldest]
                self.floor = self._frames.pop(oldest).seq
        self._joined.clear()
        self.crowd.call()

    def is_known(self, place: Place | None) -> bool:
        """Whether one can go on from there."""
        return place is not None and (
            place.boot == self.boot and self.floor <= place.number <= self.last
        )

    def after(self, number: int, begun: int, want: Want) -> Chunk:
        """What has changed since; what was over when the client had begun is not told."""
        key = (number, begun, want)
        if key not in self._joined:
            if len(self._joined) >= MAX_JOINED:
                self._joined.clear()
            self._joined[key] = self._join(number, begun, want)
        return self._joined[key]

    def _join(self, number: int, begun: int, want: Want) -> Chunk:
        found = []
        for key, frame in reversed(self._frames.items()):
            if frame.seq <= number:
                break
            if frame.seq > begun or key not in self._over:
                found.append(frame)
        parts, size = [], 0
        while found and size < CHUNK_BYTES:
            frame = found.pop()
            parts.append(frame.wire(want.veil))
            size += len(parts[-1])
            number = frame.seq
        return Chunk(b"".join(parts), number if found else self.last)


class BoardFollower:
    """One who follows the board, from a place or from the present."""

    def __init__(self, board: Board, place: Place | None, want: Want) -> None:
        self._board = board
        self._want = want
        self._is_fresh = place is None or not board.is_known(place)
        self._number = 0 if place is None or self._is_fresh else place.number
        self._begun = board.last if self._is_fresh else 0

    @property
    def crowd(self) -> Crowd:
        return self._board.crowd

    @property
    def is_over(self) -> bool:
        return False

    async def more(self) -> bytes:
        if self._board.floor > max(self._number, self._begun):
            # It is too slow: what it has missed is forgotten.
            self._is_fresh, self._number, self._begun = True, 0, self._board.last
        chunk = self._board.after(self._number, self._begun, self._want)
        self._number = chunk.cursor
        if not self._is_fresh:
            return chunk.data
        self._is_fresh = False
        return block(b"reset", b"{}") + chunk.data

    def beat(self) -> bytes:
        return BEAT
