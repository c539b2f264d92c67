"""The approvals of one session behind a server, as whoever asks by keys wants them.

Owns the hearing of them (from the transcript that is followed anyway) and the way to the server and
back. While that can't be reached, it is tried again: nothing is decided meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from ...approvals import AlreadyDecided, Approval, Person, UnknownApproval
from ...approvals.model import Choice
from ...server.shapes import decisions
from ...views import entries as e
from ..client import Client
from ..errors import NoServer, NotFound, NotNow, Refused

RETRY_SECONDS = 0.5

T = TypeVar("T")


class RemoteDocket:
    """A `Docket`. `name` is what people call the session."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        self._news: asyncio.Queue[str] = asyncio.Queue()
        self._pending: dict[str, asyncio.Event] = {}

    # --- hearing

    def saw(self, entry: e.TranscriptEntry) -> None:
        """An entry of the transcript as it is now."""
        match entry:
            case e.Approval(decision=decision) | e.Plan(decision=e.Decision() as decision):
                if decision.status == "pending":
                    self.is_pending(decision.id)
                else:
                    self._is_over(decision.id)

    def is_pending(self, approval_id: str) -> None:
        if approval_id not in self._pending:
            self._pending[approval_id] = asyncio.Event()
            self._news.put_nowait(approval_id)

    def _is_over(self, approval_id: str) -> None:
        over = self._pending.pop(approval_id, None)
        if over:
            over.set()
            self._news.put_nowait(approval_id)

    # --- asking the server

    async def watch(self) -> AsyncIterator[list[Approval]]:
        while True:
            news = await self._news.get()
            with contextlib.suppress(UnknownApproval):
                yield [await self.get(news)]

    async def get(self, approval_id: str, /) -> Approval:
        try:
            found = await self._reached(lambda: self._client.approvals.get(approval_id))
        except (NotFound, Refused) as error:
            raise UnknownApproval(approval_id) from error
        return replace(found, session=self._name)

    async def wait(self, approval_id: str, /) -> Approval:
        over = self._pending.get(approval_id)
        if over:
            await over.wait()
        return await self.get(approval_id)

    async def decide(
        self, approval_id: str, choice: Choice, /, *, by: Person, shown: str | None = None
    ) -> Approval:
        """Who it is `by`, the server knows itself."""
        del by
        given = msgspec.convert(msgspec.to_builtins(choice), decisions.Choice)
        try:
            return await self._client.approvals.decide(approval_id, given, shown)
        except NotNow as error:
            raise AlreadyDecided(await self.get(approval_id)) from error

    async def _reached(self, ask: Callable[[], Awaitable[T]]) -> T:
        """However long the server is away."""
        while True:
            try:
                return await ask()
            except NoServer:
                await asyncio.sleep(RETRY_SECONDS)
