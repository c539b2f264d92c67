"""Real children for these tests, what is heard of them, and how to see that they are gone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Protocol

import psutil

from bridle.process.child import ChildProcess
from bridle.process.fork_client import Guarded
from bridle.process.transport import StopLimits

LIMIT = 15.0
#: For tests that want a child ended, and not to see how.
AT_ONCE = StopLimits(graceful=0, signal=0.05, total=5)
#: In the environment and, where a child has none, among the words of all that a test starts.
MARK = "BRIDLE_TEST"


class Start(Protocol):
    """The fixture `start`: a child that runs, and what is heard of it."""

    def __call__(
        self, command: list[str], **options: object
    ) -> Awaitable[tuple[ChildProcess, Heard]]: ...


class Heard:
    """A receiver that keeps what it is told."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.complaints: list[str] = []
        self.endings = 0
        self._news = asyncio.Event()

    def received(self, data: bytes) -> None:
        assert not self.endings, "output after the end"
        self.data += data
        self._news.set()

    def complained(self, text: str) -> None:
        self.complaints.append(text)
        self._news.set()

    def ended(self) -> None:
        self.endings += 1
        self._news.set()

    async def until(self, done: Callable[[], bool], limit: float = LIMIT) -> None:
        """Wait for what is told next until this is true."""
        async with asyncio.timeout(limit):
            while not done():
                self._news.clear()
                await self._news.wait()

    async def line(self) -> str:
        """The first line of the output."""
        await self.until(lambda: b"\n" in self.data)
        return self.data.split(b"\n")[0].decode()

    async def end(self, limit: float = LIMIT) -> str:
        """All of the output."""
        await self.until(lambda: self.endings > 0, limit)
        return self.data.decode()


class Lifeline:
    """A pipe that all processes of a tree hold open; `words` tell the tree of it, and the mark."""

    def __init__(self, mark: str, path: Path) -> None:
        os.mkfifo(path)
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.words = [mark, str(path)]

    def is_held(self) -> bool:
        """Whether any of them is left, wherever it hides."""
        try:
            os.read(self._fd, 1)
        except BlockingIOError:
            return True
        return False

    def close(self) -> None:
        os.close(self._fd)


def python(code: str, *words: str) -> list[str]:
    """A command that runs this code; what a CLI would be told comes after the words."""
    return [sys.executable, "-I", "-S", "-c", textwrap.dedent(code), *words]


def program(path: Path, text: str) -> str:
    """An executable script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def marked(mark: str) -> list[int]:
    """The pids of all that is alive and carries the mark."""
    pids = [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]
    return [pid for pid in pids if _carries(pid, mark.encode()) and is_alive(pid)]


def _carries(pid: int, mark: bytes) -> bool:
    with contextlib.suppress(OSError):
        folder = Path(f"/proc/{pid}")
        return mark in (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
    return False


def is_alive(pid: int) -> bool:
    """A zombie is not."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def until_zombie(pid: int) -> None:
    """Hold the loop until our child has ended, and leave it to be reaped."""
    # A thread that waits for it may be faster.
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def until_gone(pid: int) -> None:
    """Hold the loop until a process that is not our child has ended."""
    end = time.monotonic() + LIMIT
    while is_alive(pid):
        assert time.monotonic() < end


def end_guarded(child: Guarded) -> None:
    """End a CLI by its guardian, and close its pipes."""
    child.life.close()
    until_gone(child.pid)
    until_gone(child.guardian)
    for fd in (child.stdin, child.stdout, child.stderr):
        with contextlib.suppress(OSError):
            os.close(fd)


def take_status(pid: int) -> None:
    """Reap our child before anybody else does."""
    os.waitpid(pid, 0)


async def gone(pids: list[int], limit: float) -> bool:
    """Whether all of them end in this time. Nobody tells us when somebody else's child ends."""
    end = time.monotonic() + limit
    while any(map(is_alive, pids)):
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.01)
    return True


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    """Fails if it waited for what sleeps for minutes; how fast the machine is does not matter."""
    start = time.monotonic()
    yield
    took = time.monotonic() - start
    assert took < 30, f"took {took:.2f} s"
