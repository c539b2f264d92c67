"""One key, or one line, from a terminal, without blocking the loop; what is waited for can be
given up at any moment.

Owns the terminal's mode: it is put back as it was, whatever happens.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

if sys.platform != "win32":
    import termios
    import tty


class Keyboard:
    """A terminal that is read key by key."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._left = b""

    @property
    def is_terminal(self) -> bool:
        return os.isatty(self._fd)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Keys come one by one and are not shown, until the end."""
        before = termios.tcgetattr(self._fd)
        try:
            # What was typed already is kept: who asks something forgets it (`forget`).
            tty.setcbreak(self._fd, termios.TCSADRAIN)
            yield
        finally:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, before)

    @contextmanager
    def given_back(self) -> Iterator[None]:
        """For a while as other programs expect it: an editor, for example."""
        now = termios.tcgetattr(self._fd)
        lines = termios.tcgetattr(self._fd)
        lines[3] |= termios.ICANON | termios.ECHO | termios.ISIG
        termios.tcsetattr(self._fd, termios.TCSADRAIN, lines)
        try:
            yield
        finally:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, now)

    def forget(self) -> None:
        """Drop what was typed before the question: it was not meant for it."""
        termios.tcflush(self._fd, termios.TCIFLUSH)
        self._left = b""

    async def key(self) -> str:
        """The next key; "" at the end of the input."""
        while True:
            text = self._decoded()
            if text:
                return text
            read = await self._read()
            if not read:
                return ""
            self._left += read

    def _decoded(self) -> str:
        """One character from what is there, if it is all there."""
        for size in range(1, min(4, len(self._left)) + 1):
            try:
                text = self._left[:size].decode()
            except UnicodeDecodeError:
                continue
            self._left = self._left[size:]
            return text
        if len(self._left) >= 4:
            self._left = self._left[1:]  # no character at all
        return ""

    async def _read(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not ready.done():
                ready.set_result(None)

        loop.add_reader(self._fd, wake)
        try:
            await ready
        finally:
            loop.remove_reader(self._fd)
        try:
            return os.read(self._fd, 1024)
        except OSError:
            return b""  # the terminal is gone
