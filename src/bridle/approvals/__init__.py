"""Who is asked before a tool runs, what they said, and what became of it: stored, and once.

`open_approvals` gives the service of a journal; a `Desk` is one session's side of it.
"""

from __future__ import annotations

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
    Person,
    Reject,
)
from .past import past_calls
from .policies import Policies, PolicyApplied, StoredPolicy
from .remember import Remembered, RememberedRule
from .seat import open_desk
from .service import Approvals, open_approvals
from .terminal import Terminal
from .trust import Trust, TrustedFolders
from .watch import ApprovalWatch

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
    "Person",
    "Policies",
    "PolicyApplied",
    "Reject",
    "Remembered",
    "RememberedRule",
    "ShownOtherwise",
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
