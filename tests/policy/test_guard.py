"""The laundering guard for tools other than the shell; the table of commands has the rest."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bridle.policy import Asked, Call, Ground, Policy

from .grounds import FOLDER, GROUND, PORT, SOCKET, bash, told

JUDGE = Policy("autonomous").on(GROUND)


def edit(path: str, tool: str = "Edit") -> Call:
    return Call(tool, {"notebook_path" if tool == "NotebookEdit" else "file_path": path})


@pytest.mark.parametrize("tool", ["Edit", "Write", "MultiEdit", "NotebookEdit"])
@pytest.mark.parametrize(
    "path",
    [
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".claude/hooks/x.sh",
        ".claude/agents/x.md",
        ".claude/worktrees/w/.claude/settings.json",
        ".claude/worktrees/../settings.json",
        "sub/.claude/settings.json",
        ".Claude/Settings.json",
        "~/.claude/settings.json",
        "~/.claude/CLAUDE.md",
        "~/.claude.json",
        ".mcp.json",
        "sub/.mcp.json",
        "~/.bridle/x",
        ".bridle/policy.toml",
        "bridle.toml",
        "policies/mine.toml",
        "./policies/../policies/mine.toml",
        ".git/hooks/pre-commit",
        ".git/config",
        ".git/config.worktree",
        ".git/worktrees/w/config.worktree",
        ".git/modules/a/hooks/x",
        ".git/modules/a/b/config",
        ".git/info/attributes",
        ".husky/pre-commit",
        ".githooks/x",
        "~/.gitconfig",
        "~/.config/git/config",
        "~/.bashrc",
        "~/.bash_profile",
        "~/.profile",
        "~/.zshrc",
        "~/.zshenv",
        "~/.config/fish/config.fish",
        "~/.ssh/authorized_keys",
        "~/.ssh/config",
        ".envrc",
        "/etc/profile",
        "/etc/profile.d/x.sh",
        "/etc/cron.d/x",
        "/etc/sudoers",
        "~/.config/systemd/user/x.service",
        "~/.config/autostart/x.desktop",
        "~/.tcshrc",
        "~/.cshrc",
        "~/.bashrc.d/x.sh",
        ".git/COMMIT_EDITMSG",
        ".git/commondir",
        ".git/modules/m/config",
        "vendor/lib/.git/config",
        "vendor/lib/.git",
        "node_modules/@anthropic-ai/claude-code/cli.js",
        "node_modules/.bin/claude",
        "~/.local/bin/claude",
        "~/.local/share/claude/versions/2.1.325",
    ],
)
def test_an_edit_of_what_is_run_or_allowed_later_is_asked_of_a_person(tool: str, path: str) -> None:
    verdict = JUDGE.judge(edit(path, tool))
    assert isinstance(verdict, Asked)
    assert verdict.guard
    assert verdict.guard in verdict.because


@pytest.mark.parametrize(
    "path",
    [
        "src/a.py",
        ".gitignore",
        ".github/workflows/x.yml",
        "CLAUDE.md",
        ".claude/worktrees/w/src/a.py",
        "docs/claude/settings.json",
        "my.claude/x",
        "x.bashrc",
        "bashrc",
        "hooks/pre-commit",
        "~/.claude/plans/x.md",
        "~/.claude/projects/p/memory/a.md",
        "~/.config/other/x",
        "policies/other.toml",
        ".env",
    ],
)
def test_an_edit_of_anything_else_is_not(path: str) -> None:
    assert told(JUDGE.judge(edit(path))) == "allow"


@pytest.mark.parametrize("path", [".claude/settings.json", "~/.bashrc", ".git/config", ".mcp.json"])
def test_what_is_guarded_may_be_read(path: str) -> None:
    assert told(JUDGE.judge(Call("Read", {"file_path": path}))) == "allow"


@pytest.mark.parametrize(
    "call",
    [
        Call("Read", {"file_path": "~/.bridle/token"}),
        Call("Read", {"file_path": "/home/me/.bridle/token"}),
        Call("Read", {"file_path": "../.bridle/token"}),
        Call("Glob", {"pattern": "*", "path": "~/.bridle"}),
        Call("Glob", {"pattern": "/home/me/.bridle/*"}),
        Call("Glob", {"pattern": "../.bridle/*"}),
        Call("Grep", {"pattern": "x", "path": "~/.bridle/"}),
        Call("LS", {"path": "/home/me/.bridle"}),
        Call("WebFetch", {"url": f"http://localhost:{PORT}/"}),
        Call("WebFetch", {"url": f"http://127.0.0.1:{PORT}/x"}),
        Call("WebFetch", {"url": f"http://[::1]:{PORT}/x"}),
        Call("WebFetch", {"url": f"http://2130706433:{PORT}/x"}),
        Call("WebFetch", {"url": f"http://localtest.me:{PORT}/x"}),
        Call("mcp__http__get", {"url": f"http://localhost:{PORT}/"}),
        Call("mcp__http__get", {"request": {"urls": [f"http://127.0.0.1:{PORT}/"]}}),
        Call("mcp__http__get", {f"http://127.0.0.1:{PORT}/": True}),
        Call("mcp__http__get", {"host": "localhost", "port": int(PORT)}),
        Call("mcp__http__get", {"socket": SOCKET}),
        Call("mcp__fs__read_file", {"path": "/home/me/.bridle/token"}),
        Call("mcp__fs__write_file", {"path": ".claude/settings.json"}),
        Call("mcp__fs__write_file", {"path": "/home/me/.bashrc"}),
    ],
)
def test_bridles_own_door_and_home_are_asked_of_a_person(call: Call) -> None:
    assert told(JUDGE.judge(call)) == "guard"


@pytest.mark.parametrize(
    "url", ["http://localhost:3000/", f"https://example.com/{PORT}", "http://localhost/"]
)
def test_other_addresses_are_no_matter_of_the_guard(url: str) -> None:
    assert told(JUDGE.judge(Call("WebFetch", {"url": url}))) == "allow"


def test_where_case_is_ignored_bridles_home_is_guarded_in_every_spelling() -> None:
    ground = Ground(
        folder=FOLDER,
        home="/home/me",
        bridle_home="/home/me/.bridle",
        guarded=("/home/me/app/mine.toml",),
        ignores_case=True,
    )
    judge = Policy("autonomous").on(ground)
    assert told(judge.judge(Call("Read", {"file_path": "/Home/me/.BRIDLE/token"}))) == "guard"
    assert told(judge.judge(bash("cat ~/.Bridle/token"))) == "guard"
    assert told(judge.judge(edit("MINE.toml"))) == "guard"


@pytest.mark.parametrize(
    "home", ["/home/me/.bridle/", "/home/me//.bridle", "/home/me/x/../.bridle"]
)
def test_bridles_home_may_be_written_in_any_way(home: str) -> None:
    judge = Policy("autonomous").on(Ground(folder=FOLDER, home="/home/me", bridle_home=home))
    assert told(judge.judge(Call("Read", {"file_path": "/home/me/.bridle/token"}))) == "guard"
    assert told(judge.judge(bash("mv ~/.bridle x"))) == "guard"


def test_without_a_home_and_addresses_there_is_nothing_of_bridle_to_guard() -> None:
    judge = Policy("autonomous").on(Ground(folder="/x"))
    assert told(judge.judge(bash("curl localhost:8123"))) == "allow"
    assert told(judge.judge(Call("Read", {"file_path": "/y"}))) == "allow"
    assert told(judge.judge(edit(".claude/settings.json"))) == "guard"


def test_the_guard_can_be_switched_off() -> None:
    judge = Policy("autonomous", has_guard=False).on(GROUND)
    calls: list[Call] = [
        edit(".claude/settings.json"),
        bash("bridle approve 1"),
        bash("ls", dangerouslyDisableSandbox=True),
        bash("curl localhost:8123"),
    ]
    assert [told(judge.judge(call)) for call in calls] == ["allow"] * 4


@pytest.mark.parametrize("rules", [{"allow": ["Bash"]}, {"allow": ["Bash(cp:*)"]}, {}])
def test_whatever_allows_it_the_guard_asks(rules: Any) -> None:
    judge = Policy("autonomous", **rules).on(GROUND)
    assert told(judge.judge(bash("cp x .git/hooks/pre-commit"))) == "guard"
    exact = Policy(allow=["Bash(cp x .git/hooks/pre-commit)"]).on(GROUND)
    assert told(exact.judge(bash("cp x .git/hooks/pre-commit"))) == "guard"


def test_a_home_with_an_ordinary_name_is_named_only_with_the_folder_it_is_in() -> None:
    ground = replace(GROUND, bridle_home="/data/bridle/home")
    edits = Policy("edits").on(ground)
    for command in ("ls /home/me/app", "echo home", "cat home.txt", "grep -rn bridle src"):
        assert told(edits.judge(bash(command))) == "allow", command
    for command in ("x=/data/bridle/home/token; cat $x", "cat /data/{bridle/home,x}/token"):
        assert told(edits.judge(bash(command))) == "guard", command
