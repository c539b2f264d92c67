"""When a child ends: one seam, by pidfd where there is one, else by a thread.

Owns the waiting and the exit status. Installs no signal handler, and survives that somebody else
reaps the child first: then the status is lost, but not the news.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from typing import TypeAlias

from .transport import Exit

Tell = Callable[[Exit], None]

#: How often to look at a process that nobody tells us of.
LOOK_SECONDS = 0.25

_left: list[int] = []


class PidfdWatch:
    """One file descriptor for each child, none of our threads."""

    def __init__(self, pid: int, tell: Tell) -> None:
        self._pid = pid
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._fd = os.pidfd_open(pid)
        self._loop.add_reader(self._fd, self._ended)

    def _ended(self) -> None:
        self.close()
        self._tell(reap(self._pid))

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1


class ThreadWatch:
    """A thread that waits for one child, where the system has no pidfd."""

    def __init__(self, pid: int, tell: Tell) -> None:
        self._tell: Tell | None = tell
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._wait, args=(pid,), name=f"exit-{pid}", daemon=True).start()

    def _wait(self, pid: int) -> None:
        status = reap(pid, flags=0)
        with contextlib.suppress(RuntimeError):  # the loop was closed before the child ended
            self._loop.call_soon_threadsafe(self._ended, status)

    def _ended(self, status: Exit) -> None:
        if self._tell:
            self._tell(status)

    def close(self) -> None:
        self._tell = None


class LifeWatch:
    """Looks again and again at a process that is not our child, where there is no pidfd."""

    def __init__(self, is_alive: Callable[[], bool], tell: Tell) -> None:
        self._is_alive = is_alive
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._next: asyncio.Handle = self._loop.call_soon(self._look)

    def _look(self) -> None:
        if self._is_alive():
            self._next = self._loop.call_later(LOOK_SECONDS, self._look)
        else:
            self._tell(Exit())

    def close(self) -> None:
        self._next.cancel()


Watching: TypeAlias = PidfdWatch | ThreadWatch | LifeWatch


def watch_exit(pid: int, tell: Tell) -> PidfdWatch | ThreadWatch:
    """Tell, on the running loop, when the child is gone; `close` stops it."""
    # A kernel without pidfds, a sandbox that forbids them, a child that somebody reaped already:
    # a thread can wait in every case.
    with contextlib.suppress(AttributeError, OSError):
        return PidfdWatch(pid, tell)
    return ThreadWatch(pid, tell)


def watch_life(pid: int, is_alive: Callable[[], bool], tell: Tell) -> PidfdWatch | LifeWatch:
    """The same for a process that is not our child: nobody will know how it ended.

    `is_alive` tells whether the number is still that of the process that is meant.
    """
    with contextlib.suppress(AttributeError, OSError):
        watch = PidfdWatch(pid, tell)
        if is_alive():
            return watch
        watch.close()
    return LifeWatch(is_alive, tell)


def leave(pid: int) -> None:
    """A child of ours that nobody watches any more: it is reaped when there is occasion."""
    _left.append(pid)
    reap_left()


def reap_left() -> None:
    _left[:] = [pid for pid in _left if _is_running(pid)]


def _is_running(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    return False


def reap(pid: int, flags: int = getattr(os, "WNOHANG", 0)) -> Exit:
    try:
        reaped, status = os.waitpid(pid, flags)
    except ChildProcessError:
        return Exit()
    if reaped != pid:
        return Exit()
    if os.WIFSIGNALED(status):
        return Exit(signal=os.WTERMSIG(status))
    return Exit(code=os.waitstatus_to_exitcode(status))
