"""Who waits for the answers to what we asked the CLI."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from ..errors import RequestTimedOut, SessionEnded, UnreadableAnswer
from ..process.transport import Transport
from ..protocol.answers import Answered
from ..protocol.connection import Connection
from ..protocol.events import ResponseReceived
from ..protocol.outbound import subtype_of
from ..protocol.unknown import Unknown

_A = TypeVar("_A", bound=Answered)


class Waiters:
    """One for each request that is waited for."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waiting: dict[str, asyncio.Future[ResponseReceived]] = {}

    def wait(self, request_id: str) -> asyncio.Future[ResponseReceived]:
        future: asyncio.Future[ResponseReceived] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        return future

    async def answer(
        self,
        future: asyncio.Future[ResponseReceived],
        subtype: str,
        kind: type[_A],
        seconds: float,
        transport: Transport,
    ) -> _A:
        """What the CLI answers, if it is of this kind; else an error that says what it was."""
        # Not asyncio.timeout: it cancels the future one step before it raises, and an answer that
        # comes in between would be lost.
        await asyncio.wait([future], timeout=seconds)
        if not future.done():
            raise RequestTimedOut(subtype, seconds, transport.stderr)
        told = future.result().answer()
        if isinstance(told, Unknown):
            raise UnreadableAnswer(subtype, told.reason, told.raw)
        assert isinstance(told, kind)
        return told

    def leave(self, request_id: str) -> None:
        self._waiting.pop(request_id, None)

    def tell(self, event: ResponseReceived) -> None:
        waiter = self._waiting.pop(event.request_id, None)
        if waiter and not waiter.done():
            waiter.set_result(event)

    def fail(self, request_id: str, error: BaseException) -> None:
        waiter = self._waiting.pop(request_id, None)
        if waiter and not waiter.done():
            waiter.set_exception(error)

    def fail_all(self, error: BaseException) -> None:
        for request_id, waiter in list(self._waiting.items()):
            if not waiter.done():
                request = self._connection.asked.get(request_id)
                if isinstance(error, SessionEnded) and request is not None:
                    error = error.while_asking(subtype_of(request))
                waiter.set_exception(error)
