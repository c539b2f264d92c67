"""What the agent is told: by what was decided, and each kind of no in its own words."""

from __future__ import annotations

import msgspec
import pytest

from bridle.approvals import (
    AcceptElicitation,
    Agent,
    Always,
    AnswerQuestion,
    Approval,
    Approve,
    ApprovePlan,
    Cancelled,
    Decided,
    Expired,
    Nobody,
    Person,
    Reject,
    answer_of,
    elicitation_answer_of,
)
from bridle.approvals.fold import status_after
from bridle.approvals.model import Choice, Decider, Ending, Kind
from bridle.approvals.wording import duration, words_for
from bridle.protocol.control import ElicitationAnswer
from bridle.protocol.permissions import AddDirectories, Allow, Deny, SetMode

ANN = Person("ann")
ASKED = {"command": "make"}


def approval(ending: Ending | None, kind: Kind = "tool") -> Approval:
    return Approval(
        session="child",
        launch="l",
        kind=kind,
        tool="Bash",
        input={},
        id="x",
        digest="d",
        created=1.0,
        status=status_after(ending) if ending else "pending",
        ending=ending,
    )


def decided(choice: Choice, by: Decider = ANN, kind: Kind = "tool") -> Approval:
    return approval(Decided(by, choice, 2.0), kind)


def test_an_allow_echoes_the_whole_input() -> None:
    assert answer_of(decided(Approve()), ASKED) == Allow(ASKED)


def test_an_allow_can_change_the_input_and_add_folders_to_the_session_but_no_rules() -> None:
    choice = Approve({"command": "ls"}, "but so", Always("Bash(ls)"), ("/data",))
    assert answer_of(decided(choice), ASKED) == Allow(
        {"command": "ls"}, [AddDirectories(["/data"], "session")]
    )
    empty = answer_of(decided(Approve({})), ASKED)
    assert empty == Allow({}), "an input that was emptied is not the old one"


def test_an_answer_stands_beside_the_questions() -> None:
    asked = {"questions": [{"question": "Which?"}]}
    answer = answer_of(decided(AnswerQuestion({"Which?": "A"}), kind="question"), asked)
    assert answer == Allow({**asked, "answers": {"Which?": "A"}})


def test_a_plan_goes_on_in_the_mode_that_was_chosen_and_may_be_edited() -> None:
    asked = {"plan": "1. Think", "planFilePath": "/p.md"}
    edited = decided(ApprovePlan("acceptEdits", "1. Act"), kind="plan")
    assert answer_of(edited, asked) == Allow(
        {"plan": "1. Act", "planFilePath": "/p.md"}, [SetMode("acceptEdits", "session")]
    )
    as_it_is = decided(ApprovePlan(), kind="plan")
    assert answer_of(as_it_is, asked) == Allow(asked, [SetMode("default", "session")])


def test_a_no_may_end_the_turn() -> None:
    answer = answer_of(decided(Reject("stop", interrupt=True)), ASKED)
    assert isinstance(answer, Deny)
    assert answer.interrupt is True
    plain = answer_of(decided(Reject("stop")), ASKED)
    assert msgspec.to_builtins(plain) == {
        "behavior": "deny",
        "message": words_for(decided(Reject("stop"))),
    }


def test_what_is_not_decided_is_denied() -> None:
    assert isinstance(answer_of(approval(None), ASKED), Deny)


NOS: dict[str, Ending] = {
    "a person's": Decided(Person("ann"), Reject(), 2.0),
    "a person's with a reason": Decided(Person("ann"), Reject("use pnpm"), 2.0),
    "an agent's": Decided(Agent("parent"), Reject("out of scope."), 2.0),
    "nobody's": Decided(Nobody(), Reject(), 2.0),
    "timed out": Expired(3 * 86_400, 2.0),
    "withdrawn": Cancelled("withdrawn", 2.0),
    "interrupted": Cancelled("interrupted", 2.0),
    "turn ended": Cancelled("turn ended", 2.0),
    "process ended": Cancelled("process ended", 2.0),
    "cancelled": Cancelled("cancelled", 2.0),
    "cancelled with a reason": Cancelled("cancelled", 2.0, "the task was given to another agent"),
}


@pytest.mark.parametrize("kind", ["tool", "plan", "question", "elicitation"])
def test_each_kind_of_no_has_its_own_words(kind: Kind) -> None:
    words = {name: words_for(approval(ending, kind)) for name, ending in NOS.items()}
    assert len(set(words.values())) == len(NOS)
    persons = [name for name, text in words.items() if text.startswith("The user rejected")]
    assert persons == ["a person's", "a person's with a reason"]
    assert words["a person's with a reason"].endswith("The user said:\nuse pnpm")


def test_the_words_of_a_tool_that_must_not_run_are_these() -> None:
    words = {name: words_for(approval(ending)) for name, ending in NOS.items()}
    no_person = "It was not run. This is not a person's decision."
    stay = "It was not run. Do not try to reach the same by another way"
    assert words["a person's"] == (
        f"The user rejected this tool call. {stay}; wait for what the user says."
    )
    assert words["an agent's"] == (
        f"The supervising agent rejected this tool call: out of scope. {stay}."
    )
    assert words["nobody's"] == "Bridle denied this: nobody is there to approve it."
    assert words["timed out"] == (
        f"Approval timed out: nobody decided on this tool call within 3 days. {no_person}"
    )
    assert words["interrupted"] == f"Approval cancelled: the turn was interrupted. {no_person}"
    assert words["cancelled with a reason"] == (
        f"Approval cancelled: the task was given to another agent. {no_person}"
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.5, "0.5 seconds"),
        (1, "1 second"),
        (90, "90 seconds"),
        (60, "1 minute"),
        (300, "5 minutes"),
        (330, "about 6 minutes"),
        (3_600, "1 hour"),
        (86_400, "1 day"),
        (259_200, "3 days"),
        (100_000, "about 28 hours"),
    ],
)
def test_a_limit_is_told_as_people_say_it(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_an_elicitation_is_accepted_declined_or_cancelled() -> None:
    accepted = decided(AcceptElicitation({"name": "x"}), kind="elicitation")
    assert elicitation_answer_of(accepted) == ElicitationAnswer("accept", {"name": "x"})
    declined = decided(Reject(), kind="elicitation")
    assert elicitation_answer_of(declined) == ElicitationAnswer("decline")
    for ending in (Expired(1, 2.0), Cancelled("interrupted", 2.0), None):
        assert elicitation_answer_of(approval(ending, "elicitation")) == ElicitationAnswer("cancel")
