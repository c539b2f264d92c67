"""All that a supervisor may append to a stream next, whatever is in it already."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from bridle.supervisor.record import SessionRecord, restored, snapshot
from bridle.supervisor.states import Facts
from bridle.views import stream

from .streams import Tape

Step: TypeAlias = Callable[[Tape], object]


def next_steps(record: SessionRecord) -> dict[str, Step]:
    facts = record.facts
    if facts.phase == "elsewhere":
        return _elsewhere(record)
    return {
        **_life(record),
        **(_process(facts) if facts.has_process else {}),
        **(_turns(record) if facts.phase == "ready" else {}),
    }


def _life(record: SessionRecord) -> dict[str, Step]:
    facts = record.facts
    steps: dict[str, Step] = {}
    if facts.is_over or (record.state == "stopping" and not facts.is_queued):
        steps["queue"] = lambda tape: tape.tell(stream.QUEUED)
    if record.state == "queued":
        steps["intend"] = lambda tape: tape.tell(stream.INTENDED)
    if not facts.is_over:
        steps |= _held(facts)
        steps["stop"] = lambda tape: tape.tell(stream.STOP_ASKED)
    if "person" in facts.pauses:
        steps["unpause"] = lambda tape: tape.tell(stream.UNPAUSED, cause="person")
    if "budget" in facts.pauses:
        steps["unpause for money"] = lambda tape: tape.tell(stream.UNPAUSED, cause="budget")
    if facts.is_limited or facts.needs_login:
        steps["unlimit"] = lambda tape: tape.tell(stream.UNLIMITED)
    if record.approvals:
        steps["settle"] = lambda tape: tape.settle(tape.record.approvals[0])
    return steps


def _elsewhere(record: SessionRecord) -> dict[str, Step]:
    """One whose process is not ours: it asks, its time may be up, and it may be stopped."""
    facts = record.facts
    steps: dict[str, Step] = {}
    if not facts.is_over:
        steps["stop"] = lambda tape: tape.tell(stream.STOP_ASKED)
        if "budget" not in facts.pauses:
            steps["pause for money"] = lambda tape: tape.tell(stream.PAUSED, cause="budget")
        if not record.approvals:
            steps["ask"] = lambda tape: tape.ask(f"a{tape.record.seq}")
    if "budget" in facts.pauses:
        steps["unpause for money"] = lambda tape: tape.tell(stream.UNPAUSED, cause="budget")
    if record.approvals:
        steps["settle"] = lambda tape: tape.settle(tape.record.approvals[0])
    return steps


def _held(facts: Facts) -> dict[str, Step]:
    """Also one that waits for a place: the limit may be that of an account."""
    steps: dict[str, Step] = {}
    if "person" not in facts.pauses:
        steps["pause"] = lambda tape: tape.tell(stream.PAUSED, cause="person")
    if "budget" not in facts.pauses:
        steps["pause for money"] = lambda tape: tape.tell(stream.PAUSED, cause="budget")
    if not facts.is_limited:
        steps["limit"] = lambda tape: tape.tell(stream.LIMITED, until=tape.at + 60)
    if not facts.needs_login:
        steps["want login"] = lambda tape: tape.tell(stream.LIMITED, needs_login=True)
    return steps


def _process(facts: Facts) -> dict[str, Step]:
    steps: dict[str, Step] = {
        "end well": lambda tape: tape.end(code=0),
        "end badly": lambda tape: tape.end(code=1),
        "be killed": lambda tape: tape.end("killed", signal=9),
        "vanish": lambda tape: tape.end("vanished"),
    }
    if facts.is_stop_asked:
        steps["end as asked"] = lambda tape: tape.end("stopped", code=0)
    if facts.phase == "starting":
        steps["not start"] = lambda tape: tape.end("not started")
        steps["get ready"] = lambda tape: tape.tell(stream.READY)
    return steps


def _turns(record: SessionRecord) -> dict[str, Step]:
    facts = record.facts
    steps: dict[str, Step] = {}
    is_held = facts.pauses or facts.is_limited or facts.needs_login or facts.is_stop_asked
    if not is_held and len(record.unanswered) < 2:
        steps["write"] = lambda tape: tape.write(f"u{tape.record.seq}")
    if not record.is_turn_open:
        steps["begin"] = lambda tape: tape.begin()
    if facts.is_turn_running:
        steps["result"] = lambda tape: tape.result()
        steps["be interrupted"] = lambda tape: tape.result(subtype="error_during_execution")
        steps["fail"] = lambda tape: tape.result(subtype="error_max_turns", is_error=True)
        if not record.approvals:
            steps["ask"] = lambda tape: tape.ask(f"a{tape.record.seq}")
    return steps


def copy_of(tape: Tape) -> Tape:
    copy = Tape(is_created=False)
    copy.record = restored(snapshot(tape.record))
    copy.at = tape.at
    return copy


def likeness(record: SessionRecord) -> object:
    """The same for records from which the same can follow."""
    facts = record.facts
    ending = (facts.how, facts.code, facts.signal, facts.is_cut_off)
    return (
        facts.is_queued, facts.phase, ending, facts.is_stop_asked, facts.is_turn_running,
        facts.pauses, facts.is_limited, facts.needs_login, len(record.approvals),
        len(record.unanswered), len(record.joined), record.is_turn_open,
    )  # fmt: skip
