"""A server with the doors for agents, and clients that come in by them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from bridle.loopback import loopback_of, tools_of
from bridle.loopback.http import DoorSettings, open_doors
from bridle.server.house import House
from bridle.server.mounts import Mount, Mounts
from bridle.views.stream import External
from tests.server.served import Served, served
from tests.supervisor.homes import LIMIT, Home

#: As a client may speak: by a handshake, as it finds out, or each message by itself.
MODES = ("legacy", "auto", "2026-07-28")

Json = dict[str, Any]


def doors(**settings: Any) -> Mounts:
    @asynccontextmanager
    async def opened(house: House) -> AsyncIterator[Sequence[Mount]]:
        opening = open_doors(
            loopback_of(house.supervisor),
            closing=house.closing,
            settings=DoorSettings(**settings),
        )
        async with opening as found:
            yield [Mount(one.path, one.app, one.methods, one.roles) for one in found]

    return opened


def serving(home: Home, **settings: Any) -> AbstractAsyncContextManager[Served]:
    """With the tools, and the doors to them."""
    return served(home.folder, mounts=doors(**settings), supervisor={"loopback": tools_of})


async def token_for(server: Served, home: Home, kind: External, **given: Any) -> tuple[str, str]:
    """Of one elsewhere: its text, and the session's id."""
    external = {"kind": kind, "folder": str(home.work), **given}
    async with server.local() as person:
        body = {"role": "agent", "name": f"a {kind}", "external": external}
        answer = await person.post("/api/v1/tokens", json=body)
    assert answer.status_code == 201, answer.text
    told = answer.json()
    return told["text"], told["token"]["session"]


@asynccontextmanager
async def client_at(
    server: Served, token: str, path: str = "/mcp", mode: str = "auto"
) -> AsyncIterator[Client]:
    """An official client of MCP."""
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(
        headers=headers, timeout=LIMIT, trust_env=False, verify=False
    ) as http:
        transport = streamable_http_client(f"{server.url}{path}", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


def text_in(result: CallToolResult) -> str:
    [block] = result.content
    assert isinstance(block, TextContent)
    return block.text


def given_in(result: CallToolResult) -> Json:
    """What a tool of ours gave."""
    found: Json = json.loads(text_in(result))
    assert result.structured_content in (None, found)
    assert result.is_error == (found["type"] == "error")
    return found


async def posted(
    client: httpx.AsyncClient, path: str, method: str, params: Json, **headers: str
) -> httpx.Response:
    """One message of MCP, by hand."""
    message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    accept = {"accept": "application/json, text/event-stream", **headers}
    return await client.post(path, json=message, headers=accept)


def answer_in(response: httpx.Response) -> Json:
    """The last message of an answer, however that is sent."""
    if response.headers["content-type"].startswith("text/event-stream"):
        lines = [one for one in response.text.splitlines() if one.startswith("data: {")]
        return dict(json.loads(lines[-1].removeprefix("data: ")))
    return dict(response.json())
