"""What hangs on a line is not lost for a detail in it, and what was dropped is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridle.errors import InvalidAnswer
from bridle.protocol import Allow, MessageReceived, RequestReceived, RequestUnreadable, Unknown
from bridle.protocol.content import session_id_of, suggestions, unknown_parts
from bridle.protocol.control import CanUseTool, HookCallback
from bridle.protocol.events import Counters, RequestWithdrawn
from bridle.protocol.hooks import PermissionRequest, PreToolUse
from bridle.protocol.messages import Result
from bridle.protocol.repair import repair

from .lines import (
    answer_in,
    asked,
    assistant,
    can_use_tool,
    cancel,
    connect,
    control_request,
    hook_callback,
    line,
    only,
    pre_tool_use,
    result,
    text,
)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_turns", None),
        ("modelUsage", None),
        ("permission_denials", None),
        ("total_cost_usd", "free"),
        ("origin", "task"),
        ("modelUsage", {"m": {"contextWindow": 1.5}}),
    ],
)
def test_a_result_ends_its_turn_whatever_an_optional_field_holds(field: str, value: Any) -> None:
    connection = connect()
    event = only(connection.receive(line(result(**{field: value}))), MessageReceived)
    assert isinstance(event.message, Result)
    assert event.message.subtype == "success"
    (dropped,) = event.dropped
    assert dropped.startswith(f"{field}: Expected")
    assert connection.counters == Counters(dropped=1)


def test_a_result_without_what_it_must_have_is_unknown() -> None:
    event = only(connect().receive(line(result(is_error="perhaps"))), MessageReceived)
    assert isinstance(event.message, Unknown)
    assert event.message.type == "result/success"


@pytest.mark.parametrize(
    ("field", "value"),
    [("title", 5), ("requires_user_interaction", None), ("mcp_server", "x"), ("agent_id", [])],
)
def test_a_permission_is_asked_whatever_an_optional_field_holds(field: str, value: Any) -> None:
    connection = connect()
    event = asked(connection, can_use_tool(**{field: value}))
    assert isinstance(event.request, CanUseTool)
    assert event.dropped[0].startswith(f"{field}: Expected")
    assert answer_in(connection.answer(event.request_id, Allow()))["behavior"] == "allow"


def test_a_hook_is_called_whatever_an_optional_field_holds() -> None:
    event = asked(connect(), pre_tool_use(cwd=None, prompt_id=7))
    assert isinstance(event.request, HookCallback)
    assert isinstance(event.request.input, PreToolUse)
    assert [dropped.split(":")[0] for dropped in event.dropped] == ["cwd", "prompt_id"]


def test_what_an_approver_does_to_a_request_does_not_change_what_an_allow_echoes() -> None:
    connection = connect()
    event = asked(connection, can_use_tool(input={"command": "ls"}))
    assert isinstance(event.request, CanUseTool)
    event.request.input["command"] = "rm -rf /"
    answer = answer_in(connection.answer(event.request_id, Allow()))
    assert answer["updatedInput"] == {"command": "ls"}


def test_an_allow_echoes_broken_text_as_it_was_shown() -> None:
    connection = connect()
    raw = line(can_use_tool(input={"command": "HALF"})).replace(b"HALF", b"echo \\ud83d")
    event = only(connection.receive(raw), RequestReceived)
    answer = answer_in(connection.answer(event.request_id, Allow()))
    assert answer["updatedInput"] == {"command": "echo \ufffd"}


def test_a_request_that_can_not_be_read_can_only_be_failed() -> None:
    connection = connect()
    event = only(connection.receive(line(control_request("r", "sing"))), RequestUnreadable)
    with pytest.raises(InvalidAnswer, match=r"can't be read .*, only failed"):
        connection.answer(event.request_id, Allow())
    assert connection.pending == {"r": event}
    withdrawn = only(connection.receive(line(cancel("r"))), RequestWithdrawn)
    assert withdrawn.request is None


@pytest.mark.parametrize("error", [None, ValueError("no"), "\ud800"])
def test_anything_can_be_the_reason_of_a_failure(error: object) -> None:
    connection = connect()
    event = asked(connection, can_use_tool())
    assert json.loads(connection.fail(event.request_id, error))["response"]["subtype"] == "error"


def test_unknown_parts_are_found_and_counted_wherever_they_are() -> None:
    connection = connect()
    strange = {"type": "strange"}
    inside = {"type": "tool_result", "tool_use_id": "t", "content": [strange, text("x")]}
    event = only(connection.receive(line(assistant(text("y"), strange, inside))), MessageReceived)
    assert [part.type for part in unknown_parts(event.message)] == ["strange", "strange"]
    connection.receive(line({"type": "never_heard_of"}))
    connection.receive(line(hook_callback("NeverHeardOf")))
    delta = {"type": "stream_event", "event": {"type": "never_heard_of"}}
    connection.receive(line(delta))
    assert connection.counters == Counters(unknown=5)


def test_an_unknown_message_gives_no_session_id() -> None:
    assert session_id_of(Unknown("x", b"{}", "no")) is None


def test_the_suggestions_of_a_permission_hook_are_read_like_those_of_a_request() -> None:
    told = {"tool_name": "Bash", "tool_input": {}, "permission_suggestions": [{"type": "new"}]}
    event = asked(connect(), hook_callback("PermissionRequest", **told))
    assert isinstance(event.request, HookCallback)
    assert isinstance(event.request.input, PermissionRequest)
    assert [type(suggestion) for suggestion in suggestions(event.request.input)] == [Unknown]


def test_bytes_of_any_kind_are_taken_and_kept_as_bytes() -> None:
    for data in (bytearray(line(result())), memoryview(line(result()))):
        (event,) = connect().receive(data)  # type: ignore[arg-type]
        assert isinstance(event, MessageReceived)
        assert type(event.raw) is bytes


def test_the_lines_that_were_read_are_counted_in_bytes_of_the_stream() -> None:
    connection = connect(line_limit=3000)
    whole = [line(result()), b"\r\n", b"x" * 5000 + b"\n", line(assistant(text("hi")))]
    stream = b"".join(whole) + b'{"half'
    ends = [sum(map(len, whole[:count])) for count in range(len(whole) + 1)]
    for at in range(len(stream)):
        connection.receive(stream[at : at + 1])
        assert connection.consumed == max(end for end in ends if end <= at + 1)
    later = type(connection).restore(connection.save(), nonce="later")
    later.receive(b'":1}\n')
    assert later.consumed == len(stream) + 5
    connection.receive_eof()
    assert connection.consumed == len(stream)


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        (r"\ud800", r"\ufffd"),
        (r"\\ud800", r"\\ud800"),
        (r"\\\ud800", r"\\\ufffd"),
        (r"\ud83d\ude00", r"\ud83d\ude00"),
        (r"\\ud83d\ude00", r"\\ud83d\ufffd"),
        (r"\ud83d\ud83d\ude00", r"\ufffd\ud83d\ude00"),
        (r"\udc00\ud800", r"\ufffd\ufffd"),
    ],
)
def test_halves_of_characters_are_replaced_and_escaped_backslashes_are_not(
    broken: str, whole: str
) -> None:
    assert repair(broken.encode()) == whole.encode()
    json.loads(f'"{repair(broken.encode()).decode()}"').encode()


def test_one_half_character_in_a_long_line_of_escapes_does_not_stall() -> None:
    # Looked at from each backslash to the next half, it would not come to an end.
    assert repair(b"\\n" * 2_000_000 + b"\\ud800").endswith(b"\\ufffd")
