"""The two ends of a child's pipes, on the event loop and without its streams.

Owns reading in bounded pieces and writing in order; does not know what the bytes mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import deque
from collections.abc import Callable

READ_SIZE = 64 * 1024
#: What is asked for while little comes: room that is not used costs more than the read itself.
SMALL_READ = 8 * 1024
#: How much of whole lines is given in one tick: what another session may have to wait for. To read
#: no more than that would be fair too, and wake the writer twice as often.
SLICE = 32 * 1024
#: How many pieces of one long line may be taken in a row. Each is cheap until the line is whole.
READS_PER_TICK = 16
LARGE_PIPE = 1024 * 1024


class OutputPipe:
    """What a child writes, piece by piece: at most one piece with whole lines in each tick.

    So one loud child can't starve another, and a long line still comes fast.
    """

    def __init__(self, fd: int, take: Callable[[bytes], None], end: Callable[[], None]) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._take = take
        self._end = end
        self._is_large = False
        self._size = SMALL_READ
        self._unbroken = 0
        #: What was read, and how much of it was given.
        self._held, self._given = b"", 0
        self._is_giving = False
        #: How much to read yet, once the child is gone.
        self._left: int | None = None
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(fd, self._readable)

    @property
    def is_open(self) -> bool:
        return self._fd >= 0

    def _readable(self) -> None:
        if self._is_giving:
            return
        for _ in range(READS_PER_TICK):
            if self._fd < 0:
                return
            try:
                data = self._read()
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data = b""
            if not data:
                self._over()
                return
            goes_on = self._goes_on(data)
            if len(data) > SLICE and not goes_on:
                self._held, self._given, self._is_giving = data, 0, True
                self._give()
                return
            self._take(data)
            if not goes_on:
                return

    def _give(self) -> None:
        """The next slice of what was read, up to the end of a line if there is one."""
        data, start = self._held, self._given
        if start >= len(data) or self._fd < 0:
            self._held, self._is_giving = b"", False
            return
        end = data.rfind(b"\n", start, start + SLICE) + 1 or start + SLICE
        self._given = end
        # Before anything is told, because whoever is told may fail.
        self._loop.call_soon(self._give)
        self._take(data[start:end])

    def _goes_on(self, data: bytes) -> bool:
        """Whether to read on at once: a long line is being written, and nothing is done with it."""
        is_full = len(data) >= self._size
        self._size = READ_SIZE if is_full or len(data) >= SMALL_READ else SMALL_READ
        if b"\n" in data:
            self._unbroken = 0
            return False
        self._unbroken += len(data)
        if self._unbroken >= READ_SIZE:
            self._enlarge()
        return is_full

    def _read(self) -> bytes:
        if self._left is None:
            return os.read(self._fd, self._size)
        data = os.read(self._fd, min(self._left, READ_SIZE)) if self._left else b""
        self._left -= len(data)
        return data

    def finish(self) -> None:
        """The child is gone: read what it left, then end, whoever else holds or fills the pipe."""
        if self._fd >= 0:
            self._left = _unread(self._fd)
            self._loop.remove_reader(self._fd)
            self._loop.call_soon(self._rest)

    def _rest(self) -> None:
        if self._fd >= 0:
            # Before anything is told, because whoever is told may fail.
            self._loop.call_soon(self._rest)
            self._readable()

    def drain(self) -> None:
        """Take what is there now, at once."""
        held, self._held = self._held[self._given :], b""
        if held:
            self._take(held)
        if self._fd >= 0 and (size := _unread(self._fd)):
            self._take(os.read(self._fd, size))

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _over(self) -> None:
        self.close()
        self._end()

    def _enlarge(self) -> None:
        # Only for long lines: the pipes of a user share a budget, and small ones are the rule.
        if not self._is_large and self._fd >= 0:
            self._is_large = True
            with contextlib.suppress(ImportError, AttributeError, OSError):
                import fcntl

                fcntl.fcntl(self._fd, fcntl.F_SETPIPE_SZ, LARGE_PIPE)


def _unread(fd: int) -> int:
    import fcntl
    import termios

    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)


class InputPipe:
    """What a child reads: every write whole and in order, whether or not it reads now."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._waiting: deque[memoryview] = deque()
        self._is_closing = False
        self._loop = asyncio.get_running_loop()

    def write(self, data: bytes) -> None:
        if self._fd < 0 or self._is_closing or not data:
            return
        if not self._waiting:
            written = self._write(data)
            if written == len(data):
                return
            if self._fd < 0:
                return
            self._loop.add_writer(self._fd, self._writable)
            self._waiting.append(memoryview(data)[written:])
        else:
            self._waiting.append(memoryview(data))

    def close(self) -> None:
        """After what is waiting was written."""
        self._is_closing = True
        if not self._waiting:
            self.abandon()

    def abandon(self) -> None:
        """Now, whatever is waiting: nobody will read it."""
        if self._fd >= 0:
            if self._waiting:
                self._loop.remove_writer(self._fd)
            self._waiting.clear()
            os.close(self._fd)
            self._fd = -1

    def _write(self, data: bytes | memoryview) -> int:
        try:
            return os.write(self._fd, data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            # The child has closed its end. That it is gone will be seen at its output.
            self.abandon()
            return 0

    def _writable(self) -> None:
        while self._waiting:
            piece = self._waiting[0]
            written = self._write(piece)
            if written < len(piece):
                if self._waiting:
                    self._waiting[0] = piece[written:]
                return
            self._waiting.popleft()
        self._loop.remove_writer(self._fd)
        if self._is_closing:
            self.abandon()
