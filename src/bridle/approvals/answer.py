"""What is written to the agent for an approval that has ended. Pure.

To the CLI go only session-scoped changes of mode and folders, never rules: a rule that the CLI
holds means that it stops asking.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from ..protocol.control import ElicitationAnswer
from ..protocol.permissions import AddDirectories, Allow, Decision, Deny, PermissionUpdate, SetMode
from .model import (
    AcceptElicitation,
    AnswerQuestion,
    Approval,
    Approve,
    ApprovePlan,
    Decided,
    Reject,
)
from .wording import words_for


def answer_of(approval: Approval, asked: dict[str, Any]) -> Decision:
    """The answer to `can_use_tool`, whose whole input is `asked`. Fail closed: what is no allow is
    a deny."""
    decision = approval.decision
    match decision.choice if decision else None:
        case Approve(input=given, directories=directories):
            return _allow(asked if given is None else given, _added(directories))
        case ApprovePlan(mode=mode, plan=plan):
            given = asked if plan is None else {**asked, "plan": plan}
            return _allow(given, [SetMode(mode, "session")])
        case AnswerQuestion(answers=answers):
            return _allow({**asked, "answers": answers}, [])
        case Reject(interrupt=True):
            return Deny(words_for(approval), interrupt=True)
        case _:
            return Deny(words_for(approval))


def elicitation_answer_of(approval: Approval) -> ElicitationAnswer:
    """`decline` is somebody's no; `cancel` is that nobody said anything."""
    match approval.ending:
        case Decided(choice=AcceptElicitation(content=content)):
            return ElicitationAnswer("accept", content)
        case Decided():
            return ElicitationAnswer("decline")
        case _:
            return ElicitationAnswer("cancel")


def _allow(given: dict[str, Any], updates: list[PermissionUpdate]) -> Allow:
    return Allow(given, updates or UNSET)


def _added(directories: tuple[str, ...]) -> list[PermissionUpdate]:
    return [AddDirectories(list(directories), "session")] if directories else []
