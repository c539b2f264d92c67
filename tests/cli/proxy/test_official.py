"""The proxy with the official client of MCP, of the older kind and of the newer one."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult, TextContent

from bridle.loopback import METHODS
from tests.cli.shells import LIMIT, Shell, asks


def told(result: Any) -> Any:
    assert isinstance(result, CallToolResult)
    (block,) = result.content
    assert isinstance(block, TextContent)
    return json.loads(block.text)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_it_lists_and_calls_the_tools_and_hears_how_it_goes_on(
    shell: Shell, mode: Any
) -> None:
    shell.claude(*asks())
    shell.up()
    shell.run("mcp", "token", "--policy", "autonomous")
    (entry,) = shell.json("mcp", "config", "--stdio")["mcpServers"].values()
    server = StdioServerParameters(command=entry["command"], args=entry["args"], env=shell.env)
    with (shell.folder / "stderr").open("w") as log:
        await _used(Client(stdio_client(server, errlog=log), mode=mode))


async def _used(opening: Client) -> None:
    async with asyncio.timeout(LIMIT), opening as client:
        listed = await client.list_tools()
        assert {tool.name for tool in listed.tools} == set(METHODS)
        made = told(await client.call_tool("claudecode_create", {"name": "c", "policy": "ask"}))
        await client.call_tool("claudecode_chat_async", {"name": "c", "prompt": "go"})
        seen = told(await client.call_tool("claudecode_poll", {"name": "c", "until": "approval"}))
        (asked,) = seen["pending_approvals"]
        given = {"approval_id": asked["id"], "approve": True}
        assert told(await client.call_tool("loopback_respond", given))["type"] == "ok"
        over = {"session_id": made["id"], "until": "turn_end"}
        assert told(await client.call_tool("claudecode_poll", over))["status"] == "complete"
