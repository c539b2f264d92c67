"""docs/loopback.md: its quick start runs as it stands, and it has every tool as it is."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from bridle.loopback import METHODS, Method
from bridle.loopback import refusals as told
from bridle.loopback.status import Status
from bridle.policy import parse_policy
from bridle.views.happenings import Happening
from tests.loopback.parents import Parent, opened, parent_with
from tests.supervisor.conftest import home, mark
from tests.supervisor.homes import ASKS, Home

from .shells import COMMAND, LIMIT, Shell

__all__ = ["home", "mark"]

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "loopback.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
SOURCES = Path(str(told.__file__)).parent


# --- the quick start

#: `curl -sS -H HEADER -d BODY ADDRESS`, for machines that have none.
CURL = """\
import sys, httpx
at = {flag: sys.argv[sys.argv.index(flag) + 1] for flag in ("-H", "-d")}
name, _, value = at["-H"].partition(": ")
answer = httpx.post(sys.argv[-1], content=at["-d"], headers={name: value}, timeout=60)
print(answer.text, end="")
"""


def tools(shell: Shell) -> None:
    """The commands of the page, and the demo's agent."""
    folder = shell.folder / "bin"
    folder.mkdir()
    (shell.folder / "curl.py").write_text(CURL)
    programs = {
        "bridle": " ".join(COMMAND),
        "curl": f"{sys.executable} {shell.folder / 'curl.py'}",
        "python3": sys.executable,
    }
    for name, command in programs.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (folder / name).chmod(0o755)
    shell.env["PATH"] = f"{folder}:{shell.env['PATH']}"
    shell.env["BRIDLE_DEMO_PACE"] = "0.01"
    shell.env["BRIDLE_CLAUDE"] = f"{sys.executable} -m bridle.cli.demo.agent"


