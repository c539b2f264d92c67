"""What holds for any bytes at all. How many examples are tried: see `tests/conftest.py`."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from bridle.protocol import codec, control
from bridle.protocol.blocks import KnownBlock
from bridle.protocol.connection import Connection
from bridle.protocol.events import Event, MessageReceived, RequestReceived, RequestUnreadable
from bridle.protocol.framing import HEAD_SIZE, LineSplitter, Oversize
from bridle.protocol.hooks import KnownHookInput
from bridle.protocol.messages import KnownApiEvent, Result
from bridle.protocol.outbound import WithMentions
from bridle.protocol.permissions import Allow
from bridle.protocol.requests import Initialize, Interrupt
from bridle.protocol.system import KnownSystem

from .lines import (
    NONCE,
    answer_in,
    asked,
    assistant,
    can_use_tool,
    cancel,
    connect,
    control_request,
    failure,
    hook_callback,
    init,
    is_deny,
    line,
    message,
    pre_tool_use,
    refuse,
    result,
    success,
    system,
    text,
    tool_result,
    user,
    written,
)

LIMIT = 1500

GOOD = [
    line(value).rstrip()
    for value in (
        init(claude_code_version="2.1.325", tools=["Bash"]),
        assistant(text("héllo 😀")),
        assistant({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}),
        assistant(text(), {"type": "hologram"}),
        user([tool_result([text("x"), {"type": "hologram"}])], tool_use_result={"stdout": "x"}),
        message("stream_event", event={"type": "content_block_stop", "index": 0}),
        system("status", status=None, permissionMode="plan"),
        system("dream"),
        can_use_tool("a"),
        can_use_tool("b", permission_suggestions=[{"type": "setMode"}]),
        pre_tool_use("h"),
        pre_tool_use("i", tool_name=None),
        hook_callback("EclipseBegins", "j"),
        control_request("s", "sing"),
        cancel("a"),
        success(f"req_1_{NONCE}", {"still_queued": []}),
        failure(f"req_2_{NONCE}", "no", pending_permission_requests=[can_use_tool("c")]),
        success("a", {"behavior": "allow"}),
    )
]
BAD = [
    b"oops",
    b"\x00",
    b"  ",
    b'{"type":"user","message":{"content":"\xff"}}',
    rb'{"type":"user","message":{"content":"\ud800"}}',
    b"x" * 1600,
    line(pre_tool_use("long", tool_input="x" * 1600)).rstrip(),
    line(can_use_tool("torn"))[:-9],
]
ENDS = [b"\n", b"\n", b"\r\n", b"\n\n"]

LAST = line(result(result="the next good line"))

whole_lines = st.builds(
    lambda content, end: content + end, st.sampled_from(GOOD + BAD), st.sampled_from(ENDS)
)
streams = st.builds(
    lambda lines, tail: b"".join(lines) + tail,
    st.lists(whole_lines, max_size=5),
    st.sampled_from([b"", b"\r", *GOOD, *BAD]),
)
cuts = st.lists(st.integers(0, 6000), max_size=6)


def begin() -> Connection:
    connection = connect(line_limit=LIMIT)
    connection.request(Interrupt())
    connection.request(Initialize())
    return connection


def pieces_of(stream: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(bounds)]


def take(connection: Connection, *pieces: bytes) -> list[Event]:
    return [event for piece in pieces for event in connection.receive(piece)]


# --- cutting


@given(streams, cuts)
def test_a_stream_cut_at_any_bytes_gives_the_same_events(stream: bytes, places: list[int]) -> None:
    whole, cut = begin(), begin()
    expected = take(whole, stream) + whole.receive_eof()
    assert take(cut, *pieces_of(stream, places)) + cut.receive_eof() == expected
    assert cut.save() == whole.save()


@given(streams, cuts, st.integers(0, 6))
def test_a_takeover_between_any_two_pieces_gives_the_same_events(
    stream: bytes, places: list[int], at: int
) -> None:
    whole, first = begin(), begin()
    expected = take(whole, stream) + whole.receive_eof()
    pieces = pieces_of(stream, places)
    before = take(first, *pieces[:at])
    second = Connection.restore(first.save(), nonce=NONCE)
    assert before + take(second, *pieces[at:]) + second.receive_eof() == expected
    assert second.save() == whole.save()


def split_simply(stream: bytes, limit: int) -> list[bytes | Oversize]:
    """The whole of framing, for streams that fit into memory."""
    lines: list[bytes | Oversize] = []
    for content in stream.split(b"\n"):
        if len(content) > limit:
            lines.append(Oversize(len(content), content[:HEAD_SIZE]))
        elif content.removesuffix(b"\r"):
            lines.append(content.removesuffix(b"\r"))
    return lines


crowded = st.lists(st.sampled_from([b"\n", b"\r", b"a", b"\x00", b"\xff", b"bb" * 8]), max_size=30)


@given(crowded, st.lists(st.integers(0, 200), max_size=8), st.integers(1, 20))
def test_framing_in_pieces_is_the_same_as_splitting_the_whole(
    parts: list[bytes], places: list[int], limit: int
) -> None:
    stream = b"".join(parts)
    splitter = LineSplitter(limit)
    lines = [content for piece in pieces_of(stream, places) for content in splitter.feed(piece)]
    assert lines + splitter.finish() == split_simply(stream, limit)


# --- noise


def read_last(connection: Connection, noise: bytes) -> None:
    """Whatever came before, the good line after it must come out."""
    event = take(connection, noise, b"\n" + LAST)[-1]
    assert isinstance(event, MessageReceived)
    assert isinstance(event.message, Result)
    assert event.message.result == "the next good line"
    assert Connection.restore(connection.save(), nonce=NONCE).pending == connection.pending


@given(st.binary(max_size=80))
def test_random_bytes_never_raise_and_never_lose_the_next_good_line(noise: bytes) -> None:
    read_last(begin(), noise)


Mutation = tuple[int, int, bytes]

mutations: SearchStrategy[list[Mutation]] = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.integers(0, 3),
        st.one_of(
            st.binary(max_size=2),
            st.sampled_from([b'"', b"{", b"}", b"[", b"null", b"5", b"\\", rb"\ud800", b"\xe2"]),
        ),
    ),
    min_size=1,
    max_size=3,
)


def mutated(content: bytes, changes: list[Mutation]) -> bytes:
    for place, length, put in changes:
        at = place % (len(content) + 1)
        content = content[:at] + put + content[at + length :]
    return content


@given(st.sampled_from(GOOD), mutations)
def test_mutated_lines_never_raise_and_never_lose_the_next_good_line(
    content: bytes, changes: list[Mutation]
) -> None:
    read_last(begin(), mutated(content, changes))


@given(st.sampled_from([line(pre_tool_use()).rstrip()]), mutations)
def test_a_mutated_pre_tool_use_hook_is_delivered_or_denied_but_never_an_error(
    content: bytes, changes: list[Mutation]
) -> None:
    damaged = mutated(content, changes)
    # Where the damage makes it another kind of request, or another event, an error is right.
    if b'"hook_callback"' not in damaged or b'"PreToolUse"' not in damaged:
        return
    connection = begin()
    for event in connection.receive(damaged + b"\n"):
        if isinstance(event, RequestUnreadable):
            assert is_deny(refuse(connection, event).reply)
        if isinstance(event, RequestReceived):
            assert is_deny(connection.fail(event.request_id, "no"))


# --- objects of known names


def tags(union: Any) -> list[str]:
    return [str(kind.__struct_config__.tag) for kind in get_args(union)]


TYPES = [*tags(codec.PlainMessage), "system", *tags(codec.ControlLine)]
SUBTYPES = [*tags(KnownSystem), *tags(control.InboundRequest), "success", "error"]
FIELDS = sorted(
    {
        field
        for kind in (
            *get_args(codec.PlainMessage),
            *get_args(KnownSystem),
            *get_args(control.InboundRequest),
            *get_args(KnownBlock),
            control.ControlRequestLine,
            control.ControlSuccess,
            control.ControlFailure,
        )
        for field in kind.__struct_encode_fields__
    }
)
NAMES = [*tags(KnownBlock), *tags(KnownApiEvent), *tags(KnownHookInput), *SUBTYPES, "a", ""]

# Two levels by hand: `st.recursive` took twice as long for the same number of examples.
leaves = st.one_of(
    st.sampled_from([*NAMES, None, True, 5, -1, 0.5, 10**30, "\x00é"]), st.integers()
)
keys = st.sampled_from([*FIELDS, "hook_event_name"])
inner = st.one_of(
    leaves,
    st.lists(leaves, max_size=2),
    st.fixed_dictionaries({"type": st.sampled_from(NAMES), "content": leaves}),
    st.fixed_dictionaries({"hook_event_name": st.sampled_from(NAMES), "session_id": leaves}),
    st.fixed_dictionaries({"subtype": st.sampled_from(SUBTYPES), "request_id": leaves}),
)
values = st.one_of(inner, st.lists(inner, max_size=2), st.dictionaries(keys, inner, max_size=2))
objects = st.builds(
    lambda kind, subtype, fields: {**fields, "type": kind, "subtype": subtype},
    st.sampled_from(TYPES),
    st.sampled_from(SUBTYPES),
    st.dictionaries(keys, values, max_size=3),
)


@given(objects)
def test_objects_with_known_names_and_any_fields_never_raise(value: dict[str, Any]) -> None:
    read_last(begin(), line(value).rstrip())


HARMLESS = set(tags(KnownHookInput)) - {"PreToolUse"}

requests = st.builds(
    lambda subtype, body: control_request("r", subtype, **{**body, "subtype": subtype}),
    st.sampled_from([*tags(control.InboundRequest), "sing"]),
    st.dictionaries(
        st.sampled_from(["input", "callback_id", "tool_name", "message", "payload", "type"]),
        values,
        max_size=4,
    ),
)


@given(requests)
def test_a_request_with_any_fields_is_delivered_or_refused_but_never_dropped(
    value: dict[str, Any],
) -> None:
    connection = begin()
    (event,) = connection.receive(line(value))
    assert isinstance(event, RequestReceived | RequestUnreadable)
    assert event.request_id == "r"
    if isinstance(event, RequestUnreadable) and event.subtype == "hook_callback":
        told = value["request"].get("input")
        name = told.get("hook_event_name") if isinstance(told, dict) else None
        harmless = isinstance(name, str) and name in HARMLESS
        assert harmless or is_deny(refuse(connection, event).reply)


# --- our own words

scalars = st.one_of(
    st.sampled_from([None, True, False, "", "\u2028", '"', "\\"]),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
)
json_values = st.one_of(
    scalars,
    st.lists(scalars, max_size=2),
    st.dictionaries(st.text(max_size=2), scalars, max_size=2),
)


@given(st.dictionaries(st.text(max_size=4), json_values, max_size=2))
def test_allow_echoes_any_input_exactly(given_input: dict[str, Any]) -> None:
    connection = begin()
    asked(connection, can_use_tool(input=given_input))
    echoed = answer_in(connection.answer("ask-1", Allow()))["updatedInput"]
    assert json.dumps(echoed) == json.dumps(given_input)


@given(st.text(min_size=1, max_size=40))
def test_any_text_can_be_prompted_and_is_one_line(words: str) -> None:
    data = connect().prompt(WithMentions(words))
    assert written(data)["message"]["content"] == words
    assert not {"\n", "\r", "\u2028", "\u2029"} & set(data.decode()[:-1])
