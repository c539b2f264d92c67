"""Files that are named to tools which are not our own: rules for reading hold there, too."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bridle.policy import Call, Policy
from bridle.policy.judge import MAX_TEXTS

from .grounds import FOLDER, GROUND, bash, told

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
        f"file:{FOLDER}/secrets/key",
        f" file://{FOLDER}/secrets/key",
        f"file://{FOLDER}/.env?x",
        f"file://{FOLDER}/s%65crets/key#y",
        f"file://127.0.0.1{FOLDER}/secrets/key",
        f"vscode-file://vscode-app{FOLDER}/secrets/key",
        f"view-source:file://{FOLDER}/secrets/key",
        f"file://{FOLDER}\\secrets\\key",
        "secrets\\key",
        "$HOME/app/secrets/key",
        "secrets/a\u202fb",
        "\u00a0secrets/key",
        "secrets/key\n",
        "\tsecrets/key",
        "./" * 3_000 + "secrets/key",
        "a.txt,secrets/key",
        '["secrets/key"]',
        "a.txt secrets/key",
        "HEAD:secrets/key",
        "--file=secrets/key",
        "$PWD/secrets/key",
        "${PWD}/secrets/key",
        "secrets%2Fkey",
    ],
)
def test_a_file_that_must_not_be_read_is_not_named_to_another_tool(path: str) -> None:
    assert judged("mcp__fs__read_file", path=path) == "deny"
    assert judged("mcp__fs__read_many", paths=["README.md", path]) == "deny"
    assert judged("mcp__fs__read", options={"where": {"uri": path}}) == "deny"
    assert judged("LSP", operation="hover", filePath=path, line=1) == "deny"
    assert judged("ReadMcpResourceTool", server="fs", uri=path) == "deny"


def test_a_folder_with_such_a_file_in_it_is_asked_about() -> None:
    for path in (".", FOLDER, f"file://{FOLDER}", "sec*/key", "**/key", "{secrets,x}/key"):
        assert judged("mcp__fs__list", path=path) == "ask", path
    for path in ("~", "..", "/home", "file:///home/me"):  # Bridle's home is there as well
        assert judged("mcp__fs__list", path=path) == "guard", path
    folders = replace(GROUND, is_folder=lambda path: path == f"{FOLDER}/config")
    judge = Policy("autonomous", deny=["Read(config/secrets/**)"]).on(folders)
    for path in ("config", "config/", "src/../config"):
        assert told(judge.judge(Call("mcp__fs__list", {"path": path}))) == "ask", path
    assert told(judge.judge(Call("mcp__fs__list", {"path": "src"}))) == "allow"


@pytest.mark.parametrize(
    "path",
    [
        "~/.bridle/token",
        "/home/me/.br*/token",
        "file:/home/me/.br%69dle/token",
        f"{FOLDER}/.claude/settings.json\n",
        f"file://{FOLDER}/.mcp.json?x",
        ".git/hooks/pre-commit",
        "../{.bridle,x}/token",
        "../@(.bridle|x)/token",
        "../%2ebridle/token",
        "~/.b" + "*" * 60 + "x/../.bridle/token",
    ],
)
def test_what_is_guarded_is_named_to_no_tool_unseen(path: str) -> None:
    assert judged("mcp__fs__write", path=path) == "guard"


def test_a_folder_and_a_path_below_it_are_taken_together() -> None:
    ground = replace(GROUND, is_folder=lambda path: path in (f"{FOLDER}/src", FOLDER))
    judge = Policy("autonomous", deny=["Read(./secrets/**)"]).on(ground)
    call = Call("mcp__fs__read", {"root": f"{FOLDER}/src", "path": "../secrets/key"})
    assert told(judge.judge(call)) == "deny"


def test_more_globs_than_can_be_looked_at_are_not_passed_over() -> None:
    assert judged("mcp__fs__read", paths=[f"{number}/[a]" for number in range(300)]) == "guard"


def test_more_texts_than_can_be_looked_at_are_not_passed_over() -> None:
    assert judged("mcp__fs__write", path="~/.bridle/token", z=["a"] * MAX_TEXTS) == "guard"
    assert judged("mcp__fs__write", path="a", z=["a"] * (MAX_TEXTS - 5)) == "allow"


def test_a_glob_that_reaches_bridle_is_asked_about_however_it_is_written() -> None:
    for glob in ("../.bridle/*", "../{.bridle,x}/*", "{..,x}/.bridle/*", "../@(.bridle)/*"):
        assert judged("Glob", pattern=glob) == "guard", glob
    for glob in ("**/token", "{.b,x}*/*", "\\.bridle/*"):
        assert judged("Glob", pattern=glob, path="/home/me") == "guard", glob
    for glob in ("**/*.py", "src/{a,b}/*.ts", "*"):
        assert judged("Glob", pattern=glob) == "allow", glob


def test_a_port_in_a_url_is_known_as_those_take_it_who_open_it() -> None:
    for url in ("http://127.0.0.1:%38123/", "http://127.0.0.1:\uff18123/"):
        assert judged("WebFetch", url=url, prompt="x") == "guard"
    for url in ("http://127.0.0.1:81\t23/x", "http://127.0.0.1:\n8123", "http://localhost:8123"):
        assert judged("WebFetch", url=url, prompt="x") == "guard"


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


def test_a_tilde_in_quotes_is_a_name_in_the_folder_and_no_home() -> None:
    judge = Policy("autonomous", deny=["Read(./**)"]).on(GROUND)
    for command, verdict in (
        ("cat ~/notes", "allow"),
        ("cat '~/notes'", "deny"),
        ("cat \\~/notes", "deny"),
        ("cat < ~/notes", "allow"),
        ("cat < '~/notes'", "deny"),
    ):
        assert told(judge.judge(bash(command))) == verdict, command
