"""Lines that are no JSON, or JSON with broken text: repaired where that is possible, else told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridle.protocol import messages, system
from bridle.protocol.blocks import TextBlock
from bridle.protocol.careful import Decoded, Malformed, UnreadableRequest, read_line
from bridle.protocol.control import CanUseTool, ControlRequestLine, HookCallback
from bridle.protocol.unknown import Unknown

from .lines import can_use_tool, line, pre_tool_use, user
from .lines import system as system_line

USER = b'{"type":"user","message":{"role":"user","content":"%s"}}'


def text_of(raw: bytes) -> tuple[str, bool]:
    reading = read_line(USER % raw)
    decoded, repaired = reading.decoded, reading.repaired
    assert isinstance(decoded, messages.User), decoded
    assert isinstance(decoded.message.content, str)
    return decoded.message.content, repaired


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (rb"a\ud800b", "a\ufffdb"),
        (rb"a\uDC00b", "a\ufffdb"),
        (rb"\ud83d", "\ufffd"),
        (rb"\ud800\ud800", "\ufffd\ufffd"),
        (rb"\udc00\ud800", "\ufffd\ufffd"),
        (rb"\ud800\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\ud83dx\ude00", "\ufffdx\ufffd"),
        (rb"\\\ud800", "\\\ufffd"),
        (rb"\n\ud800\"", '\n\ufffd"'),
    ],
)
def test_a_lone_surrogate_escape_becomes_the_replacement_character(raw: bytes, text: str) -> None:
    assert text_of(raw) == (text, True)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"a\xffb", "a\ufffdb"),
        (b"\xc3", "\ufffd"),
        (b"\xe2\x80", "\ufffd"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
        (rb"\ud83d\ude00" + b"\xff", "\U0001f600\ufffd"),
        (rb"\ud800" + b"\xff", "\ufffd\ufffd"),
    ],
)
def test_invalid_utf8_becomes_the_replacement_character(raw: bytes, text: str) -> None:
    assert text_of(raw) == (text, True)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (rb"\\ud800", r"\ud800"),
        (rb"\\\\ud800", r"\\ud800"),
        (rb"\ud83d\ude00", "\U0001f600"),
        (rb"\uD83D\uDE00", "\U0001f600"),
        ("\U0001f600\ufffd".encode(), "\U0001f600\ufffd"),
        (rb"\ufffd\ue000\ud7ff", "\ufffd\ue000\ud7ff"),
    ],
)
def test_good_text_is_left_alone(raw: bytes, text: str) -> None:
    assert text_of(raw) == (text, False)


def test_an_escaped_backslash_before_ud800_stays_while_a_real_one_beside_it_is_repaired() -> None:
    assert text_of(rb"\\ud800 \ud800") == (r"\ud800 " + "\ufffd", True)


def read_broken(value: Any, broken: bytes) -> Decoded:
    """Read a line with broken text in the place of each `BROKEN`; it must have been repaired."""
    reading = read_line(line(value).replace(b"BROKEN", broken))
    decoded, repaired = reading.decoded, reading.repaired
    assert repaired
    return decoded


BROKEN = pytest.mark.parametrize("broken", [rb"\ud83d", b"\xff"])


@BROKEN
def test_a_request_with_broken_text_can_be_answered(broken: bytes) -> None:
    decoded = read_broken(can_use_tool(input={"command": "echo BROKEN"}), broken)
    assert isinstance(decoded, ControlRequestLine)
    assert isinstance(decoded.request, CanUseTool)
    assert decoded.request.input == {"command": "echo \ufffd"}


@BROKEN
def test_a_system_line_with_broken_text_is_read(broken: bytes) -> None:
    decoded = read_broken(system_line("informational", content="cut BROKEN"), broken)
    assert isinstance(decoded, system.Informational)
    assert decoded.content == "cut \ufffd"


@BROKEN
def test_broken_text_after_an_unknown_block_costs_no_good_block(broken: bytes) -> None:
    content = [{"type": "hologram"}, {"type": "text", "text": "BROKEN"}]
    decoded = read_broken(user(content), broken)
    assert isinstance(decoded, messages.User)
    assert isinstance(decoded.message.content[0], Unknown)
    assert decoded.message.content[1] == TextBlock("\ufffd")


@BROKEN
def test_broken_text_in_an_unknown_line_leaves_raw_json_that_can_be_parsed(broken: bytes) -> None:
    decoded = read_broken({"type": "telepathy", "thought": "BROKEN"}, broken)
    assert isinstance(decoded, Unknown)
    assert json.loads(decoded.raw)["thought"] == "\ufffd"


@BROKEN
def test_broken_text_beside_an_unknown_hook_event_does_not_raise(broken: bytes) -> None:
    hook = {"input": {"hook_event_name": "EclipseBegins"}, "callback_id": "BROKEN"}
    request = {"subtype": "hook_callback", **hook}
    value = {"type": "control_request", "request_id": "r", "request": request}
    decoded = read_broken(value, broken)
    assert isinstance(decoded, ControlRequestLine)
    assert isinstance(decoded.request, HookCallback)
    assert decoded.request.callback_id == "\ufffd"


@BROKEN
def test_a_hook_whose_event_name_is_broken_is_not_taken_for_a_harmless_one(broken: bytes) -> None:
    value = pre_tool_use()
    value["request"]["input"]["hook_event_name"] = "PreToolUseBROKEN"
    decoded = read_broken(value, broken)
    assert isinstance(decoded, UnreadableRequest)
    assert decoded.may_be_pre_tool_use


# --- what is no JSON object

NOT_OBJECTS = [b"[]", b"[1,2]", b'"text"', b"5", b"null", b"true"]


@pytest.mark.parametrize("raw", NOT_OBJECTS)
def test_json_that_is_no_object_is_malformed(raw: bytes) -> None:
    reading = read_line(raw)
    decoded, repaired = reading.decoded, reading.repaired
    assert isinstance(decoded, Malformed)
    assert "object" in decoded.reason
    assert not repaired


NOT_JSON = [
    b"{",
    b"}",
    b"words",
    b'{"type":"keep_alive"',
    b'{"type":"keep_alive"} {"type":"keep_alive"}',
    b'{"type":"keep_alive",}',
    b"{'type':'keep_alive'}",
    b"\x00",
    b'{"type":"keep_\x00alive"}',
    b"\xef\xbb\xbf{}",
    b"\xff\xfe",
    rb'{"type":"\ud800"',
]


@pytest.mark.parametrize("raw", NOT_JSON)
def test_what_is_no_json_is_malformed_with_a_reason(raw: bytes) -> None:
    reading = read_line(raw)
    decoded, repaired = reading.decoded, reading.repaired
    assert isinstance(decoded, Malformed)
    assert decoded.reason
    assert not repaired


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_a_line_that_is_nested_too_deeply_is_malformed(opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    value = opening * 100_000 + b"1" + closing * 100_000
    decoded = read_line(b'{"type":"user","message":{"content":[]},"extra":' + value + b"}").decoded
    assert decoded == Malformed("nested too deeply")


def test_a_deeply_nested_input_that_python_can_hold_is_read() -> None:
    value = b"[" * 200 + b"]" * 200
    raw = line(can_use_tool(input={"a": "DEEP"})).replace(b'"DEEP"', value)
    decoded = read_line(raw).decoded
    assert isinstance(decoded, ControlRequestLine)


def test_numbers_too_large_for_python_do_not_raise() -> None:
    for number in (b"1" * 5000, b"1e999", b"-" + b"9" * 400):
        raw = line(can_use_tool(input={"a": "N"})).replace(b'"N"', number)
        decoded = read_line(raw).decoded
        assert isinstance(decoded, ControlRequestLine | UnreadableRequest)
