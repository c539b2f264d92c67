"""The client's side: lines of stdin, and lines to stdout.

Owns a thread for each, so that whatever stands behind them (a pipe, a file, a terminal) makes
nobody else wait: neither a client that says nothing, nor one that does not read.
"""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeAlias

from ...protocol.framing import LineSplitter, Oversize

#: So much is read at a time.
PIECE = 256 * 1024
#: So many lines may wait to be looked at; the client waits with the next.
AHEAD = 1000

_Written: TypeAlias = tuple[bytes, "asyncio.Future[None]"]


class Pipes:
    """Made inside of the loop. What is read stops at the end of stdin, or when nobody reads what we
    write: then the client has gone."""

    def __init__(self, source: int, sink: int, longest: int) -> None:
        self._source, self._sink = source, sink
        self._loop = asyncio.get_running_loop()
        self._splitter = LineSplitter(longest)
        self._lines: asyncio.Queue[bytes | Oversize | None] = asyncio.Queue()
        self._room = threading.Semaphore(AHEAD)
        self._written: SimpleQueue[_Written] = SimpleQueue()
        # They have nothing to bring to an end: whoever waits in a system call is left there.
        for work in (self._read, self._write):
            threading.Thread(target=work, daemon=True).start()

    async def line(self) -> bytes | Oversize | None:
        """The next one; None when there will be none."""
        line = await self._lines.get()
        self._room.release()
        return line

    async def write(self, line: bytes) -> None:
        """Until the client has it, or as good as. BrokenPipeError when nobody is there."""
        done = self._loop.create_future()
        self._written.put((line, done))
        await done

    # --- in threads

    def _read(self) -> None:
        with suppress(OSError):
            while data := os.read(self._source, PIECE):
                for line in self._splitter.feed(data):
                    self._put(line)
        for line in self._splitter.finish():
            self._put(line)
        self._put(None)

    def _put(self, line: bytes | Oversize | None) -> None:
        self._room.acquire()
        self._later(self._lines.put_nowait, line)

    def _write(self) -> None:
        while True:
            line, done = self._written.get()
            try:
                _write_all(self._sink, line + b"\n")
            except OSError as error:
                self._later(_fail, done, error)
                self._later(self._lines.put_nowait, None)
            else:
                self._later(_succeed, done)

    def _later(self, *call: object) -> None:
        with suppress(RuntimeError):  # the loop has ended, and nobody wants to know
            self._loop.call_soon_threadsafe(*call)  # type: ignore[arg-type]


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def _succeed(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def _fail(done: asyncio.Future[None], error: OSError) -> None:
    if not done.done():
        done.set_exception(BrokenPipeError(str(error)))
