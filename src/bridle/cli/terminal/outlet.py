"""The way out to a terminal or a pipe, for which nobody waits.

Owns a thread that writes: a reader that has stopped reading must not keep an agent from being
interrupted. Who has much to show asks for `room` first; `drained` waits to the end, not for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import threading
from queue import SimpleQueue
from typing import Self

#: With more than this unwritten, who shows things waits.
MOST_BEHIND = 1024 * 1024


class Outlet:
    """Writes texts to one descriptor, in order. `gone` is set when nobody can read them."""

    def __init__(self, fd: int) -> None:
        # One of its own, closed by the thread alone: a number that somebody else has closed may be
        # another file's by the time that the rest is written.
        self._fd = os.dup(fd)
        self._is_terminal = os.isatty(fd)
        self._queue: SimpleQueue[bytes] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._behind = 0
        self._moved = asyncio.Event()
        self._is_closed = False
        self._idle = threading.Event()
        self._idle.set()
        self.gone = asyncio.Event()
        #: How long the end waits for a reader who reads nothing.
        self.patience = 5.0
        # A daemon: one that hangs in a write does not keep the program from ending.
        self._thread = threading.Thread(target=self._work, name="bridle outlet", daemon=True)
        self._thread.start()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.drained()
        self._is_closed = True
        self._queue.put(b"")

    def write(self, text: str) -> int:
        data = text.encode("utf-8", "replace")
        if data and not self.gone.is_set() and not self._is_closed:
            self._behind += len(data)
            self._idle.clear()
            self._queue.put(data)
        return len(text)

    def flush(self) -> None:
        """What was written is on its way already."""

    def isatty(self) -> bool:
        return self._is_terminal

    def settle(self, seconds: float = 0.5) -> None:
        """Wait here and now until it is written: for who is about to be stopped."""
        self._idle.wait(seconds)

    async def room(self) -> None:
        """Until not too much waits to be written, or nobody reads it."""
        await self._until(MOST_BEHIND)

    async def drained(self) -> None:
        """Until all of it is written; or not, if that takes too long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.patience):
                await self._until(0)

    async def _until(self, most: int) -> None:
        while self._behind > most and not self.gone.is_set():
            self._moved.clear()
            await self._moved.wait()

    # --- in the thread

    def _work(self) -> None:
        try:
            self._write_all()
        finally:
            os.close(self._fd)

    def _write_all(self) -> None:
        while data := self._queue.get():
            try:
                self._write(data)
            except OSError:
                self._tell(self._is_gone)
                return
            if self._queue.empty():
                self._idle.set()
            self._tell(self._wrote, len(data))

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._fd, view) :]
            except BlockingIOError:  # somebody else has made it so
                select.select([], [self._fd], [])

    def _tell(self, what: object, *facts: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(what, *facts)  # type: ignore[arg-type]

    # --- in the loop

    def _wrote(self, size: int) -> None:
        self._behind -= size
        self._moved.set()

    def _is_gone(self) -> None:
        self.gone.set()
        self._moved.set()
