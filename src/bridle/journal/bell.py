"""What one reader waits at: one future while it waits, and nothing while it does not."""

from __future__ import annotations

import asyncio

ONE_READER = "it has one reader: for another one, follow or watch once more"


class Bell:
    __slots__ = ("_waiter",)

    def __init__(self) -> None:
        self._waiter: asyncio.Future[None] | None = None

    def ring(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self) -> None:
        """Until it rings; a ring that nobody waited for is not remembered."""
        if self._waiter:
            raise RuntimeError(ONE_READER)
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
