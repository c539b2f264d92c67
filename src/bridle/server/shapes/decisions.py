"""What somebody decides, as the API takes it: the choices of `approvals`, and no field beside them.

They are those Structs, only stricter.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from ...approvals import model


class Once(model.Once, frozen=True, tag="once", forbid_unknown_fields=True):
    """Nothing is remembered."""


class ForSession(model.ForSession, frozen=True, tag="session", forbid_unknown_fields=True):
    """From now on the session has this rule."""


class Always(model.Always, frozen=True, tag="always", forbid_unknown_fields=True):
    """From now on all sessions at or below `folder` ("": everywhere) have this rule."""


Remember: TypeAlias = Once | ForSession | Always


class Approve(model.Approve, frozen=True, tag="approve", forbid_unknown_fields=True):
    """Let the tool run, with another input where one is given."""

    remember: Remember = Once()


class ApprovePlan(model.ApprovePlan, frozen=True, tag="approve_plan", forbid_unknown_fields=True):
    """Go on with the plan, or with `plan` in its place, in this mode."""


class AnswerQuestion(
    model.AnswerQuestion, frozen=True, tag="answer_question", forbid_unknown_fields=True
):
    """For the text of each question the label that was chosen, or words of one's own."""


class AcceptElicitation(
    model.AcceptElicitation, frozen=True, tag="accept_elicitation", forbid_unknown_fields=True
):
    """What the MCP server wanted to know."""


class Reject(model.Reject, frozen=True, tag="reject", forbid_unknown_fields=True):
    """No; `message` is told to the model. `interrupt` also ends its turn."""

    remember: Remember = Once()


Choice: TypeAlias = Approve | ApprovePlan | AnswerQuestion | AcceptElicitation | Reject


class Deciding(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`shown` is the digest of what the decider had before them (`Approval.digest`): if the
    approval is another one, nothing is decided."""

    choice: Choice
    shown: str | None = None
