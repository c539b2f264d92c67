"""What lines tell of the service behind an agent."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bridle.supervisor.signs import Well, sign_in, tells_more
from bridle.supervisor.states import Facts
from bridle.views import stream
from bridle.views.stream import Entry, Limited

AT = 1000.0


def said(kind: str, line: dict[str, Any], **fields: Any) -> Entry:
    body = {"launch": "l", "end": 10, "type": kind, "line": line}
    return Entry(1, AT, stream.SAID, msgspec.json.encode(body), **fields)


def limit(status: str) -> dict[str, Any]:
    return {"rate_limit_info": {"status": status, "resetsAt": 5000}}


SIGNS: list[tuple[str, dict[str, Any], Limited | Well | None]] = [
    ("rate_limit_event", limit("rejected"), Limited(at=AT, until=5000)),
    ("rate_limit_event", limit("allowed"), None),
    ("rate_limit_event", limit("allowed_warning"), None),
    ("rate_limit_event", {"rate_limit_info": {"status": "rejected"}}, Limited(at=AT)),
    (
        "system/api_retry",
        {"error": "overloaded", "error_status": 529, "retry_delay_ms": 2000},
        Limited(at=AT, until=AT + 2, words="overloaded"),
    ),
    ("system/api_retry", {"error": "server_error", "error_status": 500}, None),
    (
        "assistant",
        {"error": "authentication_failed"},
        Limited(at=AT, needs_login=True, words="authentication_failed"),
    ),
    ("assistant", {"error": "rate_limit"}, Limited(at=AT, words="rate_limit")),
    ("assistant", {"error": None}, None),
    ("assistant", {"message": {"content": 'it says "error":"rate_limit" here'}}, None),
    ("assistant", {}, None),
    ("result", {"is_error": False}, Well()),
    ("result", {"is_error": True}, None),
    ("user", {"error": "rate_limit"}, None),
]


@pytest.mark.parametrize(("kind", "line", "sign"), SIGNS)
def test_a_line_tells_what_the_service_does(
    kind: str, line: dict[str, Any], sign: Limited | Well | None
) -> None:
    assert sign_in(said(kind, line)) == sign


@pytest.mark.parametrize("line", [{"error": 5}, {"rate_limit_info": []}, {"error_status": "x"}])
def test_what_can_not_be_read_tells_nothing(line: dict[str, Any]) -> None:
    assert sign_in(said("rate_limit_event", line)) is None


def test_of_a_line_that_is_cut_nothing_is_taken() -> None:
    assert sign_in(said("result", {"is_error": False}, is_cut=True)) is None


@pytest.mark.parametrize(
    ("limited", "facts", "is_more"),
    [
        (Limited(at=AT), Facts(), True),
        (Limited(at=AT), Facts(is_limited=True), False),
        (Limited(at=AT, until=9), Facts(is_limited=True), True),
        (Limited(at=AT, until=9), Facts(is_limited=True, limited_until=9), False),
        (Limited(at=AT, until=10), Facts(is_limited=True, limited_until=9), True),
        (Limited(at=AT, needs_login=True), Facts(is_limited=True), True),
        (Limited(at=AT, needs_login=True), Facts(needs_login=True), False),
        (Limited(at=AT, until=9), Facts(needs_login=True), False),
    ],
)
def test_only_what_is_more_than_was_known_is_written_down(
    limited: Limited, facts: Facts, is_more: bool
) -> None:
    assert tells_more(limited, facts) is is_more
