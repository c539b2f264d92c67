from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from bridle.protocol import blocks, messages, system
from bridle.protocol.careful import (
    Decoded,
    Malformed,
    UnreadableRequest,
    read_block,
    read_line,
    read_system,
)
from bridle.protocol.codec import check, encode_line
from bridle.protocol.content import suggestions
from bridle.protocol.control import CanUseTool, ControlRequestLine, HookCallback
from bridle.protocol.hooks import Stop
from bridle.protocol.permissions import AddRules, Deny
from bridle.protocol.unknown import Unknown

from .lines import (
    assistant,
    can_use_tool,
    hook_callback,
    init,
    line,
    message,
    pre_tool_use,
    result,
    text,
    tool_result,
    user,
)
from .lines import system as system_line


def read(value: Any) -> Decoded:
    reading = read_line(line(value))
    decoded, repaired = reading.decoded, reading.repaired
    assert not repaired
    return decoded


def read_unknown(value: Any) -> Unknown:
    decoded = read(value)
    assert isinstance(decoded, Unknown), decoded
    assert json.loads(decoded.raw) == value
    return decoded


def content_of(decoded: Decoded) -> list[blocks.Block]:
    assert isinstance(decoded, messages.Assistant | messages.User), decoded
    content = decoded.message.content
    assert isinstance(content, list)
    return content


# --- what is known

KNOWN: list[tuple[dict[str, Any], type]] = [
    (assistant(text()), messages.Assistant),
    (user("hello"), messages.User),
    (result(), messages.Result),
    (result(subtype="error_of_a_new_kind", is_error=True), messages.Result),
    (init(), system.Init),
    (system_line("status", status=None, permissionMode="plan"), system.Status),
    (message("keep_alive"), messages.KeepAlive),
    (message("stream_event", event={"type": "message_stop"}), messages.StreamEvent),
    (message("conversation_reset", new_conversation_id="n"), messages.ConversationReset),
]


@pytest.mark.parametrize(("value", "kind"), KNOWN)
def test_a_known_line_becomes_its_struct(value: dict[str, Any], kind: type) -> None:
    assert type(read(value)) is kind


@pytest.mark.parametrize(("value", "kind"), KNOWN)
def test_the_type_may_stand_anywhere_in_the_object(value: dict[str, Any], kind: type) -> None:
    assert type(read(dict(reversed(value.items())))) is kind


@pytest.mark.parametrize(("value", "kind"), KNOWN)
def test_fields_that_nobody_knows_do_not_matter(value: dict[str, Any], kind: type) -> None:
    assert type(read({"new": {"a": [1]}, **value, "newer": None})) is kind


# --- what is unknown


def test_an_unknown_type_is_kept_raw_with_a_reason() -> None:
    unknown = read_unknown(message("telepathy", thought="?"))
    assert unknown.type == "telepathy"
    assert "telepathy" in unknown.reason


def test_an_unknown_type_with_a_subtype_is_named_by_both() -> None:
    assert read_unknown(message("telepathy", subtype="deep")).type == "telepathy/deep"


def test_an_unknown_system_subtype_is_kept_raw_with_a_reason() -> None:
    unknown = read_unknown(system_line("dream", sheep=7))
    assert unknown.type == "system/dream"
    assert "dream" in unknown.reason


@pytest.mark.parametrize("value", [{}, {"type": 5}, {"type": None}, {"kind": "user"}])
def test_an_object_without_a_readable_type_is_unknown_and_nameless(value: Any) -> None:
    assert read_unknown(value).type == ""


@pytest.mark.parametrize(
    ("value", "name", "field"),
    [
        (result(is_error="perhaps"), "result/success", "is_error"),
        (message("keep_alive", session_id=5), "keep_alive", "session_id"),
        (user("x", isReplay="yes"), "user", "isReplay"),
        (message("user"), "user", "message"),
        (message("assistant", message={"id": "m", "content": []}), "assistant", "model"),
        (system_line("init", cwd="/w", model="m", permissionMode=3), "system/init", "permission"),
        (system_line("status", status=[]), "system/status", "status"),
        (message("system"), "system", "subtype"),
        (message("stream_event", event={"type": "ping"}, ttft_ms="x"), "stream_event", "ttft_ms"),
        ({"type": "control_cancel_request"}, "control_cancel_request", "request_id"),
        ({"type": "control_response", "response": {}}, "control_response", "subtype"),
    ],
)
def test_a_known_type_with_a_wrong_field_is_unknown_and_says_which(
    value: dict[str, Any], name: str, field: str
) -> None:
    unknown = read_unknown(value)
    assert unknown.type == name
    assert field in unknown.reason


def test_an_unknown_stream_event_keeps_the_line_around_it() -> None:
    event = {"type": "content_block_sparkle", "index": 0}
    decoded = read(message("stream_event", event=event, ttft_ms=5))
    assert isinstance(decoded, messages.StreamEvent)
    assert decoded.ttft_ms == 5
    assert isinstance(decoded.event, Unknown)
    assert decoded.event.type == "content_block_sparkle"
    assert json.loads(decoded.event.raw) == event
    assert "content_block_sparkle" in decoded.event.reason


