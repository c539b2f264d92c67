"""Who is asked before a tool runs, what they said, and what became of it: stored, and once.

`open_approvals` gives the service of a journal; a `Desk` is one session's side of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .answer import answer_of, elicitation_answer_of
    from .clock import Clock, SystemClock
    from .desk import Desk
    from .errors import (
        AlreadyDecided,
        ApprovalError,
        ApprovalsClosed,
        InvalidDecision,
        MayNotDecide,
        ShownOtherwise,
        UnknownApproval,
        UnknownRule,
    )
    from .model import (
        AcceptElicitation,
        Agent,
        Always,
        AnswerQuestion,
        Approval,
        ApprovalRequest,
        Approve,
        ApprovePlan,
        Cancelled,
        Decided,
        Expired,
        ForSession,
        Nobody,
        Once,
        Outcome,
        PassedOver,
        Person,
        Reject,
        Step,
    )
    from .past import past_calls
    from .policies import Policies, PolicyApplied, StoredPolicy
    from .remember import Remembered, RememberedRule
    from .seat import open_desk
    from .service import Approvals, open_approvals
    from .terminal import Terminal
    from .trust import Trust, TrustedFolders
    from .watch import ApprovalWatch

#: Where each name comes from: nothing is loaded before it is used.
_HOMES = {
    "AcceptElicitation": "model",
    "Agent": "model",
    "AlreadyDecided": "errors",
    "Always": "model",
    "AnswerQuestion": "model",
    "Approval": "model",
    "ApprovalError": "errors",
    "ApprovalRequest": "model",
    "ApprovalWatch": "watch",
    "Approvals": "service",
    "ApprovalsClosed": "errors",
    "Approve": "model",
    "ApprovePlan": "model",
    "Cancelled": "model",
    "Clock": "clock",
    "Decided": "model",
    "Desk": "desk",
    "Expired": "model",
    "ForSession": "model",
    "InvalidDecision": "errors",
    "MayNotDecide": "errors",
    "Nobody": "model",
    "Once": "model",
    "Outcome": "model",
    "PassedOver": "model",
    "Person": "model",
    "Policies": "policies",
    "PolicyApplied": "policies",
    "Reject": "model",
    "Remembered": "remember",
    "RememberedRule": "remember",
    "ShownOtherwise": "errors",
    "Step": "model",
    "StoredPolicy": "policies",
    "SystemClock": "clock",
    "Terminal": "terminal",
    "Trust": "trust",
    "TrustedFolders": "trust",
    "UnknownApproval": "errors",
    "UnknownRule": "errors",
    "answer_of": "answer",
    "elicitation_answer_of": "answer",
    "open_approvals": "service",
    "open_desk": "seat",
    "past_calls": "past",
}

__all__ = [
    "AcceptElicitation",
    "Agent",
    "AlreadyDecided",
    "Always",
    "AnswerQuestion",
    "Approval",
    "ApprovalError",
    "ApprovalRequest",
    "ApprovalWatch",
    "Approvals",
    "ApprovalsClosed",
    "Approve",
    "ApprovePlan",
    "Cancelled",
    "Clock",
    "Decided",
    "Desk",
    "Expired",
    "ForSession",
    "InvalidDecision",
    "MayNotDecide",
    "Nobody",
    "Once",
    "Outcome",
    "PassedOver",
    "Person",
    "Policies",
    "PolicyApplied",
    "Reject",
    "Remembered",
    "RememberedRule",
    "ShownOtherwise",
    "Step",
    "StoredPolicy",
    "SystemClock",
    "Terminal",
    "Trust",
    "TrustedFolders",
    "UnknownApproval",
    "UnknownRule",
    "answer_of",
    "elicitation_answer_of",
    "open_approvals",
    "open_desk",
    "past_calls",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value
