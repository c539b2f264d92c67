"""An application that is made when somebody first comes: what it needs is slow to be loaded.

Owns the task in which it lives, from then on until the doors are closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from .asgi import App, Receive, Scope, Send

#: Makes it, of the module that was loaded.
Make = Callable[[Any], AbstractAsyncContextManager[App]]


class Lazy:
    """Made by `lazily`. If it can't be made, whoever comes next tries again."""

    def __init__(self, module: str, make: Make) -> None:
        self._module = module
        self._make = make
        self._over = asyncio.Event()
        self._made: asyncio.Future[App] | None = None
        self._living: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._made is None:
            self._made = asyncio.get_running_loop().create_future()
            self._living = asyncio.ensure_future(self._live(self._made))
        app = await asyncio.shield(self._made)
        await app(scope, receive, send)

    async def _live(self, made: asyncio.Future[App]) -> None:
        """In one task from its beginning to its end: that is what it is made for."""
        try:
            # In a thread: a second of loading is much to those who wait for something else.
            module: ModuleType = await asyncio.to_thread(import_module, self._module)
            async with self._make(module) as app:
                made.set_result(app)
                await self._over.wait()
        except Exception as error:
            if made.done():
                raise
            made.set_exception(error)
            made.exception()  # whoever waits is told; perhaps nobody does any more
            self._made = None

    async def aclose(self) -> None:
        self._over.set()
        if self._living:
            await self._living


@asynccontextmanager
async def lazily(module: str, make: Make) -> AsyncIterator[Lazy]:
    app = Lazy(module, make)
    try:
        yield app
    finally:
        await app.aclose()
