"""What a child's launch has of its parent's, and what an agent may choose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bridle.errors import InvalidLaunch, InvalidPolicy, WiderThanParent
from bridle.policy.policy import Policy
from bridle.supervisor.children import (
    CHOSEN,
    INHERITED,
    check_child_name,
    child_policy,
    child_spec,
    launched_spec,
)
from bridle.supervisor.record import SessionRecord

from .streams import session


@pytest.fixture
def parent(tmp_path: Path) -> SessionRecord:
    for name in ("work/sub", "also/deep", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "work" / "file").write_text("")
    record = session("p").record
    record.folder = str(tmp_path / "work")
    record.spec = {"add_dirs": [str(tmp_path / "also")]}
    record.homes = {"claude_home": str(tmp_path / "claude")}
    return record


#: How the parent is run: of each its own value.
HOW: dict[str, Any] = {
    "command": ["claude-of-the-parent"], "router": "r", "containment": ["box"],
    "inherit_env": False, "unset": ["X"], "remove_api_key": True, "entrypoint": "e",
    "file_checkpointing": True, "session_state_events": True, "model": "large",
    "extra_args": ["--verbose"], "plugin_dirs": ["/p"], "agent": "a",
    "builtin_tools": ["Bash", "Read"],
}  # fmt: skip
CLOSED = {"setting_sources": [], "strict_mcp_config": True}


def made(parent: SessionRecord, *, is_trusted: bool = False, **options: Any) -> dict[str, Any]:
    return child_spec(options, parent, is_trusted=is_trusted)


def test_it_is_run_as_its_parent_and_has_nothing_else_of_it(parent: SessionRecord) -> None:
    assert set(HOW) == set(INHERITED)
    others = {"system_prompt": "p", "allowed_tools": ["Bash"], "permission_mode": "auto",
              "setting_sources": ["project"]}  # fmt: skip
    parent.spec |= {**HOW, **others}
    agents = Path(parent.homes["claude_home"]) / "agents"
    agents.mkdir(parents=True)
    (agents / "a.md").write_text("")
    assert made(parent) == {**HOW, **CLOSED}
    chosen = made(parent, model="small", system_prompt="mine", effort=None)
    assert chosen == {**HOW, **CLOSED, "model": "small", "system_prompt": "mine"}


def test_it_reads_what_the_users_settings_say_if_its_parent_does(parent: SessionRecord) -> None:
    for sources, is_trusted, read in (
        (None, False, ["user"]),
        (None, True, ["user"]),
        (["user", "project"], True, ["user"]),
        (["project", "local"], True, []),
        ([], True, []),
    ):
        parent.spec["setting_sources"] = sources
        assert made(parent, is_trusted=is_trusted)["setting_sources"] == read


def test_what_keeps_its_parent_in_a_sandbox_keeps_it_there_too(parent: SessionRecord) -> None:
    folder = Path(parent.folder) / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text('{"sandbox": {"a": 1, "b": 1}, "env": {"X": "y"}}')
    (folder / "settings.local.json").write_text('{"sandbox": {"b": 2}}')
    assert "settings" not in made(parent, is_trusted=False)
    assert made(parent, is_trusted=True)["settings"] == {"sandbox": {"a": 1, "b": 2}}
    parent.spec["settings"] = {"sandbox": {"b": 3}, "hooks": {}}
    told = made(parent, is_trusted=True)["settings"]
    assert told == {"sandbox": {"a": 1, "b": 3}, "hooks": {}}
    assert made(parent)["settings"] == {"sandbox": {"b": 3}, "hooks": {}}


@pytest.mark.parametrize("name", ["max_turns", "max_budget_usd"])
def test_of_its_parents_limits_and_its_own_the_least_holds(
    parent: SessionRecord, name: str
) -> None:
    for has, chosen, least in ((5, 3, 3), (3, 5, 3), (None, 3, 3), (3, None, 3), (3, 0, 0)):
        parent.spec[name] = has
        options: dict[str, Any] = {name: chosen}
        assert made(parent, **options)[name] == least
    parent.spec[name] = None
    assert name not in made(parent)


def test_it_has_no_tool_that_its_parent_has_not(parent: SessionRecord) -> None:
    parent.spec["builtin_tools"] = ["Bash", "Read"]
    assert made(parent, builtin_tools=["Read"])["builtin_tools"] == ["Read"]
    with pytest.raises(WiderThanParent) as caught:
        made(parent, builtin_tools=["Read", "Edit"])
    assert (caught.value.asked, caught.value.given) == ("Edit", "Bash, Read")
    parent.spec["builtin_tools"] = []
    with pytest.raises(WiderThanParent, match="none"):
        made(parent, builtin_tools=["Read"])
    parent.spec["builtin_tools"] = None
    assert made(parent, builtin_tools=["Edit"])["builtin_tools"] == ["Edit"]


@pytest.mark.parametrize("word", ["-r", "--resume=x", "--session-id", "--fork-session"])
def test_a_conversation_of_its_parent_is_not_its_own(parent: SessionRecord, word: str) -> None:
    parent.spec["extra_args"] = ["--verbose", word]
    with pytest.raises(InvalidLaunch, match=word.partition("=")[0]):
        made(parent)


@pytest.mark.parametrize("name", sorted({*INHERITED, *CLOSED, "settings"} - CHOSEN))
def test_what_is_for_people_an_agent_may_not_choose(parent: SessionRecord, name: str) -> None:
    options: dict[str, Any] = {"max_turns": 1, name: None}
    with pytest.raises(InvalidLaunch, match=f"{name} is not for an agent to choose"):
        made(parent, **options)


def test_its_further_folders_are_inside_of_its_parents(
    parent: SessionRecord, tmp_path: Path
) -> None:
    wanted = ["sub", str(tmp_path / "also" / "deep")]
    spec = made(parent, add_dirs=wanted)
    assert spec["add_dirs"] == [str(tmp_path / "work" / "sub"), str(tmp_path / "also" / "deep")]
    with pytest.raises(WiderThanParent) as caught:
        made(parent, add_dirs=["sub", "../elsewhere"])
    assert (caught.value.what, caught.value.asked) == ("further folder", "../elsewhere")
    for given, why in (("file", "no folder"), ("none", "no folder"), ("a\0b", "can't be a path")):
        with pytest.raises(InvalidLaunch, match=why):
            made(parent, add_dirs=[given])


@pytest.mark.parametrize(
    ("mode", "told"),
    [("bypassPermissions", None), ("auto", None), ("plan", "plan"), ("acceptEdits", "acceptEdits")],
)
def test_its_cli_is_not_told_what_its_policy_decides(mode: str, told: str | None) -> None:
    spec = {"allowed_tools": ["Bash"], "permission_mode": mode, "model": "small"}
    kept = {"model": "small"} | ({"permission_mode": told} if told else {})
    assert launched_spec(spec) == kept
    assert "allowed_tools" in spec


def test_of_its_own_it_is_to_be_asked_unless_its_parent_may_less() -> None:
    for given, mode, widest, preset in (
        (None, None, "autonomous", "ask"),
        (None, None, "read-only", "read-only"),
        (None, "plan", "autonomous", "plan"),
        (None, "acceptEdits", "edits", "edits"),
        ("edits", None, "autonomous", "edits"),
    ):
        found = child_policy(given, mode, widest)  # type: ignore[arg-type]
        assert isinstance(found, Policy)
        assert found.digest == Policy(preset).digest  # type: ignore[arg-type]
    for mode, widest in (("acceptEdits", "ask"), ("bypassPermissions", "edits"), ("auto", "ask")):
        with pytest.raises(WiderThanParent, match="permission mode"):
            child_policy(None, mode, widest)  # type: ignore[arg-type]
    with pytest.raises(WiderThanParent, match="preset"):
        child_policy("edits", None, "ask")
    with pytest.raises(InvalidPolicy, match="names a preset"):
        child_policy("/some/file.toml", None, "autonomous")


@pytest.mark.parametrize("name", ["a/b", ".", "..", " a", "a ", "a\nb", "abcd", "ABCDEF12"])
def test_a_name_that_people_could_not_use_is_refused(name: str) -> None:
    with pytest.raises(InvalidLaunch):
        check_child_name(name)


@pytest.mark.parametrize("name", ["abc", "abcdefg", "a b", "…", "builder-2"])
def test_any_other_name_will_do(name: str) -> None:
    check_child_name(name)