@pytest.mark.parametrize(
    ("event", "name"),
    [
        ({"type": "content_block_delta", "index": "x"}, "content_block_delta"),
        (
            {"type": "content_block_delta", "index": 0, "delta": {"type": "new"}},
            "content_block_delta",
        ),
        (
            {"type": "content_block_start", "index": 0, "content_block": {"type": "new"}},
            "content_block_start",
        ),
        ("not an object", ""),
        (None, ""),
    ],
)
def test_a_stream_event_that_no_type_fits_is_unknown_by_itself(event: Any, name: str) -> None:
    decoded = read(message("stream_event", event=event))
    assert isinstance(decoded, messages.StreamEvent)
    assert isinstance(decoded.event, Unknown)
    assert decoded.event.type == name


# --- content blocks


def test_an_unknown_block_leaves_the_good_ones_around_it() -> None:
    strange = {"type": "hologram", "depth": 3}
    before, between, after = content_of(read(assistant(text("a"), strange, text("b"))))
    assert before == blocks.TextBlock("a")
    assert after == blocks.TextBlock("b")
    assert isinstance(between, Unknown)
    assert between.type == "hologram"
    assert json.loads(between.raw) == strange
    assert "hologram" in between.reason


def test_a_known_block_with_a_wrong_field_is_unknown_by_itself() -> None:
    wrong = {"type": "tool_use", "id": "t", "name": "Bash", "input": "ls"}
    first, second = content_of(read(assistant(wrong, text())))
    assert isinstance(first, Unknown)
    assert "input" in first.reason
    assert second == blocks.TextBlock("hello")


@pytest.mark.parametrize("strange", [5, None, "words", [], {"no": "type"}])
def test_a_block_that_is_no_block_is_unknown_and_nameless(strange: Any) -> None:
    first, second = content_of(read(user([strange, text()])))
    assert isinstance(first, Unknown)
    assert first.type == ""
    assert json.loads(first.raw) == strange
    assert second == blocks.TextBlock("hello")


def test_an_unknown_block_inside_a_tool_result_leaves_the_good_ones_around_it() -> None:
    strange = {"type": "hologram"}
    (found,) = content_of(read(user([tool_result([text("a"), strange, text("b")])])))
    assert isinstance(found, blocks.ToolResultBlock)
    assert found.tool_use_id == "toolu_1"
    assert isinstance(found.content, list)
    before, between, after = found.content
    assert (before, after) == (blocks.TextBlock("a"), blocks.TextBlock("b"))
    assert isinstance(between, Unknown)
    assert between.type == "hologram"


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "tool_result", "content": [{"type": "hologram"}]},
        {"type": "tool_result", "content": "x", "tool_use_id": None},
    ],
)
def test_a_tool_result_that_can_not_be_read_is_unknown_with_all_it_holds(wrong: Any) -> None:
    (found,) = content_of(read(user([wrong])))
    assert isinstance(found, Unknown)
    assert found.type == "tool_result"
    assert json.loads(found.raw) == wrong


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (None, ""),
        (5, "5"),
        ({"a": ["b"]}, '{"a":["b"]}'),
        (["x", {"type": "text", "text": "y"}], None),
    ],
)
def test_a_tool_has_ended_whatever_its_result_looks_like(content: Any, wanted: str | None) -> None:
    (found,) = content_of(read(user([tool_result(content, is_error="perhaps")])))
    assert isinstance(found, blocks.ToolResultBlock)
    assert (found.tool_use_id, found.is_error) == (tool_result("")["tool_use_id"], None)
    if wanted is None:
        assert isinstance(found.content, list)
        assert isinstance(found.content[0], Unknown)
        assert found.content[1] == blocks.TextBlock("y")
    else:
        assert isinstance(found.content, str)
        assert found.content.replace(" ", "") == wanted


def test_a_message_with_two_faults_is_unknown_as_a_whole() -> None:
    value = assistant({"type": "hologram"})
    value["message"]["id"] = 5
    assert read_unknown(value).type == "assistant"


def test_content_that_is_neither_text_nor_a_list_makes_the_message_unknown() -> None:
    assert read_unknown(user({"type": "text"})).type == "user"


def test_read_block_reads_one_block_by_itself() -> None:
    assert read_block(b'{"type":"text","text":"a"}') == blocks.TextBlock("a")
    assert isinstance(read_block(b"{"), Unknown)


# --- requests and hooks


def test_an_unknown_request_keeps_its_id_and_subtype_so_that_it_can_be_refused() -> None:
    decoded = read({"type": "control_request", "request_id": "r", "request": {"subtype": "sing"}})
    assert isinstance(decoded, UnreadableRequest)
    assert (decoded.request_id, decoded.subtype) == ("r", "sing")
    assert not decoded.may_be_pre_tool_use


def test_a_known_request_with_a_wrong_field_says_which() -> None:
    decoded = read(can_use_tool(input="ls"))
    assert isinstance(decoded, UnreadableRequest)
    assert decoded.subtype == "can_use_tool"
    assert "input" in decoded.reason


