"""Real shims for these tests, with their spools, and how to wait for what comes there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Protocol

from bridle.process import shim
from bridle.process.arguments import MARKER
from bridle.process.detached import DetachedProcess
from bridle.process.spool import Spool
from bridle.process.transport import Exit
from bridle.process.tree import Tree
from bridle.process.wake import Wakes

from .children import LIMIT, Heard, python

ECHO = ["/bin/sh", "-c", "exec cat #"]
READY = python("import os; os.write(1, b'ready\\n'); os.read(0, 1)")
#: Hears nothing but SIGKILL.
DEAF = python(
    """
    import os, signal, time
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.write(1, b"ready\\n")
    while True: time.sleep(600)
    """
)


class Shimmed:
    """A shim that runs, as a process of this test."""

    def __init__(self, spool: Spool, wakes: Wakes, process: subprocess.Popen[bytes]) -> None:
        self.spool = spool
        self.process = process
        self._wakes = wakes

    def say(self, data: bytes) -> None:
        self.spool.append(data)
        assert self.spool.ring()

    def heard(self) -> bytes:
        return self.spool.read("stdout", 0, 1 << 30)

    async def until(self, done: Callable[[], bool], limit: float = LIMIT) -> None:
        """Wait for what changes in the spool until this is true."""
        await until_spool(self._wakes, self.spool, done, limit)

    async def line(self) -> str:
        """The first line of the output."""
        await self.until(lambda: b"\n" in self.heard())
        return self.heard().split(b"\n")[0].decode()

    async def end(self) -> Exit:
        """How the CLI ended."""
        await self.until(lambda: self.spool.exit() is not None)
        status = self.spool.exit()
        assert status
        return status

    def left(self) -> int:
        """Wait for the shim itself; its status."""
        return self.process.wait(LIMIT)

    def cli(self) -> int:
        cli = self.spool.cli()
        assert cli
        return cli.pid


class RunShim(Protocol):
    """The fixture `run_shim`: a shim that has started its command."""

    def __call__(self, command: list[str], *, folder: Path | None = ...) -> Awaitable[Shimmed]: ...


class Detach(Protocol):
    """The fixture `detach`: a CLI that runs behind a shim, and what is heard of it."""

    def __call__(
        self, command: list[str], **options: object
    ) -> Awaitable[tuple[DetachedProcess, Heard]]: ...


class TakeUp(Protocol):
    """The fixture `take_up`: another controller's view of what somebody else has started."""

    def __call__(self, spool: Spool, launch: str) -> DetachedProcess: ...


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def inotify_files() -> int:
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return sum("inotify" in str(link.readlink()) for link in links)


async def until_spool(
    wakes: Wakes, spool: Spool, done: Callable[[], bool], limit: float = LIMIT
) -> None:
    news = asyncio.Event()
    watch = wakes.watch(spool.folder, lambda _: news.set())
    try:
        async with asyncio.timeout(limit):
            while not done():
                news.clear()
                await news.wait()
    finally:
        watch.close()


@contextlib.asynccontextmanager
async def shims(wakes: Wakes, mark: str, base: Path) -> AsyncIterator[RunShim]:
    """Starts shims, and ends them and all below them."""
    running: list[Shimmed] = []

    async def run_shim(command: list[str], *, folder: Path | None = None) -> Shimmed:
        spool = Spool(folder or base / f"spool-{len(running)}")
        spool.make()
        process = _start(spool, command, mark)
        shimmed = Shimmed(spool, wakes, process)
        running.append(shimmed)
        return shimmed

    yield run_shim
    tree = Tree(0, mark)
    while not tree.is_gone():
        await tree.signal(9)
    for shimmed in running:
        shimmed.left()


def _start(spool: Spool, command: list[str], mark: str) -> subprocess.Popen[bytes]:
    with (spool.folder / "stderr").open("ab") as errors:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", shim.__file__, str(spool.folder), "--", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**os.environ, MARKER: mark},
            start_new_session=True,
        )
