"""What agents are told when something can't be done: a code for programs, words that say what to
do. Owns which error has which code; nothing of a session that the agent does not see is in them."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from ..approvals.errors import (
    AlreadyDecided,
    ApprovalsClosed,
    InvalidDecision,
    MayNotDecide,
    UnknownApproval,
)
from ..errors import (
    Asleep,
    BridleError,
    BudgetTooSmall,
    InvalidLaunch,
    InvalidLimit,
    JournalError,
    LimitReached,
    MissingVariables,
    NameTaken,
    NotPossible,
    PolicyError,
    UnknownSession,
    WiderThanParent,
    words_of,
)

_log = logging.getLogger(__name__)


class Refusal(BridleError):
    """It is not done. `code` is one of docs/loopback.md."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def no_session(wanted: str) -> Refusal:
    """The same words for one that there is not and for one that is none of theirs."""
    words = f"there is no session {wanted[:100]!r} below you; claudecode_list shows those there are"
    return Refusal("not_found", words)


def no_approval(wanted: str) -> Refusal:
    """Also for what is put to somebody else: that is not the caller's to decide."""
    words = (
        f"nothing is asked of you with the id {wanted[:100]!r}; loopback_pending shows what is "
        "(what waits for a person or another agent is theirs to decide: poll on)"
    )
    return Refusal("not_found", words)


#: The first that fits.
_CODES: tuple[tuple[type[BaseException], str], ...] = (
    (UnknownSession, "not_found"),
    (UnknownApproval, "not_found"),
    (AlreadyDecided, "already_decided"),
    (MayNotDecide, "may_not_decide"),
    (InvalidDecision, "invalid_decision"),
    (NotPossible, "not_possible"),
    (WiderThanParent, "wider_than_parent"),
    (LimitReached, "limit_reached"),
    (BudgetTooSmall, "budget_too_small"),
    (InvalidLimit, "invalid_arguments"),
    (InvalidLaunch, "invalid_arguments"),
    (PolicyError, "invalid_arguments"),
    (MissingVariables, "missing_variables"),
    (Asleep, "unavailable"),
    (ApprovalsClosed, "unavailable"),
    (JournalError, "unavailable"),
    (BridleError, "failed"),
)


def told(error: BaseException) -> dict[str, Any]:
    """What went wrong, as an agent is told."""
    match error:
        case Refusal(code=code):
            return _error(code, str(error))
        case msgspec.ValidationError():
            return _error("invalid_arguments", f"{error}; see the description of the tool")
        case NameTaken(name=name):
            return _error("name_taken", f"the name {name[:100]!r} is taken; choose another one")
    for kind, code in _CODES:
        if isinstance(error, kind):
            return _error(code, _with_advice(code, str(error)))
    _log.error("a call of an agent has failed", exc_info=error)
    return _error("internal", f"{words_of(error)[:500]}; this is a mistake in Bridle")


_ADVICE = {
    "unavailable": "call it again in a moment, with the same arguments",
    "may_not_decide": "pass it on with loopback_escalate",
}


def _with_advice(code: str, words: str) -> str:
    advice = _ADVICE.get(code)
    return f"{words}; {advice}" if advice and advice.split()[-1] not in words else words


def _error(code: str, message: str) -> dict[str, Any]:
    return {"type": "error", "code": code, "message": message}
