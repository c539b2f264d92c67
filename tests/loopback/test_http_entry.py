"""Callers that take more of the doors than is theirs: too many calls, or calls after their end."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from bridle.loopback.http.entry import MOST_CALLS
from bridle.supervisor.audience import Listener
from tests.server.served import Served
from tests.supervisor.homes import LIMIT, ME, WORKS, Home, until

from .doors import serving, token_for

Json = dict[str, Any]
WAITS = {"name": "kid", "until": "turn_end", "wait_ms": 600_000}


def asked(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "method": f"claudecode.{method}", "params": params}


async def with_kid(home: Home, server: Served) -> tuple[str, str]:
    """The token and the session of a root, below which one works and does not come to its end."""
    token, session = await token_for(server, home, "root")
    kid = await server.supervisor.create(
        cwd=home.work,
        by=ME,
        name="kid",
        parent=session,
        command=home.cli(*WORKS, *WORKS).command,
        prompt="go",
    )
    await until(server.supervisor, kid.id, "running")
    return token, session


class Group(set[Listener]):
    """Those who listen to one session; `is_full` once there are so many."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.is_full = asyncio.Event()
        self._size = size

    def add(self, listener: Listener) -> None:
        super().add(listener)
        if len(self) == self._size:
            self.is_full.set()


def listeners(server: Served, size: int) -> Group:
    """Those who wait for what the agent does."""
    group = Group(size)
    server.supervisor._sessions.audience._listeners[server.supervisor.get("kid").id] = group
    return group


async def revoke(server: Served, session: str) -> None:
    [token] = server.house.tokens.of_session(session)
    async with server.local() as person:
        answer = await person.delete(f"/api/v1/tokens/{token.id}")
    assert answer.status_code == 204


async def test_a_batch_goes_no_further_when_its_token_is_taken_away(home: Home) -> None:
    async with serving(home) as server:
        token, session = await with_kid(home, server)
        batch = [asked("poll", **WAITS), asked("chat_async", name="kid", prompt="once more")]
        group = listeners(server, 1)
        async with server.client(token) as client, asyncio.timeout(LIMIT):
            posting = asyncio.ensure_future(client.post("/rpc", json=batch))
            await group.is_full.wait()
            await revoke(server, session)
            answer = await posting
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        assert (await until(server.supervisor, "kid", "stopped")).launches == 1


@pytest.mark.parametrize("most", [2, pytest.param(MOST_CALLS, marks=pytest.mark.slow)])
async def test_one_caller_has_only_so_many_calls_that_wait(
    home: Home, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("bridle.loopback.http.entry.MOST_CALLS", most)
    limits = httpx.Limits(max_connections=most * 2)
    async with serving(home) as server:
        token, _ = await with_kid(home, server)
        group, headers = listeners(server, most), {"authorization": f"Bearer {token}"}
        client = httpx.AsyncClient(
            base_url=server.url,
            headers=headers,
            limits=limits,
            timeout=LIMIT,
            trust_env=False,
            verify=False,
        )
        async with client, server.client(server.token) as person, asyncio.timeout(LIMIT):
            posts = [client.post("/rpc", json=asked("poll", **WAITS)) for _ in range(most)]
            polls = [asyncio.ensure_future(one) for one in posts]
            await group.is_full.wait()
            answer = await client.post("/rpc", json=asked("list"))
            assert (answer.status_code, answer.json()["code"]) == (429, "too_many_calls")
            assert (await person.get("/api/v1/sessions")).status_code == 200
            await server.supervisor.stop("kid")
            assert {one.status_code for one in await asyncio.gather(*polls)} == {200}
            assert (await client.post("/rpc", json=asked("list"))).status_code == 200
