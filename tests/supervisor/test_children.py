"""What a child's launch has of its parent's, and what an agent may choose."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridle.errors import InvalidLaunch, InvalidPolicy, WiderThanParent
from bridle.policy.policy import Policy
from bridle.supervisor.children import (
    CHOSEN,
    CLOSED,
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
    return record


def test_it_is_run_as_its_parent_and_has_nothing_else_of_it(parent: SessionRecord) -> None:
    parent.spec |= {name: f"the parent's {name}" for name in INHERITED}
    others = {"system_prompt": "p", "mcp_servers": {"a": {}}, "setting_sources": ["user"],
              "allowed_tools": ["Bash"], "settings": "/s", "permission_mode": "auto"}  # fmt: skip
    parent.spec |= others
    kept = {name: f"the parent's {name}" for name in INHERITED}
    assert child_spec({}, parent) == {**kept, **CLOSED}
    chosen = {"model": "small", "max_turns": 0, "effort": None}
    assert child_spec(chosen, parent) == {**kept, "model": "small", "max_turns": 0, **CLOSED}


@pytest.mark.parametrize("name", sorted({*INHERITED, *CLOSED, "settings"} - CHOSEN))
def test_what_is_for_people_an_agent_may_not_choose(parent: SessionRecord, name: str) -> None:
    with pytest.raises(InvalidLaunch, match=f"{name} is not for an agent to choose"):
        child_spec({"max_turns": 1, name: None}, parent)


def test_its_further_folders_are_inside_of_its_parents(
    parent: SessionRecord, tmp_path: Path
) -> None:
    wanted = ["sub", str(tmp_path / "also" / "deep")]
    spec = child_spec({"add_dirs": wanted}, parent)
    assert spec["add_dirs"] == [str(tmp_path / "work" / "sub"), str(tmp_path / "also" / "deep")]
    with pytest.raises(WiderThanParent) as caught:
        child_spec({"add_dirs": ["sub", "../elsewhere"]}, parent)
    assert (caught.value.what, caught.value.asked) == ("further folder", "../elsewhere")
    for given, why in (("file", "no folder"), ("none", "no folder"), ("a\0b", "can't be a path")):
        with pytest.raises(InvalidLaunch, match=why):
            child_spec({"add_dirs": [given]}, parent)


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