def script(shell: Shell, text: str) -> list[str]:
    """Run as it stands; the lines that it printed."""
    done = subprocess.run(
        ["sh", "-e", "-c", text], cwd=shell.work, env=shell.env, capture_output=True, text=True,
        timeout=LIMIT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout.splitlines()


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.mark.slow
def test_it_can_be_tried_without_an_account(shell: Shell) -> None:
    tools(shell)
    server, client = (block.replace("/tmp/try", str(shell.home)) for block in BLOCKS[:2])
    port = free_port()
    words = server.replace("7788", port).split()
    assert words[0] == "bridle"
    shell.up_with(*words[1:], "--json")
    lines = script(shell, client.replace("7788", port))
    results = [json.loads(line)["result"] for line in lines if line.startswith("{")]
    kinds = [result["type"] for result in results]
    assert kinds == ["created", "started", "ok", "ok", "ok", "ok"]
    assert results[2]["pending_approvals"][0]["tool_name"] == "Edit"
    assert results[4]["status"] == "complete"
    assert results[5]["result"]
    assert any(line.startswith("└ child") for line in lines)


@pytest.mark.slow
def test_the_lines_for_a_parent_and_for_clients_can_be_typed(shell: Shell) -> None:
    """All but `claude` itself, and what needs a terminal."""
    tools(shell)
    managed, own, permit = BLOCKS[2:5]
    shell.up()
    kept = [
        line
        for line in (managed + own + permit).splitlines()
        if not line.startswith(("bridle up", "bridle attach", "claude"))
    ]
    lines = script(shell, "\n".join(kept))
    assert "started lead" in "\n".join(lines)
    for name in (".mcp.json", "permit.json"):
        assert json.loads((shell.work / name).read_text())["mcpServers"]
    assert {one["name"] for one in shell.json("mcp", "list")} == {"outside", "permit"}
    flag = re.search(r"--permission-prompt-tool \S+", permit)
    assert flag
    assert flag[0] in shell.done("mcp", "config", "--permit", "--stdio").stderr


def test_the_policy_of_the_page_can_be_read() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    policy = parse_policy(text, "page.toml", lambda _: "")
    assert [len(entry.rules) for entry in policy.delegate or ()] == [2, 1]
    assert (policy.delegate or ())[1].is_limited


# --- the tools


def signature(method: Method) -> str:
    schema = method.input_schema
    required = set(schema.get("required", ()))
    parts = []
    for name, one in schema["properties"].items():
        if name in required:
            parts.append(name)
        elif one.get("default") in (None, ""):
            parts.append(f"{name}?")
        else:
            parts.append(f"{name}={json.dumps(one['default'])}")
    return f"{method.name}({', '.join(parts)})"


@pytest.mark.parametrize("method", METHODS.values(), ids=lambda method: method.name)
def test_every_tool_has_its_row_with_all_of_its_arguments(method: Method) -> None:
    assert f"| `{signature(method)}` |" in PAGE


def test_no_tool_is_documented_that_there_is_not() -> None:
    rows = re.findall(r"^\| `((?:claudecode|loopback)_\w+)\(", PAGE, re.MULTILINE)
    assert set(rows) == set(METHODS)
    named = set(re.findall(r"`((?:claudecode|loopback)_\w+)[`(]", PAGE))
    assert named - set(METHODS) == {"loopback_permit"}


def test_every_event_status_and_code_is_documented() -> None:
    events = {one.__struct_config__.tag for one in get_args(Happening)}
    said = re.search(r"`event.type` is one of (.*?)\.\n", PAGE, re.DOTALL)
    assert said
    assert set(re.findall(r"`(\w+)`", said[1])) == events
    said = re.search(r"\*\*Status\*\* is that of the latest turn: (.*?)\. ", PAGE, re.DOTALL)
    assert said
    assert set(re.findall(r"`(\w+)`", said[1])) == set(get_args(Status))
    rows = re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \| ", PAGE, re.MULTILINE)
    codes = {code for row in rows for code in re.findall(r"`(\w+)`", row)}
    sources = "".join(file.read_text() for file in SOURCES.glob("*.py"))
    made = set(re.findall(r'(?:Refusal|_error)\(\s*"(\w+)"', sources))
    assert codes == made | {code for _, code in told._CODES}


def documented(tool: str) -> tuple[set[str], set[str]]:
    """The names in a result: those that are always there, and those that may be."""
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{tool}("))
    found = re.search(r"`\{(.*?)\}`", row)
    assert found, row
    names = [name.partition(":")[0] for name in found[1].split(", ")]
    may_be = {name[:-1] for name in names if name.endswith("?")}
    return {name for name in names if not name.endswith("?")}, may_be


def check(tool: str, result: dict[str, Any]) -> None:
    always, may_be = documented(tool)
    assert always <= set(result) <= always | may_be, tool


async def test_the_results_are_as_they_stand_there(home: Home) -> None:
    async with opened(home) as supervisor:
        parent = await parent_with(home, supervisor, *ASKS)
        seen: set[str] = set()

        async def ask(tool: str, **arguments: Any) -> dict[str, Any]:
            given = await parent.ok(tool, **arguments)
            check(tool, given)
            seen.add(tool)
            return given

        await _all_of_them(parent, ask)
        assert seen == set(METHODS) - {"claudecode_chat"}


async def _all_of_them(parent: Parent, ask: Any) -> None:
    await ask("claudecode_create", name="child", policy="ask")
    await ask("claudecode_chat_async", name="child", prompt="go")
    [asked] = (await ask("claudecode_poll", name="child", until="approval"))["pending_approvals"]
    await ask("loopback_pending")
    await ask("loopback_respond", approval_id=asked["id"], approve=True)
    await ask("claudecode_poll", name="child", until="turn_end")
    for tool in ("claudecode_result", "claudecode_get", "claudecode_tree", "claudecode_interrupt"):
        await ask(tool, name="child")
    await ask("claudecode_list")
    await ask("claudecode_create", name="second", policy="ask")
    await parent.ok("claudecode_chat_async", name="second", prompt="go")
    [asked] = (await parent.ok("claudecode_poll", name="second", until="approval"))[
        "pending_approvals"
    ]
    await ask("loopback_escalate", approval_id=asked["id"], why="not mine")
    await ask("claudecode_fork", name="child", new_name="fork")
    await ask("claudecode_stop", name="second")
    await ask("claudecode_delete", name="second")
