"""Where a plan is, what of it is shown, how an edited one goes back, and how it went on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bridle.policy import Call
from bridle.policy.tools import PLAN
from bridle.policy.verdicts import Ground
from bridle.protocol.control import CanUseTool
from bridle.protocol.permissions import Allow, Deny, SetMode
from bridle.session.ground import ground_of
from bridle.session.plans import CHANGED, Plans


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    (tmp_path / "home/.claude/plans").mkdir(parents=True)
    return ground_of(tmp_path, home=str(tmp_path / "home"))


def asked(**given: Any) -> CanUseTool:
    return CanUseTool(tool_name=PLAN, tool_use_id="t1", input=given)


def wrote(plans: Plans, ground: Ground, name: str, tool: str = "Write") -> Path:
    file = Path(ground.home) / ".claude" / "plans" / name
    plans.saw(Call(tool, {"file_path": str(file), "content": "x"}))
    return file


def test_a_plan_that_is_only_in_its_file_is_shown_from_there(ground: Ground) -> None:
    plans = Plans(ground)
    first = wrote(plans, ground, "first.md")
    first.write_text("1. leap")
    file = wrote(plans, ground, "second.md", "Edit")
    file.write_text("1. look")
    assert plans.shown(asked(other=1)).input == {"other": 1, "plan": "1. look"}
    assert plans.shown(asked(plan="told")).input == {"plan": "told"}
    other = CanUseTool(tool_name="Bash", tool_use_id="t2", input={})
    assert plans.shown(other) is other
    file.write_bytes(b"\xff")
    assert plans.shown(asked()).input == {}
    file.unlink()
    assert plans.shown(asked()).input == {}


@pytest.mark.parametrize(
    ("tool", "path"),
    [
        ("Read", "~/.claude/plans/x.md"),
        ("Write", "~/.claude/plans/x.txt"),
        ("Write", "~/.claude/plans/../x.md"),
        ("Write", "~/x.md"),
        ("Write", "~/.claude/plans/a\0.md"),
        ("Write", None),
    ],
)
def test_no_other_file_is_taken_for_the_plan(ground: Ground, tool: str, path: str | None) -> None:
    file = path and path.replace("~", ground.home)
    plans = Plans(ground)
    plans.saw(Call(tool, {"file_path": file}))
    if file and "\0" not in file:
        Path(file).write_text("no plan")
    assert plans.shown(asked()).input == {}


def test_an_edited_plan_goes_back_in_its_file_or_else_as_a_no(ground: Ground) -> None:
    plans, request = Plans(ground), asked(plan="1. leap")
    edited = Allow({"plan": "1. look"})
    for decision in (Allow(), Allow({"plan": "1. leap"}), Allow({"plan": 3}), Deny("no")):
        assert plans.delivered_by(decision, request, is_read=False) is decision
    assert plans.delivered_by(edited, request, is_read=True) is edited
    bash = CanUseTool(tool_name="Bash", tool_use_id="t2", input={})
    assert plans.delivered_by(edited, bash, is_read=False) is edited
    told = plans.delivered_by(edited, request, is_read=False)
    assert isinstance(told, Deny)
    assert told.message == CHANGED + "1. look"
    file = wrote(plans, ground, "x.md")
    assert plans.delivered_by(edited, request, is_read=False) is edited
    assert file.read_text() == "1. look"
    file.unlink()
    file.mkdir()
    told = plans.delivered_by(edited, request, is_read=False)
    assert isinstance(told, Deny)


def test_how_a_plan_went_on_is_told_once_and_with_its_call(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    plans = Plans(ground)

    def chose(*modes: Any) -> None:
        updates = [SetMode(mode=mode, destination="session") for mode in modes]
        plans.chose(Allow(updated_permissions=updates), asked())

    assert plans.told("default") is None
    chose("default", "acceptEdits")
    assert plans.told("plan") is None
    assert plans.told("acceptEdits") == ("t1", "acceptEdits")
    assert plans.told("acceptEdits") is None
    assert caplog.text == ""
    chose("acceptEdits")
    assert plans.told("default") == ("t1", "acceptEdits")
    assert "was to go on in acceptEdits, but the CLI is in default" in caplog.text
    chose("default")
    chose()  # a later one, for which nothing was chosen
    assert plans.told("default") is None
    plans.chose(Deny("no"), asked())
    assert plans.told("default") is None
