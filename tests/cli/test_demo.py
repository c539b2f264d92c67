"""The demo: agents that ask, again and again, without a key; and nothing left of it at the end."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.process.children import marked

from .shells import Shell, lines_of


@pytest.fixture
def demo(shell: Shell) -> Shell:
    """A demo at a home that was given."""
    shell.env["BRIDLE_DEMO_PACE"] = "0.01"
    shell.up_with("--home", str(shell.home), "demo", "--json")
    return shell


def waiting(shell: Shell, *kinds: str) -> dict[str, Any]:
    """What the agents ask, once all of these do."""
    found = shell.until("approvals", holds=lambda found: {*kinds} <= {one["tool"] for one in found})
    return {one["tool"]: one for one in found}


def test_four_agents_ask_for_four_kinds_of_things(demo: Shell) -> None:
    found = waiting(demo, "Edit", "Bash", "ExitPlanMode", "AskUserQuestion")
    assert found["Edit"]["input"]["file_path"].endswith("greeting.py")
    assert "curl" in found["Bash"]["input"]["command"]
    assert found["ExitPlanMode"]["kind"] == "plan"
    assert found["AskUserQuestion"]["kind"] == "question"
    assert {one["name"] for one in demo.json("ps")} == {"fixer", "cleaner", "planner", "asker"}


@pytest.mark.slow
def test_what_is_approved_is_done_and_what_is_denied_is_not(demo: Shell) -> None:
    found = waiting(demo, "Edit", "Bash", "ExitPlanMode", "AskUserQuestion")
    file = Path(found["Edit"]["input"]["file_path"])
    before = file.read_text()
    demo.run("approve", found["Edit"]["id"])
    demo.run("deny", found["Bash"]["id"], "-m", "Never")
    demo.run("approve", found["ExitPlanMode"]["id"], "--mode", "acceptEdits")
    demo.run("approve", found["AskUserQuestion"]["id"], "--answer", "SQLite")
    demo.until("ps", holds=lambda all_: all(one["turns"] >= 1 for one in all_))
    assert file.read_text() != before
    logs = demo.run("logs", "cleaner")
    assert "Never" in logs
    assert "I will do without it." in logs


@pytest.mark.slow
def test_an_agent_that_is_done_is_told_again(demo: Shell) -> None:
    first = waiting(demo, "Bash")["Bash"]
    demo.run("deny", first["id"])
    again = demo.until(
        "approvals",
        holds=lambda found: any(o["tool"] == "Bash" and o["id"] != first["id"] for o in found),
    )
    assert again


def test_an_agent_of_ones_own_in_the_demo_touches_nothing(demo: Shell) -> None:
    (demo.work / "greeting.py").write_text("mine\n")
    demo.run("start", "Make the greeting better", "--name", "mine", "--policy", "autonomous")
    demo.session("mine", "idle")
    assert (demo.work / "greeting.py").read_text() == "mine\n"
    demo.run("interrupt", "fixer")
    assert demo.session("fixer", "idle")["outcome"] == "cancelled"


def test_without_a_home_all_of_it_goes_at_the_end(shell: Shell, tmp_path: Path) -> None:
    shell.env |= {"TMPDIR": str(tmp_path / "tmp"), "BRIDLE_DEMO_PACE": "0.01"}
    (tmp_path / "tmp").mkdir()
    told = shell.up_with("demo", "--json")
    assert Path(told["home"]).is_relative_to(tmp_path / "tmp")
    assert shell.end_server() == 0
    assert list((tmp_path / "tmp").glob("bridle-demo-*")) == []
    assert marked(shell.mark) == []


@pytest.mark.slow
def test_it_says_what_to_type(shell: Shell) -> None:
    demo = shell.start("--home", str(shell.home), "demo", stdout=-1)
    assert demo.stdout
    said = []
    for line in lines_of(demo.stdout.fileno()):
        said.append(line)
        if "bridle attach" in line:
            break
    assert f"  export BRIDLE_HOME={shell.home}" in said
    # What would go to another home is not said ahead of that.
    assert not [line for line in said if "bridle start" in line]
    demo.send_signal(signal.SIGINT)
    assert demo.wait(30) == 0
    demo.stdout.close()


# --- recordings


@pytest.mark.slow
def test_a_turn_is_recorded_shown_again_and_stands_in_for_the_cli(shell: Shell) -> None:
    agent = f"{shell.python} -m bridle.cli.demo.agent"
    shell.env |= {"BRIDLE_CLAUDE": agent, "BRIDLE_DEMO_PACE": "0.01"}
    told = shell.json("record", "wire.ndjson", "Make the greeting better", "--policy", "edits")
    assert told == {
        "file": "wire.ndjson",
        "is_error": False,
        "result": "Done, as far as I was let.",
    }
    assert "is there already" in shell.run("record", "wire.ndjson", "x", code=2)
    shown = shell.run("replay", "wire.ndjson", "--instant")
    assert "Make the greeting better" in shown
    assert "I will mend that" in shown
    entries = [
        json.loads(line) for line in shell.run("replay", "wire.ndjson", "--json").splitlines()
    ]
    assert {"prompt", "text", "tool_call"} <= {one["kind"] for one in entries}
    shell.env["BRIDLE_CLAUDE"] = f"{shell.python} -m bridle.cli replay --as-cli wire.ndjson"
    again = ("record", "again.ndjson", "Make the greeting better", "--policy", "edits")
    assert shell.json(*again)["is_error"] is False
    said = shell.run("record", "-f", "again.ndjson", "Something else", "--policy", "edits", code=1)
    assert "expected" in said
    assert said.count("\n") == 1


def test_what_is_no_recording_is_told_with_its_line(shell: Shell) -> None:
    (shell.work / "x").write_text("{}\n")
    assert "line 1: not a recording" in shell.run("replay", "x", code=1)
    assert "can't read the recording none" in shell.run("replay", "none", code=1)
    assert "there is no prompt" in shell.run("record", "y", code=2)
