"""Files that are named to tools which are not our own: rules for reading hold there, too."""

from __future__ import annotations

from typing import Any

import pytest

from bridle.policy import Call, Policy

from .grounds import FOLDER, GROUND, told

HIDING = Policy(
    "autonomous",
    allow=["mcp__fs", "LSP"],
    deny=["Read(./secrets/**)", "Read(.env)", "Edit(/generated/**)"],
).on(GROUND)


def judged(tool: str, **given: Any) -> str:
    return told(HIDING.judge(Call(tool, given)))


@pytest.mark.parametrize(
    "path",
    [
        "secrets/key",
        "./secrets/key",
        f"{FOLDER}/secrets/key",
        "~/app/secrets/key",
        f"file://{FOLDER}/secrets/key",
        f"FILE://localhost{FOLDER}/secrets/key",
        f"file://{FOLDER}/secrets%2Fkey",
        "src/../secrets/key",
        ".env",
        "a/b/.env",
    ],
)
def test_a_file_that_must_not_be_read_is_not_named_to_another_tool(path: str) -> None:
    assert judged("mcp__fs__read_file", path=path) == "deny"
    assert judged("mcp__fs__read_many", paths=["README.md", path]) == "deny"
    assert judged("mcp__fs__read", options={"where": {"uri": path}}) == "deny"
    assert judged("LSP", operation="hover", filePath=path, line=1) == "deny"
    assert judged("ReadMcpResourceTool", server="fs", uri=path) == "deny"


def test_a_folder_with_such_a_file_in_it_is_asked_about() -> None:
    for path in (".", FOLDER, "~", "..", f"file://{FOLDER}"):
        assert judged("mcp__fs__list", path=path) == "ask", path


def test_a_file_that_must_not_be_changed_is_asked_about() -> None:
    assert judged("mcp__fs__write_file", path="generated/api.py", content="") == "ask"


def test_what_names_none_of_them_is_allowed() -> None:
    assert judged("mcp__fs__read_file", path="src/a.py") == "allow"
    assert judged("mcp__fs__search", query="passwords", repo="me/app") == "allow"
    assert judged("LSP", operation="hover", filePath="src/a.py", line=1) == "allow"


def test_a_rule_for_a_slash_command_takes_effect() -> None:
    judge = Policy("ask", allow=["SlashCommand(/review:*)"], deny=["SlashCommand(/ship)"]).on(
        GROUND
    )
    assert told(judge.judge(Call("SlashCommand", {"command": "/review"}))) == "allow"
    assert told(judge.judge(Call("SlashCommand", {"command": "/review 12"}))) == "allow"
    assert told(judge.judge(Call("SlashCommand", {"command": "/reviewer"}))) == "ask"
    assert told(judge.judge(Call("SlashCommand", {"command": "/ship"}))) == "deny"
    assert told(judge.judge(Call("SlashCommand", {"command": "/other"}))) == "ask"
