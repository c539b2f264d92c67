"""MCP: servers inside our process, and the permission prompt as a tool."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bridle.protocol.answers import McpServers
from bridle.protocol.control import Answer, CanUseTool, McpAnswer, McpMessage
from bridle.protocol.events import RequestReceived
from bridle.protocol.permissions import Allow
from bridle.protocol.requests import Initialize, McpStatus
from bridle.testing import Turn, tool_use

from .lab import BASH, COMMAND, Lab, answered, last_output


class Calculator:
    """An MCP server inside of the test: one tool that adds."""

    def __init__(self) -> None:
        self.methods: list[str] = []
        self.tool_use_ids: list[str] = []

    def respond(self, event: RequestReceived) -> Answer | None:
        match event.request:
            case CanUseTool():
                return Allow()
            case McpMessage(server_name="calc", message=message):
                self.methods.append(message["method"])
                reply = {"jsonrpc": "2.0", "id": message.get("id", 0)}
                return McpAnswer({**reply, "result": self._result(message)})
        return None

    def _result(self, message: dict[str, Any]) -> dict[str, Any]:
        params = message.get("params", {})
        match message["method"]:
            case "initialize":
                return {
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "calc", "version": "1.0"},
                }
            case "tools/list":
                numbers = {"a": {"type": "number"}, "b": {"type": "number"}}
                schema = {"type": "object", "properties": numbers, "required": ["a", "b"]}
                tool = {"name": "add", "description": "add two", "inputSchema": schema}
                return {"tools": [tool]}
            case "tools/call":
                self.tool_use_ids.append(params["_meta"]["claudecode/toolUseId"])
                numbers = params["arguments"]
                total = numbers["a"] + numbers["b"]
                return {"content": [{"type": "text", "text": f"sum={total}"}]}
        return {}


async def test_in_process_server(lab: Lab) -> None:
    """A server inside our process: registered by initialize alone, its tool is called"""
    calculator = Calculator()
    add = tool_use("mcp__calc__add", a=2, b=3)
    async with lab.run(
        [Turn(add), "Five."],
        initialize=Initialize(sdk_mcp_servers=["calc"]),
        respond=calculator.respond,
    ) as run:
        run.cli.prompt("add")
        await run.cli.result()
        assert last_output(run.cli)[0] == "sum=5"
        assert {"initialize", "tools/list", "tools/call"} <= set(calculator.methods)
        assert calculator.tool_use_ids == list(run.model.requests[-1].tool_results)
        status = await answered(run.cli, McpStatus())
        assert isinstance(status, McpServers)
        assert [(s.name, s.status) for s in status.mcp_servers] == [("calc", "connected")]


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
