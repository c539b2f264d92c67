"""A program that forks controllers and kills them: `python -m tests.supervisor.killing FOLDER`.

For each order on its input (see `Order`) it forks a controller of the folder, kills it when it is
told to, and prints what that said. It imports everything once and has neither a loop nor threads,
so that a fork is quick and safe.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

# What a controller loads when it opens a home: here, so that a fork has it.
import bridle.journal.sqlite.store  # noqa: F401

from .controller import Order, control
from .points import stop_at

REPO = Path(__file__).parents[2]
LIMIT = 100.0


class Said(Struct):
    """What a controller said before its end. `signal`: what ended it."""

    lines: list[str]
    signal: int | None
    #: How long it took until it was up.
    up_seconds: float | None

    @property
    def complaints(self) -> list[str]:
        return [line for line in self.lines if line.startswith("complaint")]


# --- for the tests

Run = Callable[[Order], Awaitable[Said]]


@asynccontextmanager
async def controllers(folder: Path) -> AsyncIterator[Run]:
    """Runs one controller of this folder after the other."""
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.supervisor.killing", str(folder)),
        cwd=REPO,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )
    assert program.stdin
    assert program.stdout
    heard, asked = program.stdout, program.stdin

    async def run(order: Order) -> Said:
        asked.write(msgspec.json.encode(order) + b"\n")
        async with asyncio.timeout(LIMIT + 5):
            said = msgspec.json.decode(await heard.readline(), type=Said)
        assert said.complaints == []
        return said

    try:
        yield run
    finally:
        asked.close()
        try:
            async with asyncio.timeout(LIMIT + 5):
                await program.wait()
        except TimeoutError:
            program.kill()


# --- the program


def main(folder: Path) -> None:
    for line in sys.stdin.buffer:
        said = _run(folder, msgspec.json.decode(line, type=Order))
        sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
        sys.stdout.buffer.flush()


def _run(folder: Path, order: Order) -> Said:
    reading, writing = os.pipe()
    start = time.monotonic()
    pid = os.fork()
    if not pid:
        os.close(reading)
        _be_controller(folder, order, writing)
    os.close(writing)
    watch = _Watch(reading, pid, order, start)
    try:
        watch.read()
    finally:
        os.close(reading)
        _, status = os.waitpid(pid, 0)
    ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    return Said(bytes(watch.heard).decode().splitlines(), ended_by, watch.up_seconds)


class _Watch:
    """Hears all that a controller says, and ends it when it is time."""

    def __init__(self, reading: int, pid: int, order: Order, start: float) -> None:
        self._reading = reading
        self._pid = pid
        self._order = order
        self._start = start
        self._end: float | None = start + LIMIT
        if order.seconds is not None and not order.is_from_up:
            self._end = start + order.seconds
        self.heard = bytearray()
        self.up_seconds: float | None = None

    def read(self) -> None:
        while True:
            left = None if self._end is None else max(0.0, self._end - time.monotonic())
            if not select.select([self._reading], [], [], left)[0]:
                self._finish()
                continue
            data = os.read(self._reading, 1 << 16)
            if not data:
                return
            self.heard += data
            if self.up_seconds is None and b"up\n" in self.heard:
                now = time.monotonic()
                self.up_seconds = now - self._start
                if self._order.seconds is not None and self._order.is_from_up:
                    self._end = now + self._order.seconds

    def _finish(self) -> None:
        is_asked = self._order.ends == "close" and self._end != self._start + LIMIT
        self._end = self._start + LIMIT if is_asked else None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGTERM if is_asked else signal.SIGKILL)


def _be_controller(folder: Path, order: Order, writing: int) -> None:
    def say(line: str) -> None:
        os.write(writing, line.encode() + b"\n")  # short: a pipe takes it whole

    try:
        if order.point:
            stop_at(order.point, say)
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(control(folder, order, say))
    except BaseException:  # noqa: BLE001 - the test must hear of it, whatever it is
        say("complaint " + traceback.format_exc().replace("\n", " | ")[-3500:])
    finally:
        os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