@pytest.mark.parametrize("request_id", [None, 5, ""])
def test_a_request_whose_id_can_not_be_read_is_unknown(request_id: Any) -> None:
    value = {"type": "control_request", "request_id": request_id, "request": {"subtype": "sing"}}
    assert read_unknown(value).type == "control_request"


def test_a_hook_of_an_unknown_event_arrives_with_unknown_input() -> None:
    decoded = read(hook_callback("EclipseBegins", darkness=1))
    assert isinstance(decoded, ControlRequestLine)
    assert isinstance(decoded.request, HookCallback)
    assert decoded.request.callback_id == "cb-1"
    told = decoded.request.input
    assert isinstance(told, Unknown)
    assert told.type == "EclipseBegins"
    assert json.loads(told.raw)["darkness"] == 1
    assert "EclipseBegins" in told.reason


def test_a_hook_may_name_its_event_after_everything_else() -> None:
    value = hook_callback("Stop", stop_hook_active=True)
    value["request"]["input"] = dict(reversed(value["request"]["input"].items()))
    decoded = read(value)
    assert isinstance(decoded, ControlRequestLine)
    assert isinstance(decoded.request, HookCallback)
    assert isinstance(decoded.request.input, Stop)


def without(value: dict[str, Any], *path: str) -> dict[str, Any]:
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return value


@pytest.mark.parametrize(
    "value",
    [
        pre_tool_use(tool_name=5),
        without(pre_tool_use(), "request", "input", "session_id"),
        without(pre_tool_use(), "request", "callback_id"),
        without(pre_tool_use(), "request", "input"),
        without(pre_tool_use(), "request", "input", "hook_event_name"),
        hook_callback("PreToolUse"),
        without(hook_callback("EclipseBegins"), "request", "callback_id"),
        without(pre_tool_use(), "request", "subtype"),
        without(pre_tool_use(), "request"),
    ],
)
def test_a_request_that_is_or_may_be_an_unreadable_pre_tool_use_is_marked(value: Any) -> None:
    decoded = read(value)
    assert isinstance(decoded, UnreadableRequest)
    assert decoded.may_be_pre_tool_use


def test_an_unreadable_hook_of_another_event_is_not_marked() -> None:
    decoded = read(hook_callback("Setup", trigger=5))
    assert isinstance(decoded, UnreadableRequest)
    assert not decoded.may_be_pre_tool_use


# --- permission suggestions


def suggested(raw: Any) -> list[Any]:
    return suggestions(
        CanUseTool(tool_name="Bash", input={}, permission_suggestions=msgspec.Raw(raw))
    )


def test_suggestions_that_are_absent_are_none() -> None:
    assert suggestions(CanUseTool(tool_name="Bash", input={})) == []


def test_suggestions_that_no_type_fits_are_unknown_one_by_one() -> None:
    good = b'{"type":"addRules","rules":[],"behavior":"allow","destination":"session"}'
    update, strange, wrong = suggested(b"[" + good + b',{"type":"new"},{"type":"setMode"}]')
    assert update == AddRules([], "allow", "session")
    assert (strange.type, strange.raw) == ("new", b'{"type":"new"}')
    assert wrong.type == "setMode"
    assert "mode" in wrong.reason


@pytest.mark.parametrize("raw", [b"null", b'"all"', b"{}"])
def test_suggestions_that_are_no_list_are_unknown_as_a_whole(raw: bytes) -> None:
    (unknown,) = suggested(raw)
    assert isinstance(unknown, Unknown)
    assert (unknown.type, unknown.raw) == ("", raw)


# --- our own words


@pytest.mark.parametrize("separator", ["\u2028", "\u2029"])
def test_line_separators_of_javascript_are_escaped_on_the_way_out(separator: str) -> None:
    written = encode_line({"text": f"a{separator}b"})
    assert written == b'{"text":"a\\u%sb"}\n' % f"{ord(separator):04x}".encode()
    assert json.loads(written) == {"text": f"a{separator}b"}


def test_characters_like_those_separators_are_left_alone() -> None:
    assert encode_line("\u2026\u2027") == '"\u2026\u2027"\n'.encode()


def test_newlines_in_text_are_escaped_so_that_a_line_stays_one() -> None:
    assert encode_line("a\nb\r\n") == b'"a\\nb\\r\\n"\n'


def test_a_newline_in_raw_json_would_tear_the_line_and_is_refused() -> None:
    with pytest.raises(ValueError, match="newline"):
        encode_line({"a": msgspec.Raw(b"[1,\n2]")})


def test_check_refuses_what_its_own_type_would_not_decode() -> None:
    assert check(Deny("no")) == Deny("no")
    with pytest.raises(msgspec.ValidationError):
        check(Deny(5))  # type: ignore[arg-type]


def test_read_system_tells_malformed_from_unknown() -> None:
    assert isinstance(read_system(b'{"type":"system","subtype":"new"}'), Unknown)
    assert isinstance(read_system(b'{"type":"system","subtype":"status"'), Malformed)
