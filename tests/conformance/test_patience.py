"""A CLI that Bridle did not start asks by the permission prompt, and a person takes their time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bridle.protocol.requests import Initialize
from bridle.testing import Turn
from tests.e2e.user import User

from .lab import BASH, COMMAND, Lab

#: A CLI gives up on a tool of MCP that says nothing for 300 seconds.
IDLE_LIMIT = 300.0


@pytest_asyncio.fixture
async def user(tmp_path: Path) -> AsyncIterator[User]:
    folder = tmp_path / "person"
    folder.mkdir()
    made = User(folder, {})
    yield made
    await made.aclose()


async def permit_config(user: User, cwd: Path, *words: str) -> list[str]:
    """The flags by which a CLI asks us."""
    await user.run("mcp", "token", "--permit", "--folder", str(cwd), "--policy", "ask")
    printed = await user.json("mcp", "config", "--permit", *words)
    config = json.dumps({"mcpServers": printed["mcpServers"]})
    tool = "mcp__bridle-permit__loopback_permit"
    return ["--mcp-config", config, "--strict-mcp-config", "--permission-prompt-tool", tool]


async def decided(user: User, seconds: float) -> dict[str, Any]:
    """A person who says yes after so long."""
    approval: dict[str, Any] = await user.pending()
    assert approval["input"]["command"] == COMMAND
    await asyncio.sleep(seconds)  # it is what is tested: nothing happens for so long
    await user.run("approve", approval["id"])
    return approval


@pytest.mark.timeout(IDLE_LIMIT + 120)
async def test_permission_waits_over_http(lab: Lab, user: User) -> None:
    """The permission prompt over HTTP, answered after more than 300 s: the tool runs then"""
    await user.up()
    flags = await permit_config(user, lab.cwd)
    async with lab.run(
        [Turn(BASH), "Done."], flags=flags, ask_us=False, initialize=Initialize()
    ) as run:
        run.cli.prompt("go")
        await decided(user, IDLE_LIMIT + 10)
        await run.cli.result()
        assert lab.exists("x.txt")
    await user.end_server()


@pytest.mark.timeout(IDLE_LIMIT + 120)
async def test_permission_waits_over_a_restart(lab: Lab, user: User) -> None:
    """The permission prompt by `bridle mcp stdio`: after 300 s and a `kill -9` of the server"""
    await user.up()
    flags = await permit_config(user, lab.cwd, "--stdio")
    async with lab.run(
        [Turn(BASH), "Done."], flags=flags, ask_us=False, initialize=Initialize()
    ) as run:
        run.cli.prompt("go")
        before = await user.pending()
        await asyncio.sleep(IDLE_LIMIT / 2)
        await user.kill_server()
        await user.up()
        approval = await decided(user, IDLE_LIMIT / 2 + 10)
        assert approval["id"] == before["id"]
        await run.cli.result()
        assert lab.exists("x.txt")
    await user.end_server()
