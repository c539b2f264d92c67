"""The ladder that ends a process and all that it has started, bounded in time.

Owns the order: wait for it to end by itself, SIGINT, SIGTERM, SIGKILL. Each signal goes to the
whole tree, which is collected again before each: tools run in sessions of their own, and some are
orphans.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable
from typing import Protocol, TypeVar

from .transport import Exit, StopLimits, Stopped, StopStep
from .tree import Tree

FIRST_LOOK_SECONDS = 0.005
SLOWEST_LOOK_SECONDS = 0.1
#: What was killed and is not gone after this is looked for and killed again.
KILL_AGAIN_SECONDS = 0.5
#: So long it may take until it is told how a process that is gone has ended.
TOLD_SECONDS = 5.0

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
    """One stop of one process; `tree` where its root is not our child."""

    def __init__(self, root: Stoppable, limits: StopLimits, tree: Tree | None = None) -> None:
        self._root = root
        self._tree = tree or Tree(root.pid, root.launch)
        self._limits = limits
        self._start = time.monotonic()
        #: Then is the time to be polite over: what is left belongs to SIGKILL.
        self._polite = self._start + max(0.0, limits.total - limits.signal)

    async def descend(self, mildest: StopStep) -> Stopped:
        """`mildest`: what has been done already to have it end by itself."""
        try:
            return await self._descend(mildest)
        except asyncio.CancelledError:
            # The loop itself is being closed: nothing can be waited for any more.
            self._tree.kill()
            raise

    async def _descend(self, mildest: StopStep) -> Stopped:
        step: StopStep = "gone" if self._root.exit else mildest
        await self._root.exited(min(self._limits.graceful, self._polite - self._start))
        for number in (signal.SIGINT, signal.SIGTERM):
            if not await self._looked():
                return await self._stopped(step)
            # To the CLI an interrupt means "end"; orphaned commands ignore it.
            if number is signal.SIGINT and self._root.exit:
                continue
            step = "SIGINT" if number is signal.SIGINT else "SIGTERM"
            await self._tree.signal(number)
            await self._gone(self._limits.signal, self._polite)
        last = self._start + self._limits.total
        is_gone = self._tree.is_gone()
        while not is_gone:
            step = "SIGKILL"
            await self._tree.signal(signal.SIGKILL)
            is_gone = await self._gone(KILL_AGAIN_SECONDS, last)
            if time.monotonic() >= last:
                break
        return await self._stopped(step)

    async def _looked(self) -> bool:
        """Whether anything is alive."""
        asked = time.monotonic()
        # Whoever asks in the same pass of the loop shares the look that follows.
        await asyncio.sleep(0)
        return bool(self._tree.look(since=asked))

    async def _gone(self, limit: float, last: float) -> bool:
        """Wait until nothing is alive; False if it is not in this time, or at this moment."""
        end = min(time.monotonic() + limit, last)
        pause = FIRST_LOOK_SECONDS
        while not self._tree.is_gone():
            left = end - time.monotonic()
            if left <= 0:
                return False
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 1.5, SLOWEST_LOOK_SECONDS)
        return True

    async def _stopped(self, step: StopStep) -> Stopped:
        survivors = tuple(seen.pid for seen in self._tree.alive())
        if not survivors:
            # It is gone, but the loop may not have been told how: a busy one takes its time.
            await self._root.exited(max(self._limits.signal, TOLD_SECONDS))
        seconds = time.monotonic() - self._start
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
