"""Things that go on beside the main thing, and end with it at the latest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Errands:
    """Owns tasks. `failed` is called when one of them ends in an error, which is kept."""

    def __init__(self, failed: Callable[[], None]) -> None:
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()
        self.error: BaseException | None = None

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._is_done)

    def _is_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.error = self.error or error
            self._failed()

    async def end(self) -> None:
        """All of them, now."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def check(self) -> None:
        """Raise what went wrong, if something did."""
        if self.error:
            raise self.error


async def first_of(*waits: asyncio.Event) -> None:
    """Until one of them is set."""
    tasks = [asyncio.ensure_future(one.wait()) for one in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
