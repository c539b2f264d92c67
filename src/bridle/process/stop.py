"""The ladder that ends a process and all that it has started, bounded in time.

Owns the order: wait for it to end by itself, SIGINT, SIGTERM, SIGKILL. Each signal goes to the
whole tree, which is collected again before each: tools run in sessions of their own, and some are
orphans.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from .transport import Exit, StopLimits, Stopped, StopStep
from .tree import find_tree, is_alive, signal_all

if TYPE_CHECKING:
    import psutil

FIRST_LOOK_SECONDS = 0.005
SLOWEST_LOOK_SECONDS = 0.1

_T = TypeVar("_T")


class Stoppable(Protocol):
    """The root of a tree."""

    @property
    def pid(self) -> int: ...

    @property
    def launch(self) -> str: ...

    @property
    def exit(self) -> Exit | None: ...

    async def exited(self, limit: float) -> bool: ...


class Ladder:
    """One stop of one process."""

    def __init__(self, root: Stoppable, limits: StopLimits) -> None:
        self._root = root
        self._limits = limits
        self._start = time.monotonic()
        self._known: dict[int, psutil.Process] = {}

    async def descend(self, mildest: StopStep) -> Stopped:
        """`mildest`: what has been done already to have it end by itself."""
        step: StopStep = "gone" if self._root.exit else mildest
        await self._root.exited(self._limits.graceful)
        for number in (signal.SIGINT, signal.SIGTERM):
            if not self._tree():
                return self._stopped(step)
            # To the CLI an interrupt means "end"; orphaned commands ignore it.
            if number is signal.SIGINT and self._root.exit:
                continue
            step = "SIGINT" if number is signal.SIGINT else "SIGTERM"
            signal_all(self._tree(), number)
            await self._until(self._is_empty, self._limits.signal)
        if self._tree():
            step = "SIGKILL"
            await self._until(self._is_killed, self._limits.signal)
        return self._stopped(step)

    def _tree(self) -> list[psutil.Process]:
        """All that is alive, also what was found once and has hidden since."""
        root = self._root
        found = find_tree(root.pid, root.launch, since=time.monotonic() - FIRST_LOOK_SECONDS)
        self._known |= {process.pid: process for process in found}
        self._known = {pid: process for pid, process in self._known.items() if is_alive(process)}
        return list(self._known.values())

    def _is_empty(self) -> bool:
        # To look at those that are known is cheap; only when they are gone, look for others.
        return not any(map(is_alive, self._known.values())) and not self._tree()

    def _is_killed(self) -> bool:
        signal_all(self._tree(), signal.SIGKILL)
        return not self._known

    async def _until(self, done: Callable[[], bool], limit: float) -> None:
        end = min(time.monotonic() + limit, self._start + self._limits.total)
        pause = FIRST_LOOK_SECONDS
        while not done() and time.monotonic() < end:
            await asyncio.sleep(min(pause, max(0.0, end - time.monotonic())))
            pause = min(pause * 1.5, SLOWEST_LOOK_SECONDS)

    def _stopped(self, step: StopStep) -> Stopped:
        seconds = time.monotonic() - self._start
        survivors = tuple(pid for pid, process in self._known.items() if is_alive(process))
        return Stopped(step, seconds, self._root.exit, survivors)


async def uncancelled(work: Awaitable[_T]) -> _T:
    """Wait for work that is bounded in time, however often we are cancelled; then be cancelled."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
        except Exception:  # noqa: BLE001 - it is raised below
            break
    if cancelled and not task.cancelled() and task.exception() is None:
        raise cancelled
    return task.result()
