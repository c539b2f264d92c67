"""Applications that are served beside our routes are guarded, bounded and counted as those."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bridle.server.access import Caller
from bridle.server.bodies import BodyLimits
from bridle.server.house import House
from bridle.server.mounts import Mount
from tests.supervisor.homes import ME, Home

from .served import served


class Beside:
    """An application that tells who called, and what for."""

    def __init__(self) -> None:
        self.told: list[tuple[Caller, str, bytes]] = []
        self.is_open = False

    @asynccontextmanager
    async def opened(self, house: House) -> AsyncIterator[tuple[Mount, ...]]:
        assert house.url
        self.is_open = True
        yield (Mount("/beside", self, ("POST", "GET"), ("agent", "reader")),)
        self.is_open = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message.get("more_body", False)
        self.told.append((scope["user"], scope["path"], body))
        if body == b"break":
            raise RuntimeError("broken")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})


async def test_it_gets_the_request_with_the_caller_and_is_closed_with_the_server(
    home: Home,
) -> None:
    beside = Beside()
    async with served(home.folder, mounts=beside.opened) as server:
        record = await server.supervisor.create(cwd=home.work, by=ME, start=False)
        _, agent = await server.house.tokens.create("agent", "a", record.id)
        async with server.client(agent) as client:
            answer = await client.post("/beside", content=b"hello")
        assert (answer.status_code, answer.text) == (200, "done")
        assert answer.headers["cache-control"] == "no-store"
        [(caller, path, body)] = beside.told
        assert (caller.role, caller.session, path, body) == (
            "agent",
            record.id,
            "/beside",
            b"hello",
        )
        async with server.client(server.token) as person:
            assert 'route="/beside"' in (await person.get("/metrics")).text
        assert beside.is_open
    assert not beside.is_open


@pytest.mark.parametrize(
    ("method", "path", "who", "status", "code"),
    [
        ("POST", "/beside", "nobody", 401, "unauthorized"),
        ("POST", "/beside", "person", 403, "forbidden"),
        ("DELETE", "/beside", "reader", 405, "method_not_allowed"),
        ("POST", "/beside/more", "reader", 404, "not_found"),
        ("OPTIONS", "/beside", "reader", 405, "method_not_allowed"),
    ],
)
async def test_others_are_refused_before_it(
    home: Home, method: str, path: str, who: str, status: int, code: str
) -> None:
    beside = Beside()
    async with served(home.folder, mounts=beside.opened) as server:
        _, reader = await server.house.tokens.create("reader", "r")
        token = {"nobody": None, "person": server.token, "reader": reader}[who]
        async with server.client(token) as client:
            answer = await client.request(method, path)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert not beside.told


async def test_a_body_is_bounded_and_what_breaks_is_told_as_elsewhere(home: Home) -> None:
    beside = Beside()
    limits = BodyLimits(most=10, large=20)
    async with served(home.folder, mounts=beside.opened, bodies=limits) as server:
        _, reader = await server.house.tokens.create("reader", "r")
        async with server.client(reader) as client:
            answer = await client.post("/beside", content=b"x" * 11)
            assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
            answer = await client.post("/beside", content=b"break")
            assert (answer.status_code, answer.json()["code"]) == (500, "internal")
