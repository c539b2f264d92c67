"""What the user's own settings deny, or want asked, holds for every agent."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

import bridle
from bridle.process.spec import LaunchSpec
from bridle.session import user_rules as module
from bridle.session.connect import Connecting
from bridle.session.user_rules import user_rules, with_mode
from tests.policy.grounds import bash, told

RULES = {"permissions": {"allow": ["Bash"], "deny": ["Bash(rm:*)"], "ask": ["WebFetch"]}}
FOUND = [("deny", "Bash(rm:*)"), ("ask", "WebFetch")]


@pytest.fixture(autouse=True)
def _no_managed_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "MANAGED", (tmp_path / "managed.json",))


def found(tmp_path: Path, **options: Any) -> list[tuple[str, str]]:
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude"), "HOME": str(tmp_path)}
    rules = user_rules(LaunchSpec(cwd=tmp_path, env={**env, **options.pop("env", {})}, **options))
    return [(rule.behavior, rule.text) for rule in rules]


def put(file: Path, value: object = RULES) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(value if isinstance(value, str) else json.dumps(value))
    return file


def test_rules_are_found_in_the_users_settings_where_the_cli_reads_them(tmp_path: Path) -> None:
    assert found(tmp_path) == []
    put(tmp_path / "claude/settings.json")
    assert found(tmp_path) == FOUND
    assert found(tmp_path, setting_sources=["user", "project"]) == FOUND
    assert found(tmp_path, setting_sources=["project"]) == []
    put(tmp_path / ".claude/settings.json", {"permissions": {"deny": ["Edit"]}})
    assert found(tmp_path, env={"CLAUDE_CONFIG_DIR": ""}) == [("deny", "Edit")]


def test_rules_are_found_in_managed_settings_and_in_those_of_the_launch(tmp_path: Path) -> None:
    file = put(tmp_path / "given.json")
    for settings in (RULES, json.dumps(RULES), str(file), "given.json"):
        assert found(tmp_path, settings=settings) == FOUND
    put(tmp_path / "managed.json", {"permissions": {"deny": ["Edit"]}})
    assert found(tmp_path, setting_sources=[], settings=RULES) == [("deny", "Edit"), *FOUND]


@pytest.mark.parametrize(
    "settings", ["{", "[]", {"permissions": []}, {"permissions": {"deny": "Bash"}}]
)
def test_settings_that_cannot_be_read_stop_nobody(tmp_path: Path, settings: object) -> None:
    put(tmp_path / "claude/settings.json", settings)
    assert found(tmp_path) == []


def test_one_odd_rule_does_not_hide_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"permissions": {"deny": ["bash(ls)", 5, "Bash(rm:*)"]}}
    put(tmp_path / "claude/settings.json", settings)
    with caplog.at_level(logging.WARNING, "bridle.session"):
        assert found(tmp_path) == [("deny", "Bash(rm:*)")]
    assert "a rule of" in caplog.text


def test_they_hold_for_an_agent(tmp_path: Path) -> None:
    put(tmp_path / "claude/settings.json")
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}
    connecting = bridle.connect(cwd=tmp_path, env=env, policy="autonomous")
    assert isinstance(connecting, Connecting)
    gate = connecting._handlers.gate
    assert gate
    assert told(gate.policy.judge(bash("rm x"))) == "deny"
    assert told(gate.policy.judge(bash("touch x"))) == "allow"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, "default"),
        ({"permission_mode": "plan"}, "plan"),
        ({"dangerously_skip_permissions": True}, None),
        ({"settings": {"permissions": {"defaultMode": "plan"}}}, None),
        ({"settings": {"permissions": {"allow": []}}}, "default"),
        ({"settings": {"permissions": {"defaultMode": None}}}, "default"),
        ({"settings": {"permissions": {"defaultMode": "yolo"}}}, "default"),
    ],
)
def test_a_cli_is_always_told_a_mode(tmp_path: Path, given: Any, wanted: str | None) -> None:
    """Without one 2.1.300 begins in `auto`."""
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}
    assert with_mode(LaunchSpec(cwd=tmp_path, env=env, **given)).permission_mode == wanted


def test_settings_that_are_no_text_name_no_mode(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_bytes(b'{"permissions": "\xff"}')
    assert with_mode(LaunchSpec(cwd=tmp_path)).permission_mode == "default"


def test_a_mode_that_settings_name_is_taken_from_there(tmp_path: Path) -> None:
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}
    plan = '{"permissions": {"defaultMode": "plan"}}'
    for folder, source in ((tmp_path / "claude", "user"), (tmp_path / ".claude", "project")):
        folder.mkdir()
        (folder / "settings.json").write_text(plan)
        cases: list[Any] = [([source], None), (["local"], "default"), (None, None)]
        for sources, wanted in cases:
            spec = LaunchSpec(cwd=tmp_path, env=env, setting_sources=sources)
            assert with_mode(spec).permission_mode == wanted, (source, sources)
        (folder / "settings.json").unlink()
