"""Sessions in memory, with a commit that is immediate and with one that is slow."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio

import bridle
from bridle.session.commit import Batch, Commit, Then, at_once
from bridle.session.session import Session
from bridle.testing import MemoryTransport

StartSession = Callable[..., Awaitable[tuple[Session, MemoryTransport]]]


class SlowCommit:
    """Makes every batch wait for some ticks of the loop, and keeps their order."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Batch, Then]] = deque()

    def __call__(self, batch: Batch, then: Then) -> None:
        self._waiting.append((batch, then))
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_later(0.001, self._next)

    def _next(self) -> None:
        batch, then = self._waiting[0]
        then(batch, None)
        self._waiting.popleft()
        if self._waiting:
            asyncio.get_running_loop().call_later(0.001, self._next)


@pytest.fixture(params=["at once", "slow"])
def commit(request: pytest.FixtureRequest) -> Commit:
    return at_once if request.param == "at once" else SlowCommit()


@pytest_asyncio.fixture
async def start(commit: Commit) -> AsyncIterator[StartSession]:
    """`await start(approver=…, version=…, replies=…)` -> a session that is ready."""
    async with AsyncExitStack() as stack:

        async def make(
            *,
            version: str | None = "2.1.325",
            replies: Any = None,
            stderr: str = "",
            **options: Any,
        ) -> tuple[Session, MemoryTransport]:
            cli = MemoryTransport(version=version, replies=replies, stderr=stderr)
            options = {"commit": commit, "policy": "ask", **options}
            session = await stack.enter_async_context(bridle.connect(transport=cli, **options))
            return session, cli

        yield make
