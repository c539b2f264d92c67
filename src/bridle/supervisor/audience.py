"""Who wants to know when sessions change: watchers of all, and listeners of some.

Owns who is told, in time that does not grow with how many wait for others; what has changed they
look up themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..errors import JournalClosed


class Audience:
    """Belongs to the sessions: `tell` is called after a record has changed."""

    def __init__(self) -> None:
        self._watchers: set[Watcher] = set()
        self._listeners: dict[str, set[Listener]] = {}
        self._is_closed = False

    def tell(self, session: str) -> None:
        """Its record is another one than before."""
        for watcher in self._watchers:
            watcher.tell(session)
        for listener in self._listeners.get(session, ()):
            listener.tell(session)

    def gone(self, session: str) -> None:
        """It was deleted."""
        self.tell(session)

    def close(self) -> None:
        """Nobody will be told anything more."""
        self._is_closed = True
        for watcher in self._watchers:
            watcher.close()
        for listener in {one for group in self._listeners.values() for one in group}:
            listener.close()

    @contextmanager
    def watching(self, sessions: Iterable[str]) -> Iterator[Watcher]:
        """Told of all, and of these at once."""
        watcher = Watcher(sessions)
        self._watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    @contextmanager
    def listening(self, sessions: Iterable[str]) -> Iterator[Listener]:
        """Told of these alone."""
        listener, names = Listener(), set(sessions)
        if self._is_closed:
            listener.close()
        for session in names:
            self._listeners.setdefault(session, set()).add(listener)
        try:
            yield listener
        finally:
            for session in names:
                group = self._listeners[session]
                group.discard(listener)
                if not group:
                    del self._listeners[session]


class Listener:
    """Who waits for some sessions to change. What comes while nobody waits is not missed."""

    def __init__(self) -> None:
        self._changed: set[str] = set()
        self._bell = asyncio.Event()
        self._is_closed = False

    def tell(self, session: str) -> None:
        self._changed.add(session)
        self._bell.set()

    def close(self) -> None:
        self._is_closed = True
        self._bell.set()

    async def heard(self) -> set[str]:
        """Until one has changed since it was last called (or since it listens): which.

        JournalClosed if the supervisor is closed.
        """
        await self._bell.wait()
        if self._is_closed:
            raise JournalClosed("the supervisor was closed")
        self._bell.clear()
        changed, self._changed = self._changed, set()
        return changed


class Watcher:
    """Who wants to know of changes, and of which they do not know yet."""

    def __init__(self, sessions: Iterable[str]) -> None:
        self._untold = dict.fromkeys(sessions)
        self._bell = asyncio.Event()
        self._bell.set()
        self.is_closed = False

    def tell(self, session: str) -> None:
        self._untold[session] = None
        self._bell.set()

    def close(self) -> None:
        self.is_closed = True
        self._bell.set()

    async def changed(self) -> list[str]:
        await self._bell.wait()
        self._bell.clear()
        untold, self._untold = self._untold, {}
        return list(untold)
