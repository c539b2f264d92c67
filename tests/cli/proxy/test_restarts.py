"""The proxy before a real server, which is killed and started again while calls wait."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.shells import Shell, asks

from .doors import Client, client_with

Json = dict[str, Any]
ENDS: dict[str, Callable[[Shell], object]] = {
    "killed": Shell.kill_server,
    "ended": lambda shell: shell.end_server(signal.SIGTERM),
}


async def begun(client: Client) -> None:
    """As a client begins."""
    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
    await client.say({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
    assert (await client.hear())["result"]["protocolVersion"] == "2025-06-18"
    await client.say({"jsonrpc": "2.0", "method": "notifications/initialized"})


async def call(client: Client, id_: int, tool: str, **arguments: Any) -> None:
    params = {"name": tool, "arguments": arguments}
    await client.say({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params})


async def given(client: Client, id_: int) -> Json:
    told = await client.hear()
    assert told["id"] == id_, told
    found: Json = json.loads(told["result"]["content"][0]["text"])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("how", ENDS)
async def test_a_call_that_waits_is_answered_by_the_next_server_on_another_port(
    shell: Shell, how: str
) -> None:
    shell.claude(*asks())
    first = shell.up()
    shell.run("mcp", "token")
    async with client_with(shell.env) as client:
        await begun(client)
        await call(client, 1, "claudecode_create", name="child", loopback_enabled=False)
        child = (await given(client, 1))["id"]
        await call(client, 2, "claudecode_chat_async", session_id=child, prompt="go")
        await given(client, 2)
        await call(client, 3, "claudecode_poll", name="child", until="turn_end", wait_ms=600_000)
        approval = await asyncio.to_thread(shell.approval)
        ENDS[how](shell)
        await client.noted("waiting")
        second = shell.up()
        assert second["url"] != first["url"]
        shell.run("approve", approval["id"])
        seen = await given(client, 3)
        assert seen["status"] == "complete"
        await call(client, 4, "claudecode_list")
        assert [one["name"] for one in (await given(client, 4))["sessions"]] == ["child"]
        assert await client.end() == 0


async def test_a_server_that_is_killed_while_it_makes_a_child_has_made_one(shell: Shell) -> None:
    shell.claude(*asks())
    shell.up()
    shell.run("mcp", "token")
    async with client_with(shell.env) as client:
        await begun(client)
        await call(client, 1, "claudecode_create", name="child")
        shell.kill_server()
        shell.up()
        made = await given(client, 1)
        assert made["type"] == "created", made
        below = [one["id"] for one in shell.json("ps", "--all") if one["parent"]]
        assert below == [made["id"]]


@pytest.mark.slow
@pytest.mark.parametrize("how", ENDS)
async def test_a_question_of_a_cli_that_is_not_ours_outlives_the_server(
    shell: Shell, how: str
) -> None:
    shell.up()
    shell.run("mcp", "token", "--permit")
    async with client_with(shell.env, "--permit") as client:
        await begun(client)
        asked = {"tool_name": "Bash", "input": {"command": "rm x"}, "tool_use_id": "toolu_1"}
        await call(client, 1, "loopback_permit", **asked)
        approval = await asyncio.to_thread(shell.approval)
        ENDS[how](shell)
        await client.noted("waiting")
        shell.up()
        shell.run("approve", approval["id"])
        allowed = {"behavior": "allow", "updatedInput": {"command": "rm x"}}
        assert await given(client, 1) == allowed
        assert [one["id"] for one in shell.json("approvals", "--all")] == [approval["id"]]


async def test_a_permit_opens_no_other_door_and_is_told_so(shell: Shell) -> None:
    shell.up()
    shell.run("mcp", "token", "--permit")
    async with client_with(shell.env, "--name", "permit") as client:
        await call(client, 1, "claudecode_list")
        told = await client.hear()
        assert "`bridle mcp token` makes one" in told["error"]["message"]
