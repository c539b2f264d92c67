"""A blocking function in a thread of its own, that holds up neither the loop nor its end.

Not the loop's own pool: it has few threads, is shared with the whole program, and a loop that is
closed waits for all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


async def in_thread(function: Callable[[], _T]) -> _T:
    """What the function gives or raises. To stop waiting does not stop the function."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: _T | None, error: BaseException | None) -> None:
        if not future.done():
            if error is None:
                future.set_result(value)  # type: ignore[arg-type]
            else:
                future.set_exception(error)

    def run() -> None:
        value: _T | None = None
        error: BaseException | None = None
        try:
            value = context.run(function)
        except BaseException as raised:  # noqa: BLE001 - it is raised where it is waited for
            error = RuntimeError(f"{raised!r}") if isinstance(raised, StopIteration) else raised
        with contextlib.suppress(RuntimeError):  # the loop was closed in the meantime
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=run, name="bridle-tool", daemon=True).start()
    return await future
