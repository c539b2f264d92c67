"""What approvals raise: a branch of the tree in `bridle.errors`. Each carries what it is about.

ApprovalError                  it can't be done, and nothing of it was
├── UnknownApproval
├── AlreadyDecided             it has ended: who decided, when and what
├── MayNotDecide               nobody approves themselves: who tried
├── InvalidDecision            a decision that does not fit what is asked
│   └── ShownOtherwise         what was shown is not what would run
├── UnknownRule
└── ApprovalsClosed            we have closed them ourselves
"""

from __future__ import annotations

from ..errors import BridleError
from .model import Agent, Approval, Cancelled, Decided, Decider, Expired, Nobody, Person


class ApprovalError(BridleError):
    """Something about an approval can't be done. Nothing was stored."""


class UnknownApproval(ApprovalError):
    """There is no approval with this id."""

    def __init__(self, approval_id: str) -> None:
        super().__init__(f"there is no approval {approval_id}")
        self.approval_id = approval_id


class AlreadyDecided(ApprovalError):
    """It is no longer pending. `approval` says who decided, when and what."""

    def __init__(self, approval: Approval) -> None:
        super().__init__(f"approval {approval.id} {_end_of(approval)}")
        self.approval = approval


class MayNotDecide(ApprovalError):
    """Somebody who has no say in it: an agent for itself, or for no descendant of its own."""

    def __init__(self, by: Decider, what: str, reason: str) -> None:
        super().__init__(f"{name_of(by)} may not decide {what}: {reason}")
        self.by = by
        self.reason = reason


class InvalidDecision(ApprovalError):
    """A decision that does not fit what is asked."""

    def __init__(self, approval_id: str, reason: str) -> None:
        super().__init__(f"approval {approval_id}: {reason}")
        self.approval_id = approval_id
        self.reason = reason


class ShownOtherwise(InvalidDecision):
    """Who decided had something else before them than what would run."""

    def __init__(self, approval: Approval, shown: str) -> None:
        super().__init__(
            approval.id,
            f"what was shown ({shown[:12]}…) is not what is asked ({approval.digest[:12]}…);"
            " look at it again and decide again",
        )
        self.shown = shown
        self.digest = approval.digest


class UnknownRule(ApprovalError):
    """No rule with this id was remembered."""

    def __init__(self, rule_id: str) -> None:
        super().__init__(f"no rule {rule_id} is remembered")
        self.rule_id = rule_id


class ApprovalsClosed(ApprovalError):
    """The service was closed; what is pending stays so until it is opened again."""


def name_of(by: Decider) -> str:
    match by:
        case Person(name, via):
            return f"{name} ({via})" if via else name
        case Agent(session):
            return f"the agent of session {session}"
        case Nobody():
            return "nobody"


def _end_of(approval: Approval) -> str:
    match approval.ending:
        case Decided(by=by):
            return f"was {approval.status} by {name_of(by)}"
        case Expired():
            return "timed out"
        case Cancelled(cause=cause, words=words):
            return f"was cancelled ({words or cause})"
        case None:
            return "is not pending"
