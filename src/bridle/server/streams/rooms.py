"""What many follow: opened by the first who comes, closed some time after the last has left.

Owns how long each is kept. What is heavy is let go sooner, the one that nobody has come to for the
longest time first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar


class _Room(Protocol):
    @property
    def weight(self) -> int: ...

    async def aclose(self) -> None: ...


R = TypeVar("R", bound=_Room)


class _Kept(Generic[R]):
    def __init__(self, room: R) -> None:
        self.room = room
        self.guests = 0
        self.used_at = 0.0


class Rooms(Generic[R]):
    """`idle` are the seconds that a room is kept for nobody, `most` the weight of all together."""

    def __init__(self, make: Callable[[str], R], idle: float, most: int = 0) -> None:
        self._make = make
        self._idle = idle
        self._most = most
        self._loop = asyncio.get_running_loop()
        #: The one that was used last is the last.
        self._kept: dict[str, _Kept[R]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._kept))

    @contextmanager
    def enter(self, key: str) -> Iterator[R]:
        kept = self._kept.pop(key, None) or _Kept(self._make(key))
        self._kept[key] = kept
        kept.guests += 1
        try:
            yield kept.room
        finally:
            kept.guests -= 1
            kept.used_at = self._loop.time()

    def close(self, key: str) -> None:
        """There is nothing to follow any more."""
        kept = self._kept.pop(key, None)
        if kept:
            self._shut(kept)

    def sweep(self) -> None:
        """Let go what nobody has come to for long."""
        now = self._loop.time()
        empty = [(key, kept) for key, kept in self._kept.items() if not kept.guests]
        weight = sum(kept.room.weight for kept in self._kept.values())
        for key, kept in empty:
            if now - kept.used_at >= self._idle or weight > self._most:
                weight -= kept.room.weight
                self.close(key)

    async def aclose(self) -> None:
        for key in list(self._kept):
            self.close(key)
        if self._closing:
            await asyncio.wait(self._closing)

    def _shut(self, kept: _Kept[R]) -> None:
        task = asyncio.ensure_future(kept.room.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
