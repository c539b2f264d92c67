"""What an agent sees of another: numbered without gaps, the same however the stream is read."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.protocol.capabilities import TESTED_VERSIONS
from bridle.views import happenings as h
from bridle.views import read, stream
from bridle.views.detail import SIZES, Detail, cut_input, shown, size_of
from bridle.views.loopback import LoopbackState, fold
from tests.levels import tries

from .helpers import NEW, OLD, SCENARIOS, Told, assistant, recorded
from .test_folds import DAY, KINDS


def seen(entries: list[stream.Entry], state: LoopbackState | None = None) -> list[h.Happening]:
    state = state or LoopbackState()
    return [one for entry in entries for one in fold(state, entry)]


def types(found: list[h.Happening]) -> list[str]:
    return [str(one.__struct_config__.tag) for one in found]


# --- the same, however it is read

READ = [read(entry) for entry in DAY]
WHOLE = LoopbackState()
EXPECTED = [(WHOLE.count, fold(WHOLE, entry)) for entry in READ]


@settings(max_examples=tries(50, 500), deadline=None)
@given(cuts=st.sets(st.integers(0, len(DAY) - 1), max_size=20))
def test_happenings_and_numbers_are_the_same_however_the_stream_is_cut(cuts: set[int]) -> None:
    state, found = LoopbackState(), []
    for number, entry in enumerate(READ):
        if number in cuts:  # another process goes on with what was kept
            state = msgspec.json.decode(msgspec.json.encode(state), type=LoopbackState)
        found.append((state.count, fold(state, entry)))
    assert found == EXPECTED
    assert state == WHOLE
    assert state.count == sum(len(given) for _, given in found)


@pytest.mark.parametrize("version", TESTED_VERSIONS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_recorded_turn_has_a_beginning_and_an_end(version: str, scenario: str) -> None:
    entries = recorded(version, scenario)
    state = LoopbackState()
    found = seen(entries, state)
    assert state.count == len(found)
    assert state.open == []
    starts = [one.id for one in found if isinstance(one, h.Start)]
    ends = [turn for one in found if isinstance(one, h.Complete) for turn in one.turn_ids]
    # Prompts of a recording have other uuids in the results than the recorder gave them.
    assert not ends or len(ends) <= len(starts) or version == NEW


def test_an_event_that_is_in_it_already_brings_nothing() -> None:
    state = LoopbackState()
    seen(DAY, state)
    count = state.count
    assert seen(DAY, state) == []
    assert state.count == count


@settings(max_examples=tries(50, 500), deadline=None)
@given(
    events=st.lists(
        st.tuples(st.sampled_from(KINDS), st.binary(max_size=60), st.booleans()), max_size=8
    )
)
def test_bodies_of_any_bytes_never_raise(events: list[tuple[str, bytes, bool]]) -> None:
    told = Told()
    for kind, body, is_cut in events:
        told.event(kind, body, is_cut=is_cut)
    state = LoopbackState()
    assert len(seen(told.entries, state)) == state.count


@given(
    message=st.fixed_dictionaries(
        {"type": st.sampled_from(["assistant", "user", "result", "system", "x"])},
        optional={
            name: st.none() | st.booleans() | st.integers() | st.text(max_size=5)
            | st.lists(st.text(max_size=3), max_size=2)
            for name in ("subtype", "message", "uuid", "session_id", "is_error", "usage", "result")
        },
    )
)  # fmt: skip
@settings(max_examples=tries(50, 500), deadline=None)
def test_messages_of_any_shape_never_raise(message: dict[str, Any]) -> None:
    told = Told()
    told.said(message)
    seen(told.entries)


# --- turns


def prompt(told: Told, uuid: str, text: str = "go") -> None:
    told.wrote({"type": "user", "message": {"role": "user", "content": text}}, uuid)


def ends(found: list[h.Happening]) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.outcome, tuple(one.turn_ids)) for one in found if isinstance(one, h.Complete)]


def test_a_turn_is_shown_from_its_prompt_to_its_result() -> None:
    told = Told()
    told.event(stream.CREATED, stream.Created(id="s", name="n", folder="/", at=1))
    told.begins("one")
    prompt(told, "p1", "do it")
    told.said(assistant({"type": "thinking", "thinking": "hm"}, uuid="u1"))
    told.said(assistant({"type": "text", "text": "hello"}, uuid="u2", session_id="c1"))
    told.calls("t1", "Bash", command="ls")
    told.asks("a1", "t1")
    told.decides("a1")
    told.gives("t1", "files", uuid="u3")
    told.result(0.5, result="done", usage={"input_tokens": 3, "output_tokens": 4}, session_id="c1")
    state = LoopbackState()
    found = seen(told.entries, state)
    assert types(found) == [
        *("start", "thinking", "content", "tool_use", "approval_requested", "approval_resolved"),
        *("tool_result", "usage", "complete"),
    ]
    start = found[0]
    assert isinstance(start, h.Start)
    assert (start.id, start.prompt) == ("p1", "do it")
    assert start.user_position == h.Place("s", "p1")
    assert state.place == h.Place("c1", "u3")
    [used] = [one for one in found if isinstance(one, h.Used)]
    assert (used.cost_usd, used.input_tokens, used.output_tokens) == (0.5, 3, 4)
    assert ends(found) == [("complete", ("p1",))]
    assert state.ended == len(found) - 1


def test_a_result_ends_the_prompts_that_it_names_or_else_the_oldest() -> None:
    told = Told()
    for uuid in ("p1", "p2", "p3"):
        prompt(told, uuid)
    told.result(user_message_uuids=["p2", "p3"])
    told.result()
    assert ends(seen(told.entries)) == [("complete", ("p2", "p3")), ("complete", ("p1",))]


def test_a_prompt_that_joins_a_turn_of_an_old_cli_ends_with_it() -> None:
    told = Told()
    prompt(told, "p1")
    prompt(told, "p2")
    content = {"role": "user", "content": "go"}
    told.said({"type": "user", "uuid": "p1", "isReplay": True, "message": content})
    told.said({"type": "user", "uuid": "p2", "isReplay": True, "message": content})
    told.result()
    found = seen(told.entries)
    assert ends(found) == [("complete", ("p1", "p2"))]
    assert "content" not in types(found)


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ({}, "complete"),
        ({"subtype": "error_max_turns", "is_error": True}, "failed"),
        ({"subtype": "success", "is_error": True}, "failed"),
        ({"subtype": "error_during_execution", "is_error": False}, "cancelled"),
        (
            {"subtype": "error_during_execution", "is_error": True,
             "terminal_reason": "aborted_tools"},
            "cancelled",
        ),
    ],
)  # fmt: skip
def test_how_a_turn_ended_is_told(result: dict[str, Any], outcome: str) -> None:
    told = Told()
    prompt(told, "p")
    told.result(**result)
    found = seen(told.entries)
    assert ends(found) == [(outcome, ("p",))]
    assert ("error" in types(found)) == (outcome == "failed")


@pytest.mark.parametrize(
    ("how", "code", "is_asked", "outcome"),
    [
        ("exited", 1, False, "lost"),
        ("vanished", None, False, "lost"),
        ("stopped", 0, True, "cancelled"),
        ("killed", None, True, "cancelled"),
    ],
)
def test_a_process_that_goes_in_the_middle_of_a_turn_ends_it(
    how: stream.LaunchEnd, code: int | None, is_asked: bool, outcome: str
) -> None:
    told = Told()
    told.begins("one")
    prompt(told, "p")
    if is_asked:
        told.event(stream.STOP_ASKED, stream.StopAsked(at=1))
    told.ends(how, code)
    found = seen(told.entries)
    assert ends(found) == [(outcome, ("p",))]
    assert ("error" in types(found)) == (outcome == "lost")


def test_a_process_that_ends_between_turns_ends_none() -> None:
    told = Told()
    told.begins("one")
    prompt(told, "p")
    told.result()
    told.ends()
    assert len(ends(seen(told.entries))) == 1


def test_what_others_decide_and_pass_on_is_told() -> None:
    told = Told()
    told.asks("a1", "t1", reason="why")
    told.event("approval.escalated", {"id": "a1", "steps": [{"to": "r", "why": "no", "by": "p"}]})
    told.decides("a1", "reject", message="never")
    told.asks("a2", "t2")
    told.cancels("a2", "interrupted")
    told.event("session.child_created", {"session": "c", "name": "n", "at": 1})
    requested, escalated, denied, _, cancelled, child = seen(told.entries)
    assert isinstance(requested, h.ApprovalRequested)
    assert (requested.id, requested.tool_name, requested.tool_use_id) == ("a1", "Bash", "t1")
    assert (requested.kind, requested.reason) == ("tool", "why")
    assert isinstance(escalated, h.ApprovalEscalated)
    assert (escalated.to, escalated.why, escalated.by) == ("r", "no", "p")
    assert isinstance(denied, h.ApprovalResolved)
    assert (denied.status, denied.by, denied.message) == ("denied", "ann", "never")
    assert isinstance(cancelled, h.ApprovalResolved)
    assert cancelled.status == "cancelled"
    assert child == h.ChildCreated(at=child.at, session_id="c", name="n")


def test_an_approval_that_nobody_decided_says_how_long_it_waited() -> None:
    told = Told()
    told.asks("a1", "t1")
    ending = {"type": "expired", "at": 1, "after": 90.0}
    told.event("approval.expired", {"id": "a1", "ending": ending})
    _, expired = seen(told.entries)
    assert isinstance(expired, h.ApprovalResolved)
    assert (expired.id, expired.status) == ("a1", "timed_out")
    assert expired.message == "nobody decided in 90 s"


def test_errors_of_the_service_are_told_with_their_words() -> None:
    told = Told()
    told.said({"type": "auth_status", "isAuthenticating": True})
    told.said({"type": "auth_status", "isAuthenticating": False, "error": "expired"})
    told.text("API Error: 400", error="unknown", uuid="u1", parent_tool_use_id="t")
    errors = seen(told.entries)
    assert [(one.source, one.message) for one in errors if isinstance(one, h.Error)] == [
        ("api", "expired"),
        ("api", "API Error: 400"),
    ]
    assert (errors[1].node_id, errors[1].subagent) == ("u1", "t")


def test_hidden_thoughts_are_thoughts_without_words() -> None:
    told = Told()
    told.said(assistant({"type": "redacted_thinking", "data": "…"}))
    (hidden,) = seen(told.entries)
    assert isinstance(hidden, h.Thinking)
    assert hidden.text == ""


def test_a_prompt_of_blocks_is_told_with_its_texts() -> None:
    told = Told()
    blocks = [
        {"type": "text", "text": "look"},
        {"type": "image", "source": {"type": "url", "url": "x"}},
        {"type": "text", "text": "here"},
    ]
    told.wrote({"type": "user", "message": {"role": "user", "content": blocks}}, "p1")
    (start,) = seen(told.entries)
    assert isinstance(start, h.Start)
    assert start.prompt == "look\nhere"


@pytest.mark.parametrize("is_idle", [True, False])
def test_prompts_of_which_an_idle_agent_knows_nothing_are_lost(is_idle: bool) -> None:
    told = Told()
    told.begins("one")
    prompt(told, "p1")
    prompt(told, "p2")
    told.event(stream.RESYNCED, stream.Resynced(launch="one", at=1, is_idle=is_idle))
    state = LoopbackState()
    assert ends(seen(told.entries, state)) == ([("lost", ("p1", "p2"))] if is_idle else [])
    assert state.open == ([] if is_idle else ["p1", "p2"])


def test_the_costs_of_a_process_begin_anew_and_those_of_a_turn_are_its_own() -> None:
    told = Told()
    for launch in ("one", "two"):
        told.begins(launch)
        told.result(0.5)
        told.result(0.75)
    used = [one.cost_usd for one in seen(told.entries) if isinstance(one, h.Used)]
    assert used == [0.5, 0.25, 0.5, 0.25]


def test_what_a_subagent_says_is_marked_and_moves_no_head() -> None:
    told = Told()
    told.said(assistant({"type": "text", "text": "main"}, uuid="u1"))
    told.said(assistant({"type": "text", "text": "sub"}, uuid="u2", parent_tool_use_id="t"))
    state = LoopbackState()
    main, sub = seen(told.entries, state)
    assert (main.subagent, sub.subagent) == (None, "t")
    assert state.head == "u1"


def test_what_is_not_known_is_shown() -> None:
    told = Told()
    told.said({"type": "sing"})
    told.said(assistant({"type": "dance"}))
    told.said(assistant({"type": "image", "source": {"type": "url", "url": "x"}}))
    found = seen(told.entries)
    assert types(found) == ["other", "other", "other"]
    assert [one.what for one in found if isinstance(one, h.Other)] == ["sing", "dance", "image"]


def test_what_is_too_large_to_be_read_still_begins_and_ends_a_turn() -> None:
    told = Told()
    head = b'{"launch":"one","start":0,"what":"prompt","id":"p1","line":{"type":"user","mess'
    told.event(stream.WROTE, head, is_cut=True)
    head = b'{"launch":"one","end":1,"type":"user","line":{"tool_use_id":"t1","content":"xx'
    told.event(stream.SAID, head, is_cut=True)
    head = b'{"launch":"one","end":1,"type":"result","line":{"subtype":"success","result":"x'
    told.event(stream.SAID, head, is_cut=True)
    found = seen(told.entries)
    assert types(found) == ["start", "tool_result", "complete"]
    assert ends(found) == [("complete", ("p1",))]


# --- how much of it is shown


@pytest.mark.parametrize("detail", SIZES)
def test_long_texts_are_cut_and_what_is_missing_is_counted(detail: Detail) -> None:
    size = 300_000
    content = shown(h.Content(at=1, text="x" * size), detail)
    assert isinstance(content, h.Content)
    assert len(content.text) + content.cut == size
    for one in (
        content,
        shown(h.ToolResult(at=1, tool_use_id="t", output="é" * size), detail),
        shown(h.ToolUse(at=1, tool_use_id="t", tool_name="W", input={"a": "x" * size}), detail),
        shown(h.Complete(at=1, outcome="complete", result="x" * size), detail),
    ):
        assert one.cut > 0
        assert size_of(one) < 2 * SIZES[detail].answer


def test_results_may_be_longer_than_other_texts() -> None:
    sizes = SIZES["normal"]
    text = "x" * (sizes.words + 1)
    for one, most in (
        (h.Content(at=1, text=text), sizes.words),
        (h.Complete(at=1, outcome="complete", result=text), sizes.words),
        (h.ToolResult(at=1, tool_use_id="t", output=text), sizes.text),
        (h.Start(at=1, id="p", user_position=h.Place("s", None), prompt=text), sizes.text),
    ):
        assert shown(one, "normal").cut == len(text) - most
        assert shown(one, "normal", 10).cut == len(text) - 10
    assert shown(h.Content(at=1, text=text[1:]), "normal").cut == 0


def test_short_texts_are_whole() -> None:
    one = h.ToolUse(at=1, tool_use_id="t", tool_name="Bash", input={"command": "ls"})
    assert shown(one, "normal") is one


TEXTS = st.integers(0, 2_000).map(lambda size: "é" * size)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=tries(50, 500), deadline=None)
@given(
    given=st.dictionaries(TEXTS, VALUES, max_size=9),
    most=st.sampled_from([500, 4_000, 120_000]),
)
def test_an_input_of_any_shape_is_cut_to_size(given: dict[str, Any], most: int) -> None:
    cut, lost = cut_input(given, most)
    assert lost or cut == given
    assert len(msgspec.json.encode(cut)) <= max(most, 8_000)


def test_recordings_of_old_and_new_clis_show_the_same_sorts_of_things() -> None:
    old, new = ({*types(seen(recorded(version, "exit_code")))} for version in (OLD, NEW))
    assert {"start", "tool_use", "tool_result", "complete"} <= old & new


def test_state_of_a_day_stays_small() -> None:
    state = LoopbackState()
    seen(DAY, state)
    for number in itertools.islice(itertools.count(), 500):
        entry = stream.Wrote(launch="x", start=0, what="prompt", id=f"p{number}")
        body = msgspec.json.encode(entry)
        fold(state, stream.Entry(state.seq + 1, 1.0, stream.WROTE, body))
    assert len(msgspec.json.encode(state)) < 16_000
