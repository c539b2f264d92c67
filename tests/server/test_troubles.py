"""How each error of Bridle is told: programs go by the status, the code, and what is `about` it."""

from __future__ import annotations

import pytest

from bridle import errors
from bridle.approvals import errors as approvals
from bridle.errors import BridleError
from bridle.server.troubles import TROUBLES, trouble_of

STATUSES: dict[tuple[int, str], tuple[type[BaseException], ...]] = {
    (400, "invalid_anchors"): (errors.InvalidAnchors,),
    (400, "invalid_decision"): (approvals.InvalidDecision,),
    (400, "invalid_launch"): (errors.InvalidLaunch,),
    (400, "invalid_limit"): (errors.InvalidLimit,),
    (400, "invalid_name"): (errors.InvalidEntry,),
    (400, "invalid_policy"): (errors.PolicyError, errors.InvalidPolicy),
    (400, "invalid_request"): (errors.InvalidRequest,),
    (400, "invalid_rule"): (errors.InvalidRule,),
    (403, "may_not_decide"): (approvals.MayNotDecide,),
    (404, "unknown_approval"): (approvals.UnknownApproval,),
    (404, "unknown_rule"): (approvals.UnknownRule,),
    (404, "unknown_session"): (errors.UnknownSession,),
    (404, "unknown_transcript"): (errors.InvalidTranscript,),
    (409, "already_decided"): (approvals.AlreadyDecided,),
    (409, "asleep"): (errors.Asleep,),
    (409, "budget_too_small"): (errors.BudgetTooSmall,),
    (409, "changed_meanwhile"): (errors.WrongRevision, errors.WrongSequence),
    (409, "cli_refused"): (errors.ProtocolError,),
    (409, "foreign_input"): (errors.ForeignInput,),
    (409, "limit_reached"): (errors.LimitReached,),
    (409, "missing_variables"): (errors.MissingVariables,),
    (409, "name_taken"): (errors.NameTaken,),
    (409, "not_possible"): (errors.SupervisorError, errors.NotPossible, approvals.ApprovalError),
    (409, "not_started"): (errors.LaunchError,),
    (409, "not_supported"): (errors.NotSupported,),
    (409, "session_ended"): (errors.SessionEnded, errors.SessionClosed, errors.ConnectionEnded),
    (409, "session_failed"): (errors.SessionError,),
    (409, "shown_otherwise"): (approvals.ShownOtherwise,),
    (410, "payload_lost"): (errors.BlobLost,),
    (500, "internal"): (BridleError,),
    (500, "journal_failed"): (errors.JournalError,),
    (502, "cli_unreadable"): (errors.UnreadableAnswer,),
    (503, "closing"): (errors.JournalClosed, approvals.ApprovalsClosed),
    (503, "home_in_use"): (errors.HomeInUse,),
    (503, "journal_unwritable"): (errors.JournalUnwritable, errors.CommitFailed),
    (504, "cli_timed_out"): (errors.RequestTimedOut,),
    (507, "disk_full"): (errors.DiskFull,),
}


def test_each_error_has_its_status_and_its_code() -> None:
    expected = {kind: told for told, kinds in STATUSES.items() for kind in kinds}
    assert {kind: (one.status, one.code) for kind, one in TROUBLES.items()} == expected


@pytest.mark.parametrize(
    ("error", "about"),
    [
        (errors.NameTaken("a", "s1"), {"name": "a"}),
        (
            errors.NotPossible("send", "stopped", "resume it", "s1"),
            {"operation": "send", "state": "stopped", "session": "s1"},
        ),
        (
            errors.LimitReached("depth", 3, "s1", "stop one"),
            {"limit": "depth", "value": 3, "session": "s1"},
        ),
        (
            errors.BudgetTooSmall("turns", 5, 2, "s1", "5 turns do not fit"),
            {"measure": "turns", "wanted": 5, "left": 2, "session": "s1"},
        ),
        (errors.InvalidLimit("turns", -1, "it is negative"), {"measure": "turns"}),
        (errors.MissingVariables({"KEY": "not set"}), {"names": {"KEY": "not set"}}),
        (
            errors.InvalidPolicy("team", 3, "no such key"),
            {"source": "team", "line": 3, "reason": "no such key"},
        ),
        (
            errors.InvalidRule("bash", "the tool is called Bash"),
            {"rule": "bash", "reason": "the tool is called Bash"},
        ),
        (errors.UnknownSession("s1"), None),
    ],
)
def test_what_a_program_may_want_to_know_is_told_beside(
    error: BridleError, about: dict[str, object] | None
) -> None:
    assert trouble_of(error).about == about


def test_what_to_do_is_the_errors_own_hint_where_it_has_one() -> None:
    told = trouble_of(errors.NotPossible("send", "stopped", "resume it first", "s1"))
    assert told.remedy == "Resume it first."
    assert told.detail.startswith("send: not possible while session s1 is stopped")
    assert trouble_of(errors.LimitReached("depth", 3, "s1", "stop one")).remedy == "Stop one."


def test_what_was_not_known_is_not_repeated() -> None:
    told = trouble_of(errors.UnknownSession("a-secret"))
    assert told.detail == "There is no such session."
    assert "a-secret" not in str(told.body)


def test_an_error_that_is_not_in_the_table_is_told_as_the_nearest_that_is() -> None:
    told = trouble_of(errors.WiderThanParent("policy", "autonomous", "ask"))
    assert (told.status, told.code) == (409, "not_possible")
