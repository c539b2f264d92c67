"""What an agent may choose of what is asked: an argument that does not fit is refused."""

from __future__ import annotations

from typing import Any

import pytest

from bridle.approvals import Approval
from bridle.approvals.model import (
    AnswerQuestion,
    Approve,
    ApprovePlan,
    Choice,
    ForSession,
    Kind,
    Reject,
)
from bridle.loopback.approvals import _choice
from bridle.loopback.arguments import Respond
from bridle.loopback.refusals import Refusal


def asked(kind: Kind) -> Approval:
    return Approval(
        id="a", launch="l", session="s", created=0.0, kind=kind, tool="x", input={}, digest=""
    )


def chosen(kind: Kind, *, approve: bool, **more: Any) -> Choice:
    return _choice(asked(kind), Respond(approval_id="a", approve=approve, **more))


@pytest.mark.parametrize(
    ("kind", "given", "choice"),
    [
        ("tool", {"approve": True}, Approve()),
        (
            "tool",
            {"approve": True, "updated_input": {}, "message": "m", "remember": "Bash"},
            Approve({}, "m", ForSession("Bash")),
        ),
        (
            "tool",
            {"approve": False, "message": "no", "remember": "Bash"},
            Reject("no", remember=ForSession("Bash")),
        ),
        ("plan", {"approve": True, "message": "go"}, ApprovePlan(message="go")),
        ("plan", {"approve": False, "message": "no"}, Reject("no")),
        (
            "question",
            {"approve": True, "answers": {"Which?": "this"}, "message": "m"},
            AnswerQuestion({"Which?": "this"}, "m"),
        ),
        ("question", {"approve": False}, Reject()),
        ("elicitation", {"approve": False, "message": "no"}, Reject("no")),
    ],
)
def test_what_fits_is_what_is_chosen(kind: Kind, given: dict[str, Any], choice: Choice) -> None:
    assert chosen(kind, **given) == choice


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        ("tool", {"approve": False, "updated_input": {}}, "updated_input is for a tool"),
        ("plan", {"approve": True, "updated_input": {}}, "updated_input is for a tool"),
        ("tool", {"approve": True, "answers": {"a": "b"}}, "answers are for a question"),
        ("question", {"approve": False, "answers": {"a": "b"}}, "answers are for a question"),
        ("plan", {"approve": True, "remember": "Bash"}, "only what is decided of a tool"),
        ("question", {"approve": False, "remember": "Bash"}, "only what is decided of a tool"),
        ("question", {"approve": True}, "a question needs `answers`"),
        ("question", {"approve": True, "answers": {}}, "a question needs `answers`"),
        ("elicitation", {"approve": True}, "only a person may"),
    ],
)
def test_what_does_not_fit_is_refused_and_not_dropped(
    kind: Kind, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(Refusal, match=words):
        chosen(kind, **given)
