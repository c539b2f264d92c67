"""A call that waits, and a client that would give it up if it heard nothing. Owns that it hears of
it, and how what is under way is ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
#: Told how many seconds it waits.
Tell = Callable[[float], Awaitable[None]]


async def telling(work: Coroutine[Any, Any, T], every: float, tell: Tell) -> T:
    """What it gives; `tell` is called after each `every` seconds until then. Cancelled, it ends."""
    begun = asyncio.get_running_loop().time()
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait([task], timeout=every))[0]:
            await tell(asyncio.get_running_loop().time() - begun)
        return task.result()
    finally:
        await ended(task)


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancel them and wait for that. What still goes wrong in one is nobody's concern any more."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()
