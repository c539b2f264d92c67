"""Ways to hold the writer's thread, to see what SQLite is asked to do, and to wait for it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridle.journal.sqlite.store import SqliteJournal

LIMIT = 60.0


@asynccontextmanager
async def held(journal: SqliteJournal) -> AsyncIterator[None]:
    """The writer stands still until this is left: what is submitted meanwhile waits together."""
    loop = asyncio.get_running_loop()
    is_held, may_go = asyncio.Event(), threading.Event()

    def stand(_: sqlite3.Connection) -> None:
        loop.call_soon_threadsafe(is_held.set)
        may_go.wait(LIMIT)

    standing = asyncio.create_task(journal._sqlite.job(stand))
    try:
        async with asyncio.timeout(LIMIT):
            await is_held.wait()
        yield
        await asyncio.sleep(0)  # what the test has just started submits first
    finally:
        may_go.set()
        await standing


class Trace:
    """The statements that the writer's connection runs, as SQLite tells them."""

    def __init__(self, journal: SqliteJournal) -> None:
        self.statements: list[str] = []
        self._journal = journal
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        journal._sqlite._writer._connection.set_trace_callback(self._heard)

    def count(self, start: str) -> int:
        return sum(statement.startswith(start) for statement in self.statements)

    async def until(self, start: str) -> None:
        """Until a statement that starts so has been run."""
        async with asyncio.timeout(LIMIT):
            while not self.count(start):
                self._news.clear()
                await self._news.wait()
        await self._journal._sqlite.job(lambda _: None)  # it is told of when it begins

    def _heard(self, statement: str) -> None:
        self.statements.append(statement)
        self._loop.call_soon_threadsafe(self._news.set)
