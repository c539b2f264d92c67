"""Time, as approvals need it: what it is, and to wait until it is something. Tests turn theirs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

#: The loop's clock stands still while the machine sleeps, and the wall's is set by people: after so
#: long the two are compared again.
_LONGEST_SLEEP = 3_600.0


class Clock(Protocol):
    def now(self) -> float:
        """Unix seconds."""

    async def until(self, moment: float) -> None:
        """Wait until it is at least this moment."""


class SystemClock:
    def now(self) -> float:
        return time.time()

    async def until(self, moment: float) -> None:
        left = moment - self.now()
        while left > 0:
            await asyncio.sleep(min(left, _LONGEST_SLEEP))
            left = moment - self.now()


class Deadlines:
    """Tells which are due. Has one timer, for the first of them, and none where there is none."""

    def __init__(self, clock: Clock, due: Callable[[str], None]) -> None:
        self._clock = clock
        self._due = due
        self._moments: dict[str, float] = {}
        self._next = 0.0
        self._timer: asyncio.Task[None] | None = None
        self._stopped: set[asyncio.Task[None]] = set()

    def set(self, key: str, moment: float) -> None:
        self._moments[key] = moment
        if self._timer is None or moment < self._next:
            self._stop()
            self._timer = asyncio.get_running_loop().create_task(self._run())
            self._next = moment

    def drop(self, key: str) -> None:
        self._moments.pop(key, None)
        if not self._moments:
            self._stop()

    async def aclose(self) -> None:
        self._moments.clear()
        self._stop()
        if self._stopped:
            await asyncio.wait(self._stopped)

    def _stop(self) -> None:
        timer, self._timer = self._timer, None
        if timer and timer is not asyncio.current_task():
            timer.cancel()
            self._stopped.add(timer)
            timer.add_done_callback(self._stopped.discard)

    async def _run(self) -> None:
        me = asyncio.current_task()
        while self._moments and self._timer is me:
            self._next = min(self._moments.values())
            await self._clock.until(self._next)
            now = self._clock.now()
            for key in [key for key, moment in self._moments.items() if moment <= now]:
                self._moments.pop(key, None)
                self._due(key)
        if self._timer is me:  # else there is another one already
            self._timer = None
