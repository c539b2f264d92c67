"""When a child ends it is told, once and on the loop: by a pidfd, or else by a thread."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bridle.process.exits import (
    LifeWatch,
    PidfdWatch,
    ThreadWatch,
    leave,
    reap,
    reap_left,
    watch_exit,
    watch_life,
)
from bridle.process.transport import Exit

from .children import LIMIT, gone, is_alive, take_status, until_zombie
from .spools import open_files

WATCHES = [PidfdWatch, ThreadWatch]

Run = Callable[[str], int]


@pytest.fixture
def run() -> Iterator[Run]:
    """Starts a shell script; gives its pid."""
    children: list[subprocess.Popen[bytes]] = []

    def run(script: str) -> int:
        children.append(subprocess.Popen(["/bin/sh", "-c", script], stdin=subprocess.PIPE))
        return children[-1].pid

    yield run
    for child in children:
        # Popen knows nothing of who has reaped it.
        child.kill()
        child.wait()
        assert child.stdin
        child.stdin.close()


class Told:
    """Keeps what is told, and on which thread."""

    def __init__(self) -> None:
        self.exits: list[Exit] = []
        self.threads: list[int] = []
        self._came = asyncio.Event()

    def __call__(self, status: Exit) -> None:
        self.exits.append(status)
        self.threads.append(threading.get_ident())
        self._came.set()

    async def exit(self) -> Exit:
        await asyncio.wait_for(self._came.wait(), LIMIT)
        assert len(self.exits) == 1
        assert self.threads == [threading.get_ident()]
        return self.exits[0]


@pytest.mark.parametrize("watch", WATCHES)
@pytest.mark.parametrize(
    ("script", "status", "words"),
    [
        ("exit 0", Exit(code=0), "exited with 0"),
        ("exit 7", Exit(code=7), "exited with 7"),
        ("kill -TERM $$", Exit(signal=15), "was ended by SIGTERM"),
        ("kill -KILL $$", Exit(signal=9), "was ended by SIGKILL"),
        ("kill -40 $$", Exit(signal=40), "was ended by signal 40"),
    ],
)
async def test_the_exit_is_told(
    run: Run, watch: Callable[..., Any], script: str, status: Exit, words: str
) -> None:
    watch(run(script), told := Told())
    assert await told.exit() == status
    assert str(status) == words


@pytest.mark.parametrize("watch", WATCHES)
async def test_a_child_that_has_ended_before_it_is_watched_is_told(
    run: Run, watch: Callable[..., Any]
) -> None:
    pid = run("exit 5")
    until_zombie(pid)
    watch(pid, told := Told())
    assert await told.exit() == Exit(code=5)


async def test_a_child_that_somebody_else_has_reaped_is_told_without_its_status(run: Run) -> None:
    pid = run("read line")
    watch = PidfdWatch(pid, told := Told())
    os.kill(pid, signal.SIGKILL)
    take_status(pid)
    assert await told.exit() == Exit()
    assert str(Exit()) == "ended, and another part of this program took its exit status"
    watch.close()


async def test_a_child_that_was_reaped_before_it_is_watched_is_told_too(run: Run) -> None:
    pid = run("exit 0")
    take_status(pid)
    assert isinstance(watch_exit(pid, told := Told()), ThreadWatch)
    assert await told.exit() == Exit()


@pytest.mark.parametrize("watch", WATCHES)
async def test_a_watch_that_is_closed_tells_nothing(run: Run, watch: Callable[..., Any]) -> None:
    pid = run("read line")
    closed = watch(pid, told := Told())
    closed.close()
    closed.close()
    os.kill(pid, signal.SIGKILL)
    assert await gone([pid], LIMIT)
    for _ in range(5):
        await asyncio.sleep(0)
    assert told.exits == []


async def test_the_pidfd_is_preferred_and_has_no_thread(run: Run) -> None:
    before = threading.active_count()
    watch = watch_exit(run("exit 0"), told := Told())
    assert isinstance(watch, PidfdWatch)
    assert threading.active_count() <= before  # one of an earlier test may end now
    await told.exit()


@pytest.mark.parametrize("how", ["it is missing", "it is forbidden"])
async def test_without_a_pidfd_a_thread_waits(
    run: Run, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    def forbidden(pid: int) -> int:
        raise PermissionError("not in this sandbox")

    if how == "it is missing":
        monkeypatch.delattr("os.pidfd_open")
    else:
        monkeypatch.setattr("os.pidfd_open", forbidden)
    watch = watch_exit(run("exit 9"), told := Told())
    assert isinstance(watch, ThreadWatch)
    assert await told.exit() == Exit(code=9)


def test_a_loop_that_is_closed_before_the_child_ends_is_survived(run: Run) -> None:
    pid = run("read line")

    async def watch() -> None:
        ThreadWatch(pid, lambda _: pytest.fail("nobody is there"))

    asyncio.run(watch())
    (thread,) = [t for t in threading.enumerate() if t.name == f"exit-{pid}"]
    os.kill(pid, signal.SIGKILL)
    thread.join(LIMIT)
    assert not thread.is_alive()


def test_a_child_that_is_nobodys_has_no_status() -> None:
    assert reap(os.getpid()) == Exit()


# --- of others


@pytest.mark.parametrize("watch", [PidfdWatch, LifeWatch])
async def test_the_end_of_somebody_elses_child_is_told(
    run: Run, monkeypatch: pytest.MonkeyPatch, watch: type
) -> None:
    if watch is LifeWatch:
        monkeypatch.delattr("os.pidfd_open")
    pid = run("read line")
    watching = watch_life(pid, lambda: is_alive(pid), told := Told())
    assert isinstance(watching, watch)
    os.kill(pid, signal.SIGKILL)
    await told.exit()


async def test_a_number_that_is_another_processes_by_now_is_told_as_gone(run: Run) -> None:
    pid, before = run("read line"), open_files()
    watch_life(pid, lambda: False, told := Told())
    assert await told.exit() == Exit()
    assert open_files() == before
    assert is_alive(pid)


async def test_a_child_that_nobody_watches_is_buried_when_there_is_occasion(run: Run) -> None:
    pid = run("read line")
    leave(pid)
    os.kill(pid, signal.SIGKILL)
    until_zombie(pid)
    reap_left()
    with pytest.raises(ChildProcessError):
        take_status(pid)
