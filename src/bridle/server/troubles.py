"""Bridle's own errors as a caller is told of them: one table, from the type to status and code.

An error of a type that is not in it is told as the nearest type above it that is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from .. import errors
from ..approvals import errors as approvals
from ..errors import BridleError
from .problems import Problem, sentence

#: What a program may want to know of an error, and the words of what to do, made from it.
About = Callable[[Any], dict[str, Any]]
Remedy = Callable[[Any], str]


class Trouble(Struct, frozen=True):
    """How one type of error is told. Without a `detail` it is told in the error's own words."""

    status: int
    code: str
    remedy: str | Remedy
    about: About | None = None
    detail: str = ""


def trouble_of(error: BridleError) -> Problem:
    trouble = next(TROUBLES[kind] for kind in type(error).__mro__ if kind in TROUBLES)
    remedy = trouble.remedy if isinstance(trouble.remedy, str) else trouble.remedy(error)
    about = trouble.about(error) if trouble.about else None
    detail = trouble.detail or sentence(str(error))
    return Problem(trouble.status, trouble.code, detail, sentence(remedy), about)


def _fields(*names: str) -> About:
    return lambda error: {name: getattr(error, name) for name in names}


_AGAIN = "Try it again in a moment."
_LOG = "The server's log has more. `bridle doctor` looks for what may be wrong."

TROUBLES: dict[type[BaseException], Trouble] = {
    BridleError: Trouble(500, "internal", _LOG),
    # --- sessions
    errors.SupervisorError: Trouble(409, "not_possible", "GET the session and look at its state."),
    errors.UnknownSession: Trouble(
        # Not in the error's words: they have the id, which may be all that was not known.
        404,
        "unknown_session",
        "`bridle ps` lists the sessions, with their ids and names.",
        detail="There is no such session.",
    ),
    errors.NameTaken: Trouble(409, "name_taken", "Choose another name.", _fields("name")),
    errors.NotPossible: Trouble(
        409,
        "not_possible",
        lambda error: error.hint,
        _fields("operation", "state", "session"),
    ),
    errors.LimitReached: Trouble(
        409, "limit_reached", lambda error: error.hint, _fields("limit", "value", "session")
    ),
    errors.BudgetTooSmall: Trouble(
        409,
        "budget_too_small",
        "Ask for less, or raise the limits of the session above.",
        _fields("measure", "wanted", "left", "session"),
    ),
    errors.InvalidLimit: Trouble(
        400, "invalid_limit", "Give a limit that is not negative.", _fields("measure")
    ),
    errors.MissingVariables: Trouble(
        409, "missing_variables", "Give their values in `env`.", _fields("names")
    ),
    errors.Asleep: Trouble(409, "asleep", "Start one with `bridle up`.", detail="No server is up."),
    errors.ForeignInput: Trouble(409, "foreign_input", "Look at its audit before you resume it."),
    errors.HomeInUse: Trouble(503, "home_in_use", "Use the server that has it, or stop that."),
    # --- a session's process
    errors.LaunchError: Trouble(409, "not_started", "`bridle doctor` looks for the CLI."),
    errors.InvalidLaunch: Trouble(400, "invalid_launch", "docs/sessions.md has all options."),
    errors.SessionError: Trouble(409, "session_failed", "GET the session and look at its state."),
    errors.SessionEnded: Trouble(409, "session_ended", "Resume the session first."),
    errors.SessionClosed: Trouble(409, "session_ended", "Resume the session first."),
    errors.RequestTimedOut: Trouble(504, "cli_timed_out", "Try it again, or stop the session."),
    errors.NotSupported: Trouble(409, "not_supported", "Use a newer Claude Code."),
    errors.UnreadableAnswer: Trouble(502, "cli_unreadable", "Report the CLI's version."),
    errors.CommitFailed: Trouble(503, "journal_unwritable", _AGAIN),
    errors.InvalidTranscript: Trouble(404, "unknown_transcript", "Start a new conversation."),
    errors.ProtocolError: Trouble(409, "cli_refused", "GET the session and look at its state."),
    errors.InvalidRequest: Trouble(400, "invalid_request", "Correct it and send it again."),
    errors.ConnectionEnded: Trouble(409, "session_ended", "Resume the session first."),
    # --- policies
    errors.PolicyError: Trouble(400, "invalid_policy", "docs/policies.md has the language."),
    errors.InvalidPolicy: Trouble(
        400,
        "invalid_policy",
        "Correct that line. docs/policies.md has the language.",
        _fields("source", "line", "reason"),
    ),
    errors.InvalidRule: Trouble(
        400, "invalid_rule", "docs/policies.md has the language.", _fields("rule", "reason")
    ),
    # --- the journal
    errors.JournalError: Trouble(500, "journal_failed", _LOG),
    errors.InvalidAnchors: Trouble(
        400, "invalid_anchors", "Give what your `anchor_command` keeps."
    ),
    errors.InvalidEntry: Trouble(400, "invalid_name", "Give a shorter or simpler name."),
    errors.WrongRevision: Trouble(409, "changed_meanwhile", "Get it again and decide again."),
    errors.WrongSequence: Trouble(409, "changed_meanwhile", "Get it again and decide again."),
    errors.BlobLost: Trouble(410, "payload_lost", "`bridle audit verify` says what else is."),
    errors.JournalClosed: Trouble(503, "closing", "The server is ending. Ask the next one."),
    errors.JournalUnwritable: Trouble(503, "journal_unwritable", _AGAIN),
    errors.DiskFull: Trouble(507, "disk_full", "Make space on the disk of Bridle's home."),
    # --- approvals
    approvals.ApprovalError: Trouble(409, "not_possible", "GET the approval and look at it."),
    approvals.UnknownApproval: Trouble(
        404,
        "unknown_approval",
        "`bridle approvals` lists those that wait.",
        detail="There is no such approval.",
    ),
    approvals.AlreadyDecided: Trouble(
        409,
        "already_decided",
        "Nothing is to be done any more: `about` has how it ended.",
        _fields("approval"),
    ),
    approvals.MayNotDecide: Trouble(403, "may_not_decide", "Ask a person to decide."),
    approvals.InvalidDecision: Trouble(
        400, "invalid_decision", "GET the approval: its kind says what can be decided."
    ),
    approvals.ShownOtherwise: Trouble(
        409, "shown_otherwise", "GET the approval and decide again.", _fields("digest")
    ),
    approvals.UnknownRule: Trouble(
        404,
        "unknown_rule",
        "`bridle policy explain` and GET /rules list what is remembered.",
        detail="No such rule is remembered.",
    ),
    approvals.ApprovalsClosed: Trouble(503, "closing", "The server is ending. Ask the next one."),
}
