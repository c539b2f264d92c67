"""Presets: the table that the docs show, held by what is really judged."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from bridle.errors import InvalidPolicy
from bridle.policy import PRESETS, Call, Policy, Preset
from bridle.policy.presets import NAMES, PRESET_OF_MODE, told_of_mode
from bridle.policy.tools import KNOWN, Kind, kind_of

from .grounds import GROUND, bash, told

CALLS: dict[Kind, Call] = {
    "read": Call("Read", {"file_path": "/etc/hosts"}),
    "bookkeeping": Call("TodoWrite", {"todos": []}),
    "edit": Call("Edit", {"file_path": "src/a.py"}),
    "edit elsewhere": Call("Write", {"file_path": "/tmp/a"}),
    "reading command": bash("ls -la"),
    "command": bash("npm install"),
    "web": Call("WebFetch", {"url": "https://example.com"}),
    "mcp": Call("mcp__a__b", {}),
    "question": Call("AskUserQuestion", {"questions": []}),
    "plan": Call("ExitPlanMode", {"plan": "x"}),
    "other": Call("Unheard", {}),
}
EXPECTED: dict[str, dict[str, str]] = {
    # reading, notes, edits, edits outside, reading commands, commands, web, mcp, question, plan
    "ask": dict(zip(CALLS, "aaqqqqqqqqq", strict=True)),
    "read-only": dict(zip(CALLS, "aaddadqqqqd", strict=True)),
    "edits": dict(zip(CALLS, "aaaqaqqqqqq", strict=True)),
    "plan": dict(zip(CALLS, "aaddadqdqqd", strict=True)),
    "autonomous": dict(zip(CALLS, "aaaaaaaaqqa", strict=True)),
}
_WORDS = {"a": "allow", "q": "ask", "d": "deny"}


@pytest.mark.parametrize("preset", NAMES)
def test_a_preset_answers_as_its_table_says(preset: Preset) -> None:
    judge = Policy(preset).on(GROUND)
    for kind, call in CALLS.items():
        expected = _WORDS[EXPECTED[preset][kind]]
        assert told(judge.judge(call)) == expected, kind
        assert PRESETS[preset][kind] == expected, kind


def test_every_preset_speaks_of_every_kind() -> None:
    assert set(NAMES) == set(PRESETS)
    assert all(set(table) == set(get_args(Kind)) for table in PRESETS.values())


@pytest.mark.parametrize(
    "tool", ["Glob", "Grep", "Read", "NotebookRead", "Task", "Agent", "TodoWrite"]
)
@pytest.mark.parametrize("preset", NAMES)
def test_reading_and_notes_pass_in_every_preset(tool: str, preset: Preset) -> None:
    given = {"file_path": "a", "notebook_path": "a", "pattern": "x"}
    assert told(Policy(preset).on(GROUND).judge(Call(tool, given))) == "allow"


@pytest.mark.parametrize("preset", NAMES)
def test_no_preset_answers_a_persons_questions(preset: Preset) -> None:
    judge = Policy(preset).on(GROUND)
    assert told(judge.judge(CALLS["question"])) == "ask"
    assert told(judge.judge(CALLS["plan"])) == "ask"


def test_the_preset_is_ask_where_none_is_named() -> None:
    assert Policy().preset == "ask"


def test_an_unknown_preset_is_refused_with_those_that_exist() -> None:
    wrong: Any = "yolo"
    with pytest.raises(InvalidPolicy, match="autonomous"):
        Policy(wrong)


def test_modes_stand_for_presets_that_exist() -> None:
    assert set(PRESET_OF_MODE.values()) <= set(NAMES)
    assert PRESET_OF_MODE["acceptEdits"] == "edits"


@pytest.mark.parametrize(
    ("mode", "preset", "wanted"),
    [
        ("acceptEdits", "ask", "edits"),
        ("acceptEdits", "plan", "edits"),
        ("bypassPermissions", "edits", "autonomous"),
        ("auto", "read-only", "autonomous"),
        ("acceptEdits", "edits", ""),
        ("acceptEdits", "autonomous", ""),
        ("bypassPermissions", "autonomous", ""),
        ("default", "ask", ""),
        ("plan", "ask", ""),
        (None, "ask", ""),
    ],
)
def test_a_mode_that_lets_nothing_more_pass_is_told(mode: Any, preset: Any, wanted: str) -> None:
    told = told_of_mode(mode, preset)
    assert (f"use the policy `{wanted}`" in told) if wanted else told == ""


def test_a_tool_that_is_not_known_is_never_taken_for_a_harmless_one() -> None:
    for tool in ("read", "Reads", "TASK", "Mcp__a", " Read", "Read ", ""):
        assert kind_of(tool) == "other", tool
    assert {kind_of(tool) for tool in KNOWN} <= set(get_args(Kind))


#: What the tested versions say that they have; `tests/conformance` asks them.
ANNOUNCED = """
AskUserQuestion Bash CronCreate CronDelete CronList Edit EnterPlanMode EnterWorktree ExitPlanMode
ExitWorktree Glob Grep KillShell LSP ListAgents MCPSearch Monitor NotebookEdit Read ReportFindings
ScheduleWakeup SendMessage Skill StructuredOutput Task TaskCreate TaskGet TaskList TaskOutput
TaskStop TaskUpdate TodoWrite ToolSearch WebFetch WebSearch Workflow Write
"""


def test_every_tool_that_a_cli_announces_is_known() -> None:
    """A new one is asked about, or denied where nobody can be asked: that must be meant."""
    assert {*ANNOUNCED.split()} - KNOWN == set()


@pytest.mark.parametrize("preset", NAMES)
@pytest.mark.parametrize("tool", ["StructuredOutput", "ReportFindings", "ListAgents", "TaskStop"])
def test_what_an_agent_has_to_say_at_the_end_needs_nobody(tool: str, preset: Any) -> None:
    assert told(Policy(preset).on(GROUND).judge(Call(tool, {"name": "Ada"}))) == "allow"


def test_a_list_of_rules_that_is_text_is_refused() -> None:
    wrong: Any = "Bash(ls)"
    with pytest.raises(InvalidPolicy, match="list"):
        Policy(allow=wrong)
