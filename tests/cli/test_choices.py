"""What is said with `approve` and `deny` becomes the choice that fits what is asked."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bridle.approvals.model import Approval, Kind, Step
from bridle.cli.choices import Answers, choice_for, rejection, told_rule
from bridle.cli.commands import approving, starting
from bridle.cli.errors import Misused
from bridle.server.shapes import decisions as d
from bridle.server.shapes.sessions import EnvironmentValue, FileValue, PlainValue, SecretValue


def asked(kind: Kind = "tool", **given: Any) -> Approval:
    return Approval(
        id="a1",
        session="s1",
        launch="l1",
        kind=kind,
        tool="Bash",
        input=given,
        digest="",
        created=0,
        folder="/app",
    )


QUESTIONS = [
    {"question": "Which database?", "options": [{"label": "SQLite"}, {"label": "Postgres"}]},
    {"question": "Which colour?", "options": [{"label": "red"}]},
]


def test_a_tool_call_is_approved_once_unless_a_rule_is_given() -> None:
    assert choice_for(asked(), Answers(message="fine")) == d.Approve(message="fine")
    session = choice_for(asked(), Answers(session_rule="Bash(ls)"))
    assert session == d.Approve(remember=d.ForSession("Bash(ls)"))


def test_always_is_for_the_agents_folder_unless_it_is_to_be_everywhere() -> None:
    here = choice_for(asked(), Answers(always_rule="Bash(ls)"))
    assert here == d.Approve(remember=d.Always("Bash(ls)", "/app"))
    everywhere = rejection(
        asked(), Answers(always_rule="Bash(ls)", is_everywhere=True), interrupt=True
    )
    assert everywhere == d.Reject(interrupt=True, remember=d.Always("Bash(ls)", ""))


@pytest.mark.parametrize("rule", ["Edit", "Read(/x)", "mcp__git", "bash(ls)", "Bash("])
def test_a_rule_that_says_nothing_to_the_call_is_refused(rule: str) -> None:
    for said in (Answers(session_rule=rule), Answers(always_rule=rule)):
        with pytest.raises(Misused):
            choice_for(asked(), said)
        with pytest.raises(Misused):
            rejection(asked(), said, interrupt=False)


def test_a_rule_may_be_any_that_was_suggested_or_that_speaks_of_the_tool() -> None:
    suggested = replace(asked(), suggestions=("Read(/x)",))
    assert choice_for(suggested, Answers(session_rule="Read(/x)")) == d.Approve(
        remember=d.ForSession("Read(/x)")
    )
    write = replace(asked(), tool="Write")
    assert choice_for(write, Answers(session_rule="Edit(/src/**)"))


def test_what_holds_from_now_on_is_told() -> None:
    assert told_rule(asked(), Answers(), "allow") == ""
    session = told_rule(asked(), Answers(session_rule="Bash(ls)"), "deny")
    assert session == "from now on: deny Bash(ls) in this session"
    always = Answers(always_rule="Bash(ls)")
    assert told_rule(asked(), always, "allow") == "from now on: allow Bash(ls) in /app"
    everywhere = Answers(always_rule="Bash(ls)", is_everywhere=True)
    assert told_rule(asked(), everywhere, "allow") == "from now on: allow Bash(ls) everywhere"


def test_another_input_is_json() -> None:
    choice = choice_for(asked(), Answers(input='{"command": "ls"}'))
    assert choice == d.Approve(input={"command": "ls"})
    with pytest.raises(Misused, match="--input is no JSON object"):
        choice_for(asked(), Answers(input="ls"))


def test_a_plan_goes_on_in_the_mode_that_is_chosen() -> None:
    choice = choice_for(asked("plan"), Answers(mode="acceptEdits", plan="Do less."))
    assert choice == d.ApprovePlan(mode="acceptEdits", plan="Do less.")


@pytest.mark.parametrize(
    ("answer", "told"), [("postgres", "Postgres"), ("1", "SQLite"), ("9", "9"), ("none", "none")]
)
def test_a_question_is_answered_by_an_option_its_number_or_other_words(
    answer: str, told: str
) -> None:
    choice = choice_for(asked("question", questions=QUESTIONS[:1]), Answers(answers=(answer,)))
    assert choice == d.AnswerQuestion(answers={"Which database?": told})


def test_several_questions_need_an_answer_each() -> None:
    both = asked("question", questions=QUESTIONS)
    choice = choice_for(both, Answers(answers=("which d=2", "Which colour?=blue")))
    assert choice == d.AnswerQuestion(
        answers={"Which database?": "Postgres", "Which colour?": "blue"}
    )
    for given in (("which=2",), ("nothing=1",), ("Which d=1",), ("2",), ()):
        with pytest.raises(Misused):
            choice_for(both, Answers(answers=given))


def test_a_server_that_asks_is_given_fields() -> None:
    choice = choice_for(asked("elicitation"), Answers(input='{"a": 1}', answers=("b=x",)))
    assert choice == d.AcceptElicitation(content={"a": 1, "b": "x"})


@pytest.mark.parametrize(
    ("kind", "said", "flag"),
    [
        ("tool", Answers(answers=("x",)), "--answer"),
        ("tool", Answers(mode="acceptEdits"), "--mode"),
        ("plan", Answers(always_rule="Bash"), "--always"),
        ("question", Answers(session_rule="Bash"), "--session"),
        ("elicitation", Answers(plan="x"), "--plan"),
    ],
)
def test_what_says_nothing_to_what_is_asked_is_refused(
    kind: Kind, said: Answers, flag: str
) -> None:
    with pytest.raises(Misused, match=flag):
        choice_for(asked(kind, questions=QUESTIONS), said)


def test_rules_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(Misused, match="two things"):
        choice_for(asked(), Answers(session_rule="Bash", always_rule="Bash"))
    with pytest.raises(Misused, match="--everywhere goes with --always"):
        choice_for(asked(), Answers(is_everywhere=True))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"description": "d", "command": "ls"}, "ls"),
        ({"file_path": "/a", "content": "x"}, "/a"),
        ({"message": "hm", "requested_schema": {}}, "hm"),
        ({"questions": [{"question": "Why?"}, {"question": "How?"}]}, "Why?"),
        ({"questions": []}, "questions"),
        ({"command": 5, "other": 1}, "command, other"),
        ({}, ""),
    ],
)
def test_what_is_asked_is_told_in_a_few_words(given: dict[str, Any], words: str) -> None:
    assert approving.gist(replace(asked(), input=given)) == words


def test_of_what_waits_it_is_told_whom_it_is_put_to() -> None:
    agent = "a52bf4d1-cc4c-489a-b27f-2c0fa3153181"
    put = replace(asked(), steps=(Step(to="other", at=1.0), Step(to=agent, at=2.0)))
    names = {agent: "builder"}
    assert approving._asked(put, names) == "builder"
    assert approving._asked(put, {}) == "a52bf4d1"
    assert approving._asked(replace(put, steps=(*put.steps, Step(at=3.0))), names) == "people"
    assert approving._asked(asked(), names) == "people"
    assert approving._asked(replace(put, status="denied"), names) == ""


def test_what_is_no_tool_is_told_by_its_kind() -> None:
    assert approving._asks_for(replace(asked(), kind="tool", tool="Bash")) == "Bash"
    assert approving._asks_for(replace(asked(), kind="plan", tool="ExitPlanMode")) == "plan"


def test_a_variable_is_given_with_its_value_or_with_the_one_that_it_has_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HERE", "h=1")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("NOWHERE", raising=False)
    given = ["A=b=c", "HERE", "EMPTY", "B=", "HERE2=x y"]
    found = starting.given_values(given)
    assert found == {"A": "b=c", "HERE": "h=1", "EMPTY": "", "B": "", "HERE2": "x y"}
    with pytest.raises(Misused, match="NOWHERE is not set here"):
        starting.given_values(["A=b", "NOWHERE"])
    made = starting.environment(["A=b", "SAME=1"], ["P=q", "SAME=2"], ["HERE"], ["F=/x/f"])
    assert made == {
        "A": SecretValue("b"),
        "SAME": PlainValue("2"),
        "P": PlainValue("q"),
        "HERE": EnvironmentValue("HERE"),
        "F": FileValue("/x/f"),
    }
