"""The timeline: when each call began and ended, how, and how long of that somebody was asked."""

from __future__ import annotations

import pytest

from bridle.protocol.capabilities import TESTED_VERSIONS
from bridle.views import Span, Timeline, stream
from bridle.views.timeline import MAX_OPEN

from .helpers import SCENARIOS, Told, recorded


def spans(entries: list[stream.Entry]) -> list[Span]:
    timeline = Timeline()
    for entry in entries:
        timeline.add(entry)
    return timeline.page(after=0, limit=len(timeline) + 1)


@pytest.mark.parametrize("version", TESTED_VERSIONS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_call_of_a_real_wire_comes_to_its_end(version: str, scenario: str) -> None:
    for span in spans(recorded(version, scenario)):
        assert span.outcome != "running"
        assert span.ended is not None
        assert span.ended >= span.started


@pytest.mark.parametrize("version", TESTED_VERSIONS)
def test_calls_of_subagents_name_theirs(version: str) -> None:
    task, bash = spans(recorded(version, "subagent"))
    assert (task.parent, bash.parent) == (None, task.id)


@pytest.mark.parametrize("version", TESTED_VERSIONS)
def test_an_interrupt_is_no_refusal(version: str) -> None:
    (span,) = spans(recorded(version, "interrupt_pending"))
    assert span.outcome == "cancelled"


def test_a_no_that_ends_the_turn_is_a_refusal_though_the_cli_calls_it_an_interrupt() -> None:
    told = Told()
    told.calls("t", "Bash", command="ls")
    told.asks("ap", "t")
    told.decides("ap", "reject", message="stop")
    meta = [{"id": "t", "non_execution_kind": "user-rejected"}]
    told.gives("t", "no", is_error=True, tool_result_meta=meta)
    assert [span.outcome for span in spans(told.entries)] == ["denied"]


def test_waiting_for_an_approval_is_not_running() -> None:
    told = Told()
    told.calls("t", "Bash", command="ls")
    told.asks("ap", "t")
    for _ in range(8):
        told.text("meanwhile")
    (asked,) = spans(told.entries)
    assert (asked.outcome, asked.asked, asked.ran) == ("running", told.entries[1].at, None)
    told.decides("ap")
    told.text("and")
    told.gives("t", "ok")
    (span,) = spans(told.entries)
    assert (span.outcome, span.waited, span.ran, span.asked) == ("ok", 9.0, 3.0, None)


def test_who_is_asked_twice_about_a_call_has_waited_both_times() -> None:
    told = Told()
    told.calls("t", "Bash", command="ls")
    told.asks("first", "t")
    told.text("meanwhile")
    told.text("and")
    told.cancels("first", "withdrawn")
    told.asks("second", "t")
    told.decides("second")
    told.gives("t", "ok")
    (span,) = spans(told.entries)
    assert (span.outcome, span.waited, span.ran) == ("ok", 4.0, 3.0)


def test_a_call_that_was_asked_for_before_its_line_began_then() -> None:
    told = Told()
    told.asks("ap", "t")
    told.calls("t", "Bash", command="ls")
    told.decides("ap")
    told.gives("t", "ok")
    (span,) = spans(told.entries)
    assert (span.started, span.waited, span.ran) == (told.entries[0].at, 2.0, 1.0)


@pytest.mark.parametrize(
    ("how", "outcome"),
    [("reject", "denied"), ("withdrawn", "cancelled"), ("approve", "error")],
)
def test_a_refusal_is_no_error(how: str, outcome: str) -> None:
    told = Told()
    told.calls("t", "Bash", command="ls")
    told.asks("ap", "t")
    if how == "withdrawn":
        told.cancels("ap", how)
    else:
        told.decides("ap", how)
    told.gives("t", "no", is_error=True)
    assert [span.outcome for span in spans(told.entries)] == [outcome]


def test_a_denial_that_only_the_turns_result_tells_is_put_right() -> None:
    told = Told()
    told.calls("t", "Bash", command="ls")
    told.gives("t", "not allowed", is_error=True)
    assert spans(told.entries)[0].outcome == "error"
    denial = {"tool_name": "Bash", "tool_use_id": "t", "tool_input": {}}
    told.result(permission_denials=[denial])
    (span,) = spans(told.entries)
    assert (span.outcome, span.changed) == ("denied", 3)


def test_what_runs_when_the_process_ends_is_cancelled() -> None:
    told = Told()
    told.calls("t", "Bash", parent="task", command="ls")
    told.result()
    assert spans(told.entries)[0].outcome == "running"
    told.ends("killed", None)
    assert spans(told.entries)[0].outcome == "cancelled"


def test_a_denial_by_a_rule_or_by_the_cli_is_no_error() -> None:
    told = Told()
    for call in ("judged", "refused", "failed"):
        told.calls(call, "Bash", command="ls")
    verdict = {"type": "deny", "rule": "Bash", "because": "no"}
    told.event("tool.judged", {"launch": "one", "tool": "Bash", "input": {},
                               "tool_use_id": "judged", "agent_id": None,
                               "verdict": verdict})  # fmt: skip
    told.said({"type": "system", "subtype": "permission_denied", "tool_name": "Bash",
               "tool_use_id": "refused", "message": "no"})  # fmt: skip
    for call in ("judged", "refused", "failed"):
        told.gives(call, "no", is_error=True)
    outcomes = {span.id: span.outcome for span in spans(told.entries)}
    assert outcomes == {"judged": "denied", "refused": "denied", "failed": "error"}


def test_what_ends_while_it_is_asked_about_has_waited_until_then() -> None:
    told = Told()
    told.calls("t", "Bash", command="ls")
    told.text("meanwhile")
    told.asks("ap", "t")
    told.text("meanwhile")
    told.result()
    (span,) = spans(told.entries)
    assert (span.outcome, span.waited, span.ran, span.asked) == ("cancelled", 2.0, 2.0, None)


def test_an_event_that_is_in_it_already_changes_nothing() -> None:
    told, timeline = Told(), Timeline()
    begun = told.calls("t", "Bash", command="ls")
    told.gives("t", "ok")
    for entry in told.entries:
        timeline.add(entry)
    assert not timeline.add(begun)
    assert len(timeline) == 1
    assert timeline.state.open == {}


def test_open_calls_are_bounded() -> None:
    told, timeline = Told(), Timeline()
    for number in range(MAX_OPEN + 50):
        timeline.add(told.calls(f"t{number}", "Bash", parent="task"))
        timeline.add(told.asks(f"a{number}", f"t{number}"))
    assert len(timeline.state.open) == MAX_OPEN
    assert len(timeline.state.waits) <= MAX_OPEN
    assert len(timeline) == MAX_OPEN + 50
