"""What is new with all sessions, approvals and the fleet, for the board and for all who listen.

Owns who is asked for it: one watch of each, while anybody listens to anything. A session that
changes all the time is looked at a few times a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from ...errors import BridleError
from ...supervisor import Forgotten, Supervisor
from ...views import stream
from ..shapes.sessions import view_of
from .audience import Audience
from .board import Board

#: A session that has changed twice within this is not looked at again until it is over: a look
#: copies the record, and people do not read faster.
PAUSE_SECONDS = 0.2
RETRY_SECONDS = 1.0

_log = logging.getLogger(__name__)


class News:
    """`gone` is told of sessions that were deleted."""

    def __init__(
        self,
        supervisor: Supervisor,
        audience: Audience,
        now: Callable[[], float],
        gone: Callable[[str], None],
    ) -> None:
        self.board = Board()
        self.weight = 0
        self._supervisor = supervisor
        self._audience = audience
        self._now = now
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._told: dict[str, float] = {}
        self._held = supervisor.held
        self._tell_fleet()
        watches = (self._sessions, self._approvals, self._holdings)
        self._tasks = [asyncio.ensure_future(self._again(watch)) for watch in watches]

    async def aclose(self) -> None:
        self.board.crowd.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)

    async def _again(self, watch: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            try:
                return await watch()
            except BridleError:
                _log.exception("what is new can't be seen; it is tried again")
                await asyncio.sleep(RETRY_SECONDS)

    async def _sessions(self) -> None:
        async for news in self._supervisor.watch():
            if isinstance(news, Forgotten):
                self._forgotten(news.id)
                continue
            self._audience.changed(news)
            if news.is_created:
                self.board.put(f"session {news.id}", "session", view_of(news, self._now()))
            await self._paced(news.id)

    def _forgotten(self, session: str) -> None:
        self._told.pop(session, None)
        self.board.put(f"session {session}", "session.deleted", {"id": session}, is_over=True)
        self._gone(session)

    async def _paced(self, session: str) -> None:
        now = self._loop.time()
        is_again = now - self._told.get(session, 0.0) < PAUSE_SECONDS
        self._told[session] = now
        if is_again:
            await asyncio.sleep(PAUSE_SECONDS)

    async def _approvals(self) -> None:
        async for changes in self._supervisor.approvals.watch():
            for approval in changes:
                key = f"approval {approval.id}"
                self.board.put(key, "approval", approval, is_over=approval.is_finished)

    async def _holdings(self) -> None:
        log = self._supervisor.journal.log
        last = (await log.info(stream.SUPERVISOR)).last_seq
        self._look_at_fleet()  # it may have been held since we looked first
        async for _ in log.follow(stream.SUPERVISOR, last):
            self._look_at_fleet()

    def _look_at_fleet(self) -> None:
        if self._held != self._supervisor.held:
            self._held = self._supervisor.held
            self._tell_fleet()

    def _tell_fleet(self) -> None:
        self.board.put("fleet", "fleet", {"held": msgspec.to_builtins(self._held)})
