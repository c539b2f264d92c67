"""Calls that wait: who hangs up, a server that ends, and what is only then loaded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any, cast

import msgspec
import pytest

from bridle.loopback import METHODS, Loopback
from bridle.loopback.http.asgi import App, Message, Receive, Scope, Send, answer
from bridle.loopback.http.ending import ends_with
from bridle.loopback.http.lazy import lazily
from bridle.loopback.http.rpc import Rpc
from bridle.loopback.http.waiting import telling
from bridle.server.access import Caller
from tests.supervisor.homes import LIMIT

CALL = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "claudecode.list"})
SCOPE: Scope = {"type": "http", "user": Caller(role="agent", name="a", session="s1")}


class Slow:
    """Tools that never come to their end."""

    methods = METHODS

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.is_ended = False

    async def call(self, *_: object) -> dict[str, Any]:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.is_ended = True
        return {}


class Line:
    """One exchange with an application."""

    def __init__(self, body: bytes = CALL) -> None:
        self._body: bytes | None = body
        self.hung_up = asyncio.Event()
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.hung_up.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    async def asks(self, app: App) -> None:
        async with asyncio.timeout(LIMIT):
            await app(SCOPE, self.receive, self.send)


async def test_for_one_who_hangs_up_nothing_more_is_done() -> None:
    slow, line = Slow(), Line()
    asking = asyncio.ensure_future(line.asks(Rpc(cast(Loopback, slow))))
    async with asyncio.timeout(LIMIT):
        await slow.begun.wait()
        line.hung_up.set()
        await asking
    assert slow.is_ended
    assert not line.sent


async def test_a_server_that_ends_says_so_to_those_whose_answer_had_not_begun() -> None:
    slow, line, closing = Slow(), Line(), asyncio.Event()
    app = ends_with(closing, Rpc(cast(Loopback, slow)))
    asking = asyncio.ensure_future(line.asks(app))
    async with asyncio.timeout(LIMIT):
        await slow.begun.wait()
        closing.set()
        await asking
    assert slow.is_ended
    assert line.sent[0]["status"] == 503
    assert msgspec.json.decode(line.sent[1]["body"])["code"] == "closing"


async def test_an_answer_that_had_begun_breaks_off_when_the_server_ends() -> None:
    closing, begun = asyncio.Event(), asyncio.Event()

    async def stream(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        begun.set()
        await asyncio.Event().wait()

    line = Line()
    asking = asyncio.ensure_future(line.asks(ends_with(closing, stream)))
    async with asyncio.timeout(LIMIT):
        await begun.wait()
        closing.set()
        await asking
    assert [one.get("more_body") for one in line.sent] == [None, True, False]


async def test_who_is_cancelled_cancels_what_it_serves_and_an_error_is_passed_on() -> None:
    slow, line = Slow(), Line()
    asking = asyncio.ensure_future(line.asks(ends_with(asyncio.Event(), Rpc(cast(Loopback, slow)))))
    async with asyncio.timeout(LIMIT):
        await slow.begun.wait()
        asking.cancel()
        await asyncio.wait([asking])
    assert (asking.cancelled(), slow.is_ended) == (True, True)

    async def broken(*_: object) -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await Line().asks(ends_with(asyncio.Event(), broken))


async def test_what_waits_is_told_how_long_until_it_is_there() -> None:
    told: list[float] = []
    enough = asyncio.Event()

    async def tell(seconds: float) -> None:
        told.append(seconds)
        if len(told) == 3:
            enough.set()

    async def work() -> str:
        await enough.wait()
        return "done"

    async with asyncio.timeout(LIMIT):
        assert await telling(work(), 0.01, tell) == "done"
    assert told == sorted(told)
    assert len(told) == 3


async def test_an_application_is_made_once_when_somebody_comes_and_closed_with_the_rest() -> None:
    made, closed = [], []

    @asynccontextmanager
    async def make(module: ModuleType) -> AsyncIterator[App]:
        made.append(module.__name__)

        async def app(_: Scope, __: Receive, send: Send) -> None:
            await answer(send, 204)

        yield app
        closed.append(module.__name__)

    async with lazily("bridle.loopback.http.waiting", make) as lazy:
        assert not made
        await asyncio.gather(*(Line().asks(lazy) for _ in range(3)))
        assert made == ["bridle.loopback.http.waiting"]
        assert not closed
    assert closed == made


async def test_an_application_that_can_not_be_made_is_tried_again() -> None:
    tries: list[int] = []

    @asynccontextmanager
    async def make(_: ModuleType) -> AsyncIterator[App]:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("not now")

        async def app(_: Scope, __: Receive, send: Send) -> None:
            await answer(send, 204)

        yield app

    async with lazily("bridle.loopback.http.waiting", make) as lazy:
        with pytest.raises(OSError, match="not now"):
            await Line().asks(lazy)
        line = Line()
        await line.asks(lazy)
        assert line.sent[0]["status"] == 204
