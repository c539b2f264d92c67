"""What a folder brings is found before anything starts, and kept out until it is trusted."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bridle
from bridle.session.connect import Connecting
from bridle.session.folder import MAX_INSTRUCTIONS, MAX_SETTINGS, TOO_MUCH, Survey, survey


def put(folder: Path, name: str, value: object) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(value if isinstance(value, str) else json.dumps(value))
    return file


def brings(folder: Path) -> list[str]:
    return [brought.what for brought in survey(folder).brings]


def launched(folder: Path, **options: Any) -> tuple[bridle.LaunchSpec, Survey | None]:
    connecting = bridle.connect(cwd=folder, **options)
    assert isinstance(connecting, Connecting)
    spec: bridle.LaunchSpec = connecting._transport._spec  # type: ignore[attr-defined]
    return spec, connecting._options.withheld


def test_an_ordinary_folder_brings_nothing(tmp_path: Path) -> None:
    put(tmp_path, "CLAUDE.md", "Be kind.")
    put(tmp_path, ".claude/settings.json", {"permissions": {"deny": ["Bash"], "ask": ["Read"]}})
    assert brings(tmp_path) == []
    spec, withheld = launched(tmp_path)
    # What comes there later, by a `git pull`, would be in force at once.
    assert spec.setting_sources == ("user",)
    assert "Be kind." in (spec.append_system_prompt or "")
    assert withheld is None
    spec, _ = launched(tmp_path, trust=survey(tmp_path))
    assert (spec.setting_sources, spec.append_system_prompt) == (None, None)


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"hooks": {"Stop": []}}, "hooks"),
        ({"permissions": {"allow": ["Bash"]}}, "permissions.allow"),
        ({"permissions": {"defaultMode": "bypassPermissions"}}, "permissions.defaultMode"),
        ({"permissions": {"additionalDirectories": ["/"]}}, "permissions.additionalDirectories"),
        ({"env": {"ANTHROPIC_BASE_URL": "http://evil"}}, "env"),
        ({"apiKeyHelper": "x"}, "apiKeyHelper"),
        ({"disableAllHooks": True}, "disableAllHooks"),
        ({"something new": 1}, "something new"),
        ([], "settings that can't be read"),
        ("{ no json", "settings that can't be read"),
        ({"permissions": []}, "permissions that can't be read"),
    ],
)
@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_settings_that_give_something_are_found(
    tmp_path: Path, name: str, settings: object, what: str
) -> None:
    file = put(tmp_path, f".claude/{name}", settings)
    (found,) = survey(tmp_path).brings
    assert (found.what, found.file) == (what, str(file))


@pytest.mark.parametrize("data", [b"\xff", b"[" * 100_000, b'"\xff"', b""])
def test_settings_of_any_bytes_are_survived_and_told(tmp_path: Path, data: bytes) -> None:
    file = put(tmp_path, ".claude/settings.json", {})
    file.write_bytes(data)
    (found,) = survey(tmp_path).brings
    assert (found.what, found.file) == ("settings that can't be read", str(file))


def test_servers_skills_commands_and_agents_are_found(tmp_path: Path) -> None:
    put(tmp_path, ".mcp.json", {"mcpServers": {"evil": {"command": "sh"}}})
    put(tmp_path, ".claude/skills/a/SKILL.md", "!`rm`")
    put(tmp_path, ".claude/commands/b.md", "!`rm`")
    put(tmp_path, ".claude/agents/c.md", "---\nhooks: x\n---")
    assert sorted(brings(tmp_path)) == ["MCP servers", "agents", "commands", "skills"]
    assert "evil" in str(survey(tmp_path).brings[0])


def test_what_the_folders_above_bring_is_found_too(tmp_path: Path) -> None:
    put(tmp_path, ".claude/settings.local.json", {"env": {"A": "1"}})
    (tmp_path / "sub/deep").mkdir(parents=True)
    assert brings(tmp_path / "sub/deep") == ["env"]


def test_what_is_in_the_users_own_home_is_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    put(tmp_path, ".claude/settings.json", {"hooks": {}})
    (tmp_path / "app").mkdir()
    assert brings(tmp_path / "app") == []


def test_what_is_brought_is_kept_out_and_the_instructions_are_passed_along(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".git").mkdir()
    put(tmp_path, "CLAUDE.md", "Outer words.")
    put(tmp_path, "app/CLAUDE.md", "Inner words.")
    put(tmp_path, "app/.claude/settings.json", {"hooks": {}})
    spec, withheld = launched(tmp_path / "app", append_system_prompt="Mine.")
    assert spec.setting_sources == ("user",)
    assert spec.append_system_prompt
    places = [spec.append_system_prompt.index(w) for w in ("Mine.", "Outer words.", "Inner words.")]
    assert places == sorted(places)
    assert withheld
    assert "kept out" in caplog.text
    assert "hooks" in caplog.text


def test_who_trusts_what_was_found_gets_all_of_it(tmp_path: Path) -> None:
    put(tmp_path, ".claude/settings.json", {"hooks": {}})
    spec, withheld = launched(tmp_path, trust=survey(tmp_path))
    assert (spec.setting_sources, withheld) == (None, None)


@pytest.mark.parametrize(
    "name", [".claude/settings.json", ".mcp.json", ".claude/skills/a/run.sh", ".claude/agents/x.md"]
)
def test_what_changes_after_it_was_trusted_is_kept_out_again(tmp_path: Path, name: str) -> None:
    put(tmp_path, ".claude/settings.json", {"hooks": {}})
    trusted = survey(tmp_path)
    put(tmp_path, name, {"env": {"A": "1"}})
    spec, withheld = launched(tmp_path, trust=trusted)
    assert spec.setting_sources == ("user",)
    assert withheld


def test_sources_that_the_user_names_are_used_as_they_are(tmp_path: Path) -> None:
    put(tmp_path, ".claude/settings.json", {"hooks": {}})
    spec, withheld = launched(tmp_path, setting_sources=["project"])
    assert (list(spec.setting_sources or ()), withheld) == (["project"], None)


def test_a_folder_that_is_a_link_is_surveyed_where_it_really_is(tmp_path: Path) -> None:
    put(tmp_path, "real/.claude/settings.json", {"hooks": {}})
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert survey(tmp_path / "link").digest == survey(tmp_path / "real").digest


def test_a_plan_is_launched_so_that_its_reviewer_may_choose(tmp_path: Path) -> None:
    spec, _ = launched(tmp_path, permission_mode="plan", env={"IS_SANDBOX": "1"})
    assert spec.allow_dangerously_skip_permissions
    spec, _ = launched(tmp_path, permission_mode="default", env={"IS_SANDBOX": "1"})
    assert not spec.allow_dangerously_skip_permissions


def test_what_a_folder_denies_holds_although_its_settings_are_kept_out(tmp_path: Path) -> None:
    rules = {"deny": ["Read(./secrets/**)"], "ask": ["Bash(git push:*)"], "allow": ["Bash"]}
    put(tmp_path, ".claude/settings.json", {"permissions": rules})
    options: list[dict[str, Any]] = [
        {},
        {"trust": survey(tmp_path)},
        {"setting_sources": ["user", "project"]},
    ]
    for given in options:
        connecting = bridle.connect(cwd=tmp_path, **given)
        policy = connecting._handlers.gate.policy.policy  # type: ignore[union-attr]
        assert [(rule.behavior, rule.text) for rule in policy.rules] == [
            ("deny", "Read(./secrets/**)"),
            ("ask", "Bash(git push:*)"),
        ]


def test_a_skill_behind_a_link_is_seen_and_its_change_too(tmp_path: Path) -> None:
    skill = put(tmp_path, "elsewhere/SKILL.md", "one")
    (tmp_path / "app/.claude/skills").mkdir(parents=True)
    (tmp_path / "app/.claude/skills/a").symlink_to(tmp_path / "elsewhere")
    before = survey(tmp_path / "app")
    assert [brought.what for brought in before.brings] == ["skills"]
    skill.write_text("two")
    assert not survey(tmp_path / "app").is_same(before)


def test_what_can_not_be_looked_at_to_its_end_can_not_be_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridle.session.folder.MAX_FILES", 3)
    for number in range(5):
        put(tmp_path, f".claude/commands/{number}.md", "x")
    found = survey(tmp_path)
    assert not found.is_same(found)
    spec, withheld = launched(tmp_path, trust=found)
    assert withheld
    assert spec.setting_sources == ("user",)


def test_links_in_a_circle_are_survived(tmp_path: Path) -> None:
    (tmp_path / ".claude/skills").mkdir(parents=True)
    (tmp_path / ".claude/skills/a").symlink_to(tmp_path / ".claude")
    put(tmp_path, ".claude/skills/b.md", "x")
    found = survey(tmp_path)
    assert found.brings


def test_another_folder_is_not_trusted_for_having_the_same_in_it(tmp_path: Path) -> None:
    for name in ("one", "two"):
        put(tmp_path, f"{name}/.mcp.json", {"mcpServers": {}})
    _, withheld = launched(tmp_path / "two", trust=survey(tmp_path / "one"))
    assert withheld


@pytest.mark.parametrize("word", ["--settings={}", "--setting-sources=project", "--settings"])
def test_words_that_would_go_round_the_gate_are_refused(tmp_path: Path, word: str) -> None:
    with pytest.raises(bridle.errors.InvalidLaunch, match="go round the gate"):
        bridle.connect(cwd=tmp_path, extra_args=[word])
    bridle.connect(cwd=tmp_path, extra_args=[word], policy=bridle.Ungated())


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(bridle.errors.InvalidLaunch, match="no folder"):
        survey(tmp_path / "typo")


def test_a_folder_above_that_may_not_be_looked_at_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "app/.claude/settings.json", {"hooks": {}})
    closed, exists = tmp_path / ".claude", Path.exists

    def looked_at(path: Path) -> bool:
        if path.is_relative_to(closed):
            raise PermissionError(13, "Permission denied", str(path))
        return exists(path)

    monkeypatch.setattr(Path, "exists", looked_at)
    assert brings(tmp_path / "app") == ["hooks"]


def a_socket(file: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(file))


def endless(file: Path) -> None:
    file.touch()
    os.truncate(file, 10**12)


def a_link_to_a_pipe(file: Path) -> None:
    os.mkfifo(pipe := file.with_name("pipe"))
    file.symlink_to(pipe)


NO_FILES: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "device": lambda file: file.symlink_to("/dev/zero"),
    "link to a pipe": a_link_to_a_pipe,
    "socket": a_socket,
    "folder": Path.mkdir,
    "endless": endless,
}


@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize(
    ("name", "what"),
    [
        (".claude/settings.json", "settings that can't be read"),
        (".claude/settings.local.json", "settings that can't be read"),
        (".mcp.json", "MCP servers"),
    ],
)
def test_what_is_no_file_is_not_waited_for_and_never_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str, what: str
) -> None:
    (tmp_path / ".claude").mkdir()
    monkeypatch.chdir(tmp_path)
    NO_FILES[kind](tmp_path / name)
    found = survey(tmp_path)
    assert [brought.what for brought in found.brings] == [what, TOO_MUCH]
    assert (found.digest, found.rules) == ("", ())
    spec, _ = launched(tmp_path, trust=found)
    assert spec.setting_sources == ("user",)


@pytest.mark.parametrize("kind", [kind for kind in NO_FILES if kind != "folder"])
def test_a_skill_that_is_no_file_is_never_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    put(tmp_path, ".claude/skills/a/SKILL.md", "a skill")
    monkeypatch.chdir(tmp_path)
    NO_FILES[kind](tmp_path / ".claude" / "skills" / "b")
    assert TOO_MUCH in brings(tmp_path)
    assert survey(tmp_path).digest == ""


@pytest.mark.parametrize("kind", [kind for kind in NO_FILES if kind != "endless"])
def test_instructions_that_are_no_file_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    NO_FILES[kind](tmp_path / "CLAUDE.md")
    assert survey(tmp_path).instructions == ""


def test_endless_instructions_are_read_as_far_as_they_are_passed_along(tmp_path: Path) -> None:
    endless(tmp_path / "CLAUDE.md")
    assert len(survey(tmp_path).instructions) == MAX_INSTRUCTIONS


def test_settings_may_be_as_large_as_they_are_looked_at(tmp_path: Path) -> None:
    text = json.dumps({"permissions": {"deny": ["Bash"]}}).ljust(MAX_SETTINGS)
    put(tmp_path, ".claude/settings.json", text)
    found = survey(tmp_path)
    assert (found.brings, len(found.rules)) == ((), 1)
    assert found.digest
