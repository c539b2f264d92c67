"""The state follows from the facts, by tables that are as they are published."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.errors import NotPossible
from bridle.supervisor.record import SessionRecord, blank
from bridle.supervisor.states import (
    ALLOWED,
    ENDED,
    OPERATIONS,
    STATES,
    TABLE,
    TRANSITIONS,
    Facts,
    Operation,
    Outcome,
    check_possible,
    check_possible_elsewhere,
    is_live,
    possible_elsewhere,
    possible_in,
    state_of,
)
from bridle.views import stream
from bridle.views.stream import State
from tests.levels import tries

from .streams import Tape
from .walks import copy_of, likeness, next_steps

PAGE = Path(__file__).resolve().parents[2] / "docs" / "states.md"


# --- one state after the other


def explored() -> set[tuple[State, State]]:
    """Every change of state that any legal order of events can bring about."""
    todo = [Tape(), Tape(external="root")]
    seen = {likeness(tape.record) for tape in todo}
    found = {(blank().state, tape.record.state) for tape in todo}
    while todo:
        tape = todo.pop()
        for step in next_steps(tape.record).values():
            after = copy_of(tape)
            step(after)
            found.add((tape.record.state, after.record.state))
            likely = likeness(after.record)
            if likely not in seen:
                seen.add(likely)
                todo.append(after)
    return {(was, now) for was, now in found if was != now}


def test_the_table_of_transitions_has_all_that_can_happen_and_nothing_else() -> None:
    told = {(was, now) for was, after in TRANSITIONS.items() for now in after}
    assert told == explored()


@given(st.data())
@settings(max_examples=tries(10, 60), deadline=None)
def test_whatever_happens_the_states_are_in_the_table_and_the_record_agrees_with_itself(
    data: st.DataObject,
) -> None:
    tape = Tape(external=data.draw(st.sampled_from([None, "root", "permit"])))
    for _ in range(data.draw(st.integers(0, 40))):
        if not (steps := next_steps(tape.record)):
            return
        was = tape.record.state
        steps[data.draw(st.sampled_from(sorted(steps)))](tape)
        record = tape.record
        assert record.state == was or record.state in TRANSITIONS[was]
        agree(record)


def agree(record: SessionRecord) -> None:
    facts = record.facts
    assert record.state == state_of(facts)
    assert (record.outcome == "running") == facts.is_turn_running
    assert facts.is_turn_running == (record.is_turn_open or bool(record.unanswered))
    assert facts.pending == len(record.approvals)
    assert (record.clocked_since is None) == (record.state in {*ENDED, "queued", "paused"})
    assert set(record.joined) <= set(record.unanswered)
    assert record.unreadable == 0


def test_every_state_can_be_left_and_reached() -> None:
    assert set(TRANSITIONS) == set(STATES) == {row.state for row in TABLE}
    assert set().union(*TRANSITIONS.values()) == set(STATES)


# --- what counts more

RUNS = Facts(phase="ready", is_turn_running=True)
OVER = Facts(phase="ended", how="exited", code=0)


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        (Facts(), "stopped"),
        (Facts(is_queued=True), "queued"),
        (Facts(phase="starting", is_turn_running=True), "starting"),
        (Facts(phase="ready"), "idle"),
        (RUNS, "running"),
        (Facts(phase="ready", is_limited=True, is_turn_running=True), "rate limited"),
        (Facts(phase="ready", is_limited=True, pending=1), "awaiting approval"),
        (Facts(phase="ready", needs_login=True, pending=1), "needs login"),
        (Facts(phase="ready", needs_login=True, pauses=("person",)), "paused"),
        (Facts(phase="ready", is_stop_asked=True, pauses=("person",)), "stopping"),
        (Facts(is_queued=True, pauses=("budget",)), "paused"),
        (Facts(is_queued=True, pending=1), "queued"),
        (Facts(phase="ended", is_queued=True, how="vanished"), "queued"),
        (Facts(phase="ended", how="exited", code=0, pauses=("person",)), "stopped"),
        (Facts(phase="elsewhere"), "idle"),
        (Facts(phase="elsewhere", pending=1), "awaiting approval"),
        (Facts(phase="elsewhere", pending=1, pauses=("budget",)), "paused"),
        (Facts(phase="elsewhere", pending=1, is_stop_asked=True), "stopped"),
    ],
)
def test_the_first_row_that_holds_is_the_state(facts: Facts, state: State) -> None:
    assert state_of(facts) == state


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        (OVER, "stopped"),
        (Facts(phase="ended", how="exited", code=0, is_cut_off=True), "failed"),
        (Facts(phase="ended", how="exited", code=1), "failed"),
        (Facts(phase="ended", how="exited"), "failed"),
        (Facts(phase="ended", how="exited", signal=11), "failed"),
        (Facts(phase="ended", how="killed", signal=9), "failed"),
        (Facts(phase="ended", how="not started"), "failed"),
        (Facts(phase="ended", how="vanished"), "lost"),
        (Facts(phase="ended", how="stopped", signal=15), "stopped"),
        *(
            (Facts(phase="ended", how=how, code=1, is_cut_off=True, is_stop_asked=True), "stopped")
            for how in ("exited", "stopped", "killed", "vanished", "not started")
        ),
    ],
)
def test_how_a_launch_ended_tells_whether_it_stopped_failed_or_is_lost(
    facts: Facts, state: State
) -> None:
    assert state_of(facts) == state


# --- what came of a turn


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ({}, "complete"),
        ({"is_error": True}, "failed"),
        ({"subtype": "error_max_turns", "is_error": True}, "failed"),
        ({"subtype": "error_of_tomorrow"}, "failed"),
        ({"subtype": "error_during_execution", "is_error": True}, "failed"),
        ({"subtype": "error_during_execution"}, "cancelled"),
        (
            {
                "subtype": "error_during_execution",
                "is_error": True,
                "terminal_reason": "aborted_tools",
            },
            "cancelled",
        ),
        ({"is_error": "perhaps"}, "failed"),
    ],
)
def test_a_result_tells_what_came_of_the_turn(result: dict[str, object], outcome: Outcome) -> None:
    tape = Tape()
    assert tape.run().outcome == "none"
    assert tape.write("u1").outcome == "running"
    record = tape.result(**result)
    assert (record.outcome, record.state, record.turns) == (outcome, "idle", 1)


@pytest.mark.parametrize("how", ["exited", "killed", "vanished"])
def test_a_turn_is_lost_with_its_process(how: str) -> None:
    tape = Tape()
    tape.run()
    tape.write("u1")
    assert tape.end(how, code=0).outcome == "lost"


def test_a_turn_is_cancelled_by_a_stop() -> None:
    tape = Tape()
    tape.run()
    tape.write("u1")
    tape.tell(stream.STOP_ASKED)
    record = tape.end("killed", signal=9)
    assert (record.outcome, record.state) == ("cancelled", "stopped")


def test_the_outcome_stays_when_the_process_ends_between_turns() -> None:
    tape = Tape()
    tape.run()
    tape.write("u1")
    tape.result()
    assert tape.end(code=1, had_result=True).outcome == "complete"
    assert tape.run("l2").outcome == "complete"


# --- what can be done


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_is_not_possible_says_what_to_do_instead(operation: Operation) -> None:
    for state in STATES:
        if state in ALLOWED[operation]:
            check_possible(operation, state)
            assert operation in possible_in(state)
            continue
        words = f"^{operation}: not possible while session s1 is"
        with pytest.raises(NotPossible, match=words) as no:
            check_possible(operation, state, "s1")
        assert (no.value.operation, no.value.state, no.value.session) == (operation, state, "s1")
        assert no.value.hint
        assert operation not in possible_in(state)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_with_one_whose_process_is_not_ours_nothing_is_done_but_to_stop_and_delete_it(
    operation: Operation,
) -> None:
    for state in STATES:
        if operation in ("stop", "delete") and state in ALLOWED[operation]:
            check_possible_elsewhere(operation, state)
            assert operation in possible_elsewhere(state)
            continue
        with pytest.raises(NotPossible, match=f"^{operation}: not possible") as no:
            check_possible_elsewhere(operation, state, "s1")
        assert no.value.hint
        assert operation not in possible_elsewhere(state)


def test_in_every_state_something_can_be_done() -> None:
    assert all(possible_in(state) for state in STATES)
    for state in STATES:
        assert ("stop" in possible_in(state)) == is_live(state)
        assert ("delete" in possible_in(state)) != is_live(state)


# --- the page


def state_table() -> str:
    meanings = {row.state: row.meaning for row in TABLE}
    rows = [
        f"| `{state}` | {meanings[state]} | {', '.join(possible_in(state))} |" for state in STATES
    ]
    return "\n".join(["| state | what it means | what one can do |", "|---|---|---|", *rows])


def order_table() -> str:
    rows = [f"| {n} | `{row.state}` | {row.when} |" for n, row in enumerate(TABLE, 1)]
    return "\n".join(["| | state | when |", "|---|---|---|", *rows])


def transition_table() -> str:
    rows = [
        f"| `{state}` | {', '.join(f'`{s}`' for s in STATES if s in TRANSITIONS[state])} |"
        for state in STATES
    ]
    return "\n".join(["| from | to |", "|---|---|", *rows])


@pytest.mark.parametrize("table", [state_table, order_table, transition_table])
def test_the_page_publishes_the_table_as_it_is(table: object) -> None:
    assert callable(table)
    assert table() in PAGE.read_text()
