"""A person at a terminal: a process under a pseudo-terminal, what they see, and what they type.

Owns the process: it is gone when the block ends, and so is all that it has started.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import signal
import struct
import sys
import termios
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

from tests.cli import forks

from .emulator import Emulator

LIMIT = 30.0
COMMAND = (sys.executable, "-m", "bridle.cli")
_ESCAPES = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]")


class Window:
    """`seen` is all that came, without escapes; `raw` is all that came."""

    def __init__(
        self, process: asyncio.subprocess.Process | forks.Process, master: int, screen: Emulator
    ) -> None:
        self.process = process
        self.screen = screen
        self.raw = ""
        self._master = master
        self._read_to = 0  # of what is seen
        self._bytes = b""
        self._came = asyncio.Event()
        self._is_over = False
        self._wrong: AssertionError | None = None
        os.set_blocking(master, False)
        asyncio.get_running_loop().add_reader(master, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._master, 65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""  # the other side has gone
        if not data:
            self.unplug()
            return
        self._bytes += data
        text = self._bytes.decode(errors="ignore")
        self._bytes = self._bytes[len(text.encode()) :]
        self.raw += text
        try:
            self.screen.feed(text)
        except AssertionError as error:
            self._wrong = error
        self._came.set()

    def unplug(self) -> None:
        asyncio.get_running_loop().remove_reader(self._master)
        self._is_over = True
        self._came.set()

    @property
    def seen(self) -> str:
        return _ESCAPES.sub("", self.raw)

    # --- what the person does

    def types(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def resizes(self, columns: int, lines: int) -> None:
        self.screen.resize(columns, lines)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    async def sees(self, text: str) -> str:
        """Until it has come; all that came since the last time, up to it."""

        def is_there() -> bool:
            return text in self.seen[self._read_to :]

        await self.until(is_there, f"never saw {text!r}")
        start = self._read_to
        self._read_to = self.seen.index(text, start) + len(text)
        return self.seen[start : self._read_to]

    async def shows(self, text: str) -> None:
        """Until it stands on the screen, wherever."""
        await self.until(lambda: text in self.screen.text, f"{text!r} never stood there")

    async def until(self, is_so: Callable[[], bool], otherwise: str) -> None:
        try:
            async with asyncio.timeout(LIMIT):
                while not is_so():
                    self._check()
                    assert not self._is_over, f"{otherwise}, and it has ended:\n{self.seen[-3000:]}"
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            raise AssertionError(
                f"{otherwise}:\n{self.screen.text[-3000:]}\n{self.raw[-1000:]!r}"
            ) from None

    def _check(self) -> None:
        """Nothing was written that a terminal would do something else with."""
        if self._wrong:
            raise self._wrong

    async def ends(self) -> int:
        """Its exit code, once it has ended and all was read."""
        async with asyncio.timeout(LIMIT):
            code = await self.process.wait()
            while not self._is_over:
                self._came.clear()
                await self._came.wait()
        self._check()
        return code


@contextlib.asynccontextmanager
async def window(
    *words: str,
    cwd: Path,
    env: Mapping[str, str],
    size: tuple[int, int] = (80, 24),
    reflows: bool = True,
    command: Sequence[str] = (),
) -> AsyncIterator[Window]:
    """`bridle WORDS` in a terminal of this size, or COMMAND WORDS."""
    master, slave = os.openpty()
    columns, lines = size
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    env = {"TERM": "xterm-256color", **env}
    process: asyncio.subprocess.Process | forks.Process
    if command:
        process = await asyncio.create_subprocess_exec(
            *command, *words, cwd=cwd, env=env, preexec_fn=lambda: os.login_tty(slave)
        )
    else:
        process = forks.Process(forks.Command(words, [slave] * 3, cwd, env, at_terminal=True))
    os.close(slave)
    opened = Window(process, master, Emulator(columns, lines, reflows=reflows))
    try:
        yield opened
    finally:
        opened.unplug()
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(LIMIT):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
        os.close(master)
