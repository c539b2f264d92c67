"""What holds for every fold: nothing raises, states can be kept, one more event costs one event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from bridle.protocol.capabilities import TESTED_VERSIONS
from bridle.views import (
    FilesState,
    TimelineState,
    TranscriptState,
    UsageState,
    files,
    read,
    stream,
    timeline,
    transcript,
    usage,
)
from tests.levels import tries
from tests.operations import operations

from .helpers import SCENARIOS, Told, recorded

FOLDS: dict[str, tuple[Callable[[Any, Any], Any], type[Struct]]] = {
    "transcript": (transcript.fold, TranscriptState),
    "usage": (usage.fold, UsageState),
    "files": (files.fold, FilesState),
    "timeline": (timeline.fold, TimelineState),
}
KINDS = sorted([*stream.BODIES, "approval.requested", "approval.decided", "approval.delivered",
                "approval.outcome", "tool.judged", "rule.added", "future"])  # fmt: skip


def a_day() -> list[stream.Entry]:
    """Several launches of real wires, approvals, plans, and some that can't be read."""
    told = Told()
    for scenario in ("subagent", "plan_approval", "exit_code", "slash_command_output", "clear"):
        for version in TESTED_VERSIONS:
            recorded(version, scenario, told)
    for number, choice in enumerate(("approve", "reject", "approve_plan")):
        told.asks(f"a{number}", f"t{number}", "plan" if "plan" in choice else "tool")
        told.calls(f"t{number}", "ExitPlanMode" if "plan" in choice else "Bash", plan="p")
        told.decides(f"a{number}", choice)
        told.event("approval.delivered", {"id": f"a{number}", "at": 1.0})
        told.gives(f"t{number}", "x", is_error=number == 1)
    told.said({"type": "sing"})
    told.event(stream.SAID, b'{"launch":"one","type":"user","li', is_cut=True)
    told.event(stream.STATE, b"nonsense")
    told.calls("last", "Write", file_path="/a")
    return told.entries


DAY = a_day()


@pytest.mark.parametrize("name", FOLDS)
@settings(max_examples=tries(10, 30), deadline=None)
@given(data=st.data())
def test_a_state_that_was_kept_goes_on_as_if_it_had_not_been(
    name: str, data: st.DataObject
) -> None:
    fold, kind = FOLDS[name]
    kept = data.draw(st.sets(st.integers(0, len(DAY) - 1), max_size=20))
    whole, broken = kind(), kind()
    for number, entry in enumerate(DAY):
        if number in kept:
            broken = msgspec.json.decode(msgspec.json.encode(broken), type=kind)
        assert fold(whole, entry) == fold(broken, entry)
    assert whole == broken


@pytest.mark.parametrize("name", FOLDS)
def test_a_state_can_be_kept_between_any_two_events(name: str) -> None:
    fold, kind = FOLDS[name]
    whole, broken = kind(), kind()
    for entry in DAY:
        broken = msgspec.json.decode(msgspec.json.encode(broken), type=kind)
        assert fold(whole, entry) == fold(broken, entry)


@pytest.mark.parametrize("name", FOLDS)
def test_an_event_that_was_read_once_serves_every_fold(name: str) -> None:
    fold, kind = FOLDS[name]
    raw, decoded = kind(), kind()
    for entry in DAY:
        assert fold(raw, entry) == fold(decoded, read(entry))
    assert raw == decoded


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
#: Lines that are nearly right are more dangerous than noise.
FIELDS = ["type", "subtype", "message", "content", "id", "name", "input", "tool_use_id", "text",
          "usage", "model", "result", "modelUsage", "tool_use_result", "is_error", "line",
          "launch", "end", "at", "ending", "choice", "outcome", "uuid", "what"]  # fmt: skip
WORDS = ["assistant", "user", "system", "result", "tool_use", "tool_result", "text", "init",
         "prompt", "decided", "cancelled", "success", "image", "status"]  # fmt: skip
near_misses = st.recursive(
    st.sampled_from(WORDS) | st.integers(-5, 10**20) | st.none() | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=8)
    ),
    max_leaves=20,
)


@settings(max_examples=tries(30, 300), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(KINDS),
            st.binary(max_size=40)
            | json_values.map(msgspec.json.encode)
            | near_misses.map(msgspec.json.encode),
            st.booleans(),
        ),
        max_size=8,
    )
)
def test_no_body_makes_a_fold_raise(events: list[tuple[str, bytes, bool]]) -> None:
    states = {name: kind() for name, (_, kind) in FOLDS.items()}
    for seq, (kind, body, is_cut) in enumerate(events, 1):
        reading = read(stream.Entry(seq, float(seq), kind, body, is_cut))
        for name, (fold, _) in FOLDS.items():
            fold(states[name], reading)
    for name, (_, state) in FOLDS.items():
        assert msgspec.json.decode(msgspec.json.encode(states[name]), type=state) == states[name]


@settings(max_examples=tries(20, 200), deadline=None)
@given(near_misses, st.sampled_from(["assistant", "user", "result", "system"]))
def test_no_line_of_an_agent_makes_a_fold_raise(members: Any, kind: str) -> None:
    told = Told()
    line = {**(members if isinstance(members, dict) else {"message": members}), "type": kind}
    told.calls("t", "Write", file_path="/a")
    told.said(line)
    for fold, state in FOLDS.values():
        kept = state()
        for entry in told.entries:
            fold(kept, entry)


def rounds(count: int) -> list[stream.Entry]:
    """Turns with a call each: five events."""
    told = Told()
    for number in range(count):
        told.calls(f"t{number}", "Edit", file_path=f"/{number % 50}")
        told.asks(f"a{number}", f"t{number}")
        told.decides(f"a{number}")
        told.gives(f"t{number}", "done")
        told.result(0.001 * number, modelUsage={"opus": {"inputTokens": number}})
    return told.entries


class Passes:
    """The same events over and over, each time with the numbers that come next."""

    def __init__(self, entries: list[stream.Entry]) -> None:
        self.states = {name: kind() for name, (_, kind) in FOLDS.items()}
        self.seq = 0
        self._readings = [read(entry) for entry in entries]

    def go_on(self) -> None:
        later = [msgspec.structs.replace(one, seq=self.seq + one.seq) for one in self._readings]
        self.seq += len(later)
        for name, (fold, _) in FOLDS.items():
            state = self.states[name]
            for reading in later:
                fold(state, reading)

    def size(self) -> int:
        return sum(len(msgspec.json.encode(state)) for state in self.states.values())


LONG = tries(10_000, 100_000, 1_000_000)


@pytest.mark.deeper
def test_to_add_one_event_costs_the_same_after_a_long_history() -> None:
    """Nothing is kept but what is open: a state is no larger and no slower than it was early."""
    told = Told()
    for number in range(800):
        told.text(f"words {number}")
    passes = Passes([*told.entries, *renumbered(rounds(40), len(told.entries))])
    early = operations(passes.go_on)
    early_size = passes.size()
    while passes.seq < LONG:
        passes.go_on()
    assert operations(passes.go_on) < 1.1 * early
    assert passes.size() < 1.1 * early_size + 1_000


def renumbered(entries: list[stream.Entry], by: int) -> list[stream.Entry]:
    return [msgspec.structs.replace(entry, seq=entry.seq + by) for entry in entries]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_changes_name_each_entry_once(scenario: str) -> None:
    state = TranscriptState()
    for entry in recorded(TESTED_VERSIONS[-1], scenario):
        changes = transcript.fold(state, entry)
        places = [entry.position for entry in (*changes.added, *changes.changed)]
        assert len(places) == len(set(places))
