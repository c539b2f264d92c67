"""Following a file that another process appends to, on the event loop and without its streams.

Owns reading in bounded pieces, in order and each byte once. Does not know what the bytes mean, and
is told by others when there may be more (`wake`).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Protocol

READ_SIZE = 64 * 1024
#: What is asked for while little comes: room that is not used costs more than the read itself.
SMALL_READ = 8 * 1024
#: How many lines are given at once, so that what they say fits one batch of a journal.
LINES = 500
#: How many pieces of one long line may be taken in a row. Each is cheap until the line is whole.
READS_PER_TICK = 16
#: How long to wait where a file can't be opened or read.
RETRY_SECONDS = 0.5

_log = logging.getLogger("bridle.process")


class Readable(Protocol):
    """A file that grows."""

    def read(self, start: int, size: int, /) -> bytes: ...

    def size(self) -> int: ...

    def close(self) -> None: ...


class OpenFile:
    """A file that is held open: to open it for every piece would take as long as the read."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY)

    def read(self, start: int, size: int) -> bytes:
        return os.pread(self._fd, size, start)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Following:
    """What is appended, piece by piece: at most one piece with whole lines in each tick.

    So one loud child can't starve another, and a long line still comes fast. `take` gets the
    pieces, `end` is called once when all is read after `finish`.
    """

    def __init__(
        self, file: Readable, start: int, take: Callable[[bytes], None], end: Callable[[], None]
    ) -> None:
        self._file: Readable | None = file
        self._offset = start
        self._take = take
        self._end = end
        self._size = SMALL_READ
        #: How far to read, once nobody writes any more.
        self._last: int | None = None
        self.is_paused = False
        self._loop = asyncio.get_running_loop()
        self._next: asyncio.Handle | None = None

    @property
    def offset(self) -> int:
        """Where the next piece begins: all before it was given."""
        return self._offset

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def woken(self) -> None:
        """There may be more."""
        # Where a step is due already, it will see it.
        if self._next is None and not self.is_paused:
            self._step()

    def pause(self) -> None:
        self.is_paused = True
        self._unplan()

    def resume(self) -> None:
        self.is_paused = False
        self._plan()

    def finish(self) -> None:
        """Its writer is gone: read what it left, then end, whoever else writes to the file."""
        if self._file and self._last is None:
            self._last = self._file.size()
            self._plan()

    def close(self) -> None:
        self._unplan()
        if self._file:
            self._file.close()
            self._file = None

    def _plan(self) -> None:
        if self._file and self._next is None and not self.is_paused:
            self._next = self._loop.call_soon(self._step)

    def _unplan(self) -> None:
        if self._next:
            self._next.cancel()
            self._next = None

    def _step(self) -> None:
        self._next = None
        for _ in range(READS_PER_TICK):
            if self._file is None or self.is_paused:
                return
            try:
                piece, has_more = self._piece(self._file)
            except OSError as error:
                # No descriptor is left, perhaps: what is there can be read later.
                _log.warning("what an agent wrote can't be read: %s; it will be tried again", error)
                self._next = self._loop.call_later(RETRY_SECONDS, self._step)
                return
            if not piece:
                if self._last is not None:
                    self.close()
                    self._end()
                return
            self._offset += len(piece)
            if has_more or self._last is not None:
                # Before anything is told, because whoever is told may fail.
                self._plan()
            self._take(piece)
            if not has_more or b"\n" in piece:
                return
            self._unplan()
        self._plan()

    def _piece(self, file: Readable) -> tuple[bytes, bool]:
        """The next piece, up to the end of a line if there is one, and whether there is more."""
        wanted = self._size
        if self._last is not None:
            wanted = max(0, min(READ_SIZE, self._last - self._offset))
        data = file.read(self._offset, wanted) if wanted else b""
        is_full = len(data) == wanted
        self._size = READ_SIZE if is_full or len(data) >= SMALL_READ else SMALL_READ
        whole = len(data)
        if data.count(b"\n") > LINES:
            whole -= len(data.split(b"\n", LINES)[LINES])
        elif is_full:
            whole = data.rfind(b"\n") + 1 or whole
        return data[:whole], is_full or whole < len(data)
