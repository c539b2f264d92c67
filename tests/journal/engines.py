"""The engines that keep the contract. A new one is added here, and passes the same tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from bridle.journal import Journal, open_journal
from bridle.journal.journal import StoredJournal
from bridle.journal.memory import MemoryStore


class Engine(Protocol):
    """Something that keeps a journal. Opening it again finds what was acknowledged before."""

    def open(self) -> AbstractAsyncContextManager[Journal]: ...


class InMemory:
    def __init__(self, _: Path) -> None:
        self._store = MemoryStore()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Journal]:
        async with StoredJournal(self._store) as journal:
            yield journal


class InSqlite:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Journal]:
        async with open_journal(self._folder) as journal:
            yield journal


ENGINES: dict[str, Callable[[Path], Engine]] = {"memory": InMemory, "sqlite": InSqlite}
