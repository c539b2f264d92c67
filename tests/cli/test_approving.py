"""Deciding by the command: what waits, all of it, and each kind of answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .shells import INIT, PROMPT, Shell, asks, call

QUESTIONS = [
    {
        "question": "Which database?",
        "header": "Storage",
        "options": [{"label": "SQLite"}, {"label": "Postgres"}],
    }
]


def waiting(shell: Shell, *steps: dict[str, Any], policy: str = "ask") -> Any:
    """A server, an agent that asks, and what it asks."""
    shell.up()
    shell.run("start", "go", "--name", "one", "--policy", policy)
    return shell.approval()


def test_what_waits_is_listed_shown_and_approved_by_the_beginning_of_its_id(shell: Shell) -> None:
    fake = shell.claude(*asks())
    asked = waiting(shell)
    header, row = shell.run("approvals").splitlines()
    assert header.split()[:2] == ["ID", "SESSION"]
    assert row.split()[:5] == [asked["id"][:8], "one", "Bash", "rm", "x"]
    shown = shell.run("approvals", "show", asked["id"][:5])
    assert "one (" in shown
    assert "$ rm x" in shown
    assert "why: Asked" in shown
    assert "Bash(rm x)" in shown
    assert "status: pending" in shown
    said = shell.run("approve", asked["id"][:5], "-m", "fine")
    assert said == f"approved {asked['id'][:8]}: Bash rm x\n"
    shell.session("one", "idle")
    answer = fake.answer_to("ask-t1")
    assert answer
    assert answer["response"]["behavior"] == "allow"
    assert shell.run("approvals") == ""
    (decided,) = shell.json("approvals", "--all", "--session", "one")
    assert decided["ending"]["choice"]["message"] == "fine"
    name = decided["ending"]["by"]["name"]
    assert f"status: allowed by {name}: fine" in shell.run("approvals", "show", asked["id"])
    again = shell.run("approve", asked["id"], code=5)
    assert "was allowed by" in again


def test_a_denial_tells_the_agent_why(shell: Shell) -> None:
    fake = shell.claude(*asks())
    asked = waiting(shell)
    said = shell.run("deny", asked["id"], "-m", "Use the bin", "--shown", asked["digest"])
    assert said.startswith(f"denied {asked['id'][:8]}: ")
    shell.session("one", "idle")
    answer = fake.answer_to("ask-t1")
    assert answer
    assert answer["response"]["behavior"] == "deny"
    assert "Use the bin" in answer["response"]["message"]


def test_what_was_shown_must_be_what_is_asked(shell: Shell) -> None:
    shell.claude(*asks())
    asked = waiting(shell)
    done = shell.done("approve", asked["id"], "--shown", "0" * 64)
    assert done.returncode in (1, 5)
    assert shell.json("approvals")[0]["id"] == asked["id"]


def test_a_rule_for_a_session_is_told_as_such_where_it_is_listed_and_shown(shell: Shell) -> None:
    shell.claude(*asks())
    asked = waiting(shell)
    shell.run("approve", asked["id"], "--session", "Bash(rm x)")
    shell.session("one", "idle")
    assert "this session" in shell.run("policy", "rules", "--session", "one")
    assert "(remembered: Bash(rm x))" in shell.run("approvals", "show", asked["id"])


def test_a_rule_for_always_is_listed_and_can_be_forgotten(shell: Shell) -> None:
    shell.claude(PROMPT, INIT, *call("Bash", {"command": "rm x"}),
                 *call("Bash", {"command": "rm x"}, "t2"), {"result": "done"}, PROMPT)  # fmt: skip
    asked = waiting(shell)
    shell.run("approve", asked["id"], "--always", "Bash(rm x)")
    shell.session("one", "idle")  # the second one was not asked
    (rule,) = shell.json("policy", "rules")
    assert (rule["rule"], rule["folder"]) == ("Bash(rm x)", str(shell.work))
    assert "Bash(rm x)" in shell.run("policy", "rules")
    assert shell.run("policy", "forget", rule["id"][:6]) == "forgot Bash(rm x)\n"
    assert shell.json("policy", "rules") == []
    assert "no rules have an id" in shell.run("policy", "forget", "xyz", code=4)


def test_a_rule_that_is_none_decides_nothing(shell: Shell) -> None:
    shell.claude(*asks())
    asked = waiting(shell)
    said = shell.run("approve", asked["id"], "--session", "bash(rm x)", code=2)
    assert "the tool is called Bash" in said
    assert shell.json("approvals")[0]["status"] == "pending"


def test_a_question_is_answered_and_a_plan_goes_on_in_a_mode(shell: Shell) -> None:
    fake = shell.claude(PROMPT, INIT, *call("AskUserQuestion", {"questions": QUESTIONS}),
                        *call("ExitPlanMode", {"plan": "Do it."}, "t2"),
                        {"result": "done"}, PROMPT)  # fmt: skip
    asked = waiting(shell)
    assert "1) SQLite" in shell.run("approvals", "show", asked["id"])
    assert "says nothing to a question" in shell.run(
        "approve", asked["id"], "--mode", "acceptEdits", code=2
    )
    shell.run("approve", asked["id"], "--answer", "2")
    (plan,) = shell.until("approvals", holds=lambda found: found and found[0]["kind"] == "plan")
    assert "Do it." in shell.run("approvals", "show", plan["id"])
    shell.run("approve", plan["id"], "--mode", "acceptEdits")
    shell.session("one", "idle")
    first, second = fake.answer_to("ask-t1"), fake.answer_to("ask-t2")
    assert first
    assert second
    assert "Postgres" in json.dumps(first["response"]["updatedInput"])
    assert second["response"]["behavior"] == "allow"


def test_several_are_decided_at_once_and_one_that_fails_keeps_no_other(shell: Shell) -> None:
    shell.claude(*asks())
    asked = waiting(shell)
    done = shell.done("approve", "nobody", asked["id"], "--json")
    assert done.returncode == 4
    assert [one["status"] for one in json.loads(done.stdout)] == ["allowed"]
    assert done.stderr == (
        "bridle: there is no approval nobody; list them with `bridle approvals`\n"
    )
    assert "--shown is for one" in shell.run("deny", "a", "b", "--shown", "x", code=2)


def test_what_only_a_person_may_decide_is_marked(shell: Shell) -> None:
    shell.claude(*asks("Bash", command="claude --dangerously-skip-permissions -p hi"))
    asked = waiting(shell, policy="autonomous")
    assert asked["guard"]
    assert "! Bash" in shell.run("approvals")
    assert "Only a person may decide this" in shell.run("approvals", "show", asked["id"])


def test_what_an_agent_wrote_makes_no_lines_of_ours(shell: Shell) -> None:
    shell.claude(*asks(command="rm 'x\nstatus: allowed by me'"))
    asked = waiting(shell)
    lines = shell.run("approvals", "show", asked["id"]).splitlines()
    assert [line for line in lines if line.startswith("status:")] == ["status: pending"]


def test_a_large_input_is_shown_whole(shell: Shell) -> None:
    shell.claude(*asks("Write", file_path="/tmp/x", content="line\n" * 100_000 + "the end"))
    asked = waiting(shell)
    assert asked["is_cut"]
    shown = shell.run("approvals", "show", asked["id"])
    assert "the end" in shown
    assert len(shown) > 500_000


@pytest.mark.slow
def test_whom_it_is_put_to_is_listed_and_shown_with_why(shell: Shell) -> None:
    shell.claude(*asks())
    shell.up()
    policy = shell.work / "may.toml"
    policy.write_text('preset = "ask"\nallow = ["Bash(rm:*)"]\n')
    shell.run("start", "--name", "boss", "--loopback", "--policy", str(policy))
    shell.run("start", "--name", "idler", "--parent", "boss")
    shell.run("start", "go", "--name", "one", "--parent", "idler")
    asked = shell.approval()
    header, row = shell.run("approvals").splitlines()
    assert (header.split()[-1], row.split()[-1]) == ("ASKED", "boss")
    lines = shell.run("approvals", "show", asked["id"]).splitlines()
    over, put = (line for line in lines if line.startswith("- p"))
    assert over.startswith("- passed over session idler (")
    assert over.endswith(": it has no tools to answer with")
    assert put.startswith("- put to session boss (")
    assert " until " in put
    (step,) = shell.json("approvals", "show", asked["id"])["approval"]["steps"]
    assert step["over"][0]["why"] == "it has no tools to answer with"
