"""MCP: servers inside our process, and the permission prompt as a tool."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bridle.protocol.content import tool_results
from bridle.protocol.messages import User
from bridle.protocol.requests import Initialize
from bridle.testing import Turn, tool_use

from .lab import BASH, COMMAND, Lab
from .talk import Judge


def add(a: float, b: float) -> str:
    """Add two numbers."""
    return f"sum={a + b:g}"


async def test_in_process_server(lab: Lab) -> None:
    """A server inside our process: registered by initialize alone, its tool is called"""
    call, judge = tool_use("mcp__calc__add", a=2, b=3), Judge()
    async with lab.session([Turn(call), "Five."], approver=judge, tools={"calc": [add]}) as talk:
        heard = await talk.say("add")
        assert heard.last_output() == ("sum=5", False)
        assert judge.tools == ["mcp__calc__add"]
        asked = [message for message in map(_mcp_message, talk.wire.received) if message]
        assert {"initialize", "tools/list", "tools/call"} <= {one["method"] for one in asked}
        (called,) = (one["params"] for one in asked if one["method"] == "tools/call")
        ids = list(talk.model.requests[-1].tool_results)
        assert [called["_meta"]["claudecode/toolUseId"]] == ids
        status = await talk.session.mcp_status()
        assert [(s.name, s.status) for s in status.mcp_servers] == [("calc", "connected")]


async def test_in_process_failure(lab: Lab) -> None:
    """A tool of ours that raises, or is given the wrong arguments: the model is told"""

    def fall(height: int) -> str:
        raise ValueError(f"fell from {height}")

    calls = [tool_use("mcp__tools__fall", height=height) for height in (3, "high")]
    script: list[Turn | str] = [Turn(calls[0]), Turn(calls[1]), "Ouch."]
    async with lab.session(script, approver=Judge(), tools=[fall]) as talk:
        heard = await talk.say("fall")
        assert heard.result.result == "Ouch."
        results = [r for message in heard.of(User) for r in tool_results(message)]
        assert [bool(result.is_error) for result in results] == [True, True]
        texts = list(talk.model.requests[-1].tool_results.values())
        assert "ValueError: fell from 3" in texts[0]
        assert "Expected `int`" in texts[1]


def _mcp_message(line: bytes) -> dict[str, Any] | None:
    """The JSON-RPC message in a line, where it holds one."""
    request = json.loads(line).get("request", {})
    message = request.get("message") if request.get("subtype") == "mcp_message" else None
    assert message is None or isinstance(message, dict)
    return message


async def test_permit_tool_allow(lab: Lab) -> None:
    """The permission prompt as an MCP tool allows"""
    asked = await _judged(lab, "allow")
    assert lab.exists("x.txt")
    assert asked["tool_name"] == "Bash"
    assert asked["input"]["command"] == COMMAND
    assert asked["tool_use_id"].startswith("toolu_")


async def test_permit_tool_deny(lab: Lab) -> None:
    """The permission prompt as an MCP tool denies"""
    await _judged(lab, "deny")
    assert not lab.exists("x.txt")


async def _judged(lab: Lab, verdict: str) -> dict[str, Any]:
    log = lab.cwd.parent / "judge.log"
    server = Path(__file__).with_name("mcp_server.py")
    judge = {"command": sys.executable, "args": [str(server), verdict, str(log)]}
    flags = ["--mcp-config", json.dumps({"mcpServers": {"judge": judge}})]
    flags += ["--permission-prompt-tool", "mcp__judge__permit"]
    async with lab.run(
        [Turn(BASH), "Done."], ask_us=False, flags=flags, initialize=Initialize()
    ) as run:
        run.cli.prompt("go")
        result = await run.cli.result()
        assert len(result.permission_denials) == (verdict == "deny")
        # The judge is for the CLI alone: the model is not offered it.
        assert "mcp__judge__permit" not in run.model.requests[-1].tools
    (asked,) = (json.loads(line) for line in log.read_text().splitlines())
    assert isinstance(asked, dict)
    return asked
