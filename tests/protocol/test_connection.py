from __future__ import annotations

from typing import Any

import pytest

from bridle.errors import ConnectionEnded, InvalidRequest
from bridle.protocol.blocks import Base64Source, ImageBlock, TextBlock
from bridle.protocol.connection import Connection
from bridle.protocol.events import (
    Counters,
    LineMalformed,
    LineOversized,
    MessageReceived,
    RequestReceived,
    StreamEnded,
    Unanswered,
)
from bridle.protocol.messages import Assistant, KeepAlive, Result
from bridle.protocol.permissions import Allow
from bridle.protocol.requests import Interrupt, SetModel
from bridle.protocol.system import Informational, Init
from bridle.protocol.unknown import Unknown

from .lines import (
    Refusal,
    asked,
    assistant,
    can_use_tool,
    connect,
    error_in,
    hook_callback,
    init,
    is_deny,
    line,
    message,
    only,
    pre_tool_use,
    refuse,
    result,
    system,
    text,
    written,
)

# --- messages


@pytest.mark.parametrize(
    ("value", "kind"),
    [(assistant(text()), Assistant), (init(), Init), (result(), Result)],
)
def test_a_message_comes_out_with_its_raw_line(value: dict[str, Any], kind: type) -> None:
    event = only(connect().receive(line(value)), MessageReceived)
    assert isinstance(event.message, kind)
    assert event.raw == line(value).rstrip()
    assert not event.repaired


def test_lines_come_out_in_their_order_whatever_they_are() -> None:
    stream = line(init()) + b"oops\n" + line(can_use_tool()) + line(message("new")) + line(result())
    kinds = [type(event) for event in connect().receive(stream)]
    assert kinds == [
        MessageReceived,
        LineMalformed,
        RequestReceived,
        MessageReceived,
        MessageReceived,
    ]


def test_a_half_line_waits_for_its_other_half() -> None:
    connection = connect()
    data = line(result())
    assert connection.receive(data[:20]) == []
    only(connection.receive(data[20:]), MessageReceived)


@pytest.mark.parametrize("value", [message("telepathy"), system("dream"), init(cwd=5)])
def test_what_is_unknown_is_shown_and_counted(value: dict[str, Any]) -> None:
    connection = connect()
    event = only(connection.receive(line(value)), MessageReceived)
    assert isinstance(event.message, Unknown)
    assert event.raw == line(value).rstrip()
    assert connection.counters == Counters(unknown=1)


def test_a_malformed_line_is_shown_and_counted_and_the_stream_goes_on() -> None:
    connection = connect()
    malformed, good = connection.receive(b"{oops\n" + line(result()))
    assert isinstance(malformed, LineMalformed)
    assert (malformed.raw, bool(malformed.reason)) == (b"{oops", True)
    assert isinstance(good, MessageReceived)
    assert connection.counters == Counters(malformed=1)


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b"   \n", b"\t \r\n", b"\x0c\n"])
def test_blank_lines_mean_nothing(blank: bytes) -> None:
    connection = connect()
    assert connection.receive(blank) == []
    assert connection.counters == Counters()


@pytest.mark.parametrize("broken", [rb"\ud83d", b"\xff"])
@pytest.mark.parametrize(
    "value",
    [assistant(text("BROKEN")), system("informational", content="BROKEN"), result(result="BROKEN")],
)
def test_repaired_text_is_flagged_and_counted_and_its_raw_line_kept(
    value: dict[str, Any], broken: bytes
) -> None:
    connection = connect()
    data = line(value).replace(b"BROKEN", broken)
    event = only(connection.receive(data), MessageReceived)
    assert isinstance(event.message, Assistant | Informational | Result)
    assert event.repaired
    assert event.raw == data.rstrip()
    assert connection.counters == Counters(repaired=1)


def test_a_repaired_request_is_flagged_and_its_repaired_input_is_echoed() -> None:
    connection = connect()
    data = line(can_use_tool(input={"command": "BROKEN"})).replace(b"BROKEN", rb"\ud83d")
    assert only(connection.receive(data), RequestReceived).repaired
    answer = written(connection.answer("ask-1", Allow()))["response"]["response"]
    assert answer["updatedInput"] == {"command": "\ufffd"}


def test_a_keep_alive_is_a_message_like_any_other() -> None:
    event = only(connect().receive(b'{"type":"keep_alive"}\n'), MessageReceived)
    assert isinstance(event.message, KeepAlive)


# --- lines that are too long, and requests in lines that can't be read


def test_an_oversize_line_is_told_and_counted_and_the_stream_goes_on() -> None:
    connection = connect(line_limit=2000)
    long = line(assistant(text("x" * 5000)))
    oversized, good = connection.receive(long + line(result()))
    assert isinstance(oversized, LineOversized)
    assert (oversized.length, oversized.raw) == (len(long) - 1, long[:1024])
    assert isinstance(good, MessageReceived)
    assert connection.counters == Counters(oversized=1)


def refusal(connection: Connection, data: bytes) -> Refusal:
    """The refusal that follows upon the line that could not be read, by a later controller too."""
    unread, refused = connection.receive(data)
    assert isinstance(unread, LineOversized | LineMalformed)
    later = Connection.restore(connection.save(), nonce="later")
    refusals = [refuse(connection, refused), refuse(later, *later.pending.values())]
    assert refusals[0].reply == refusals[1].reply
    return refusals[0]


def oversized(request: dict[str, Any]) -> Refusal:
    connection = connect(line_limit=2000)
    refused = refusal(connection, line(request))
    assert connection.counters == Counters(oversized=1, unreadable_requests=1)
    return refused


def malformed(data: bytes) -> Refusal:
    connection = connect()
    refused = refusal(connection, data)
    assert connection.counters == Counters(malformed=1, unreadable_requests=1)
    return refused


LONG = {"command": "x" * 5000}


def test_an_oversize_request_is_refused_by_an_error_that_names_it() -> None:
    refused = oversized(can_use_tool(input=LONG))
    assert (refused.event.request_id, refused.event.subtype) == ("ask-1", "can_use_tool")
    assert "can_use_tool" in error_in(refused.reply)


def test_an_oversize_hook_is_denied_because_it_may_be_pre_tool_use() -> None:
    assert is_deny(oversized(pre_tool_use(tool_input=LONG)).reply)
    assert is_deny(oversized(hook_callback("Stop", last_assistant_message="x" * 5000)).reply)


def test_an_oversize_request_whose_kind_can_not_be_seen_is_denied() -> None:
    request = can_use_tool()
    request["request"] = {"padding": LONG, **request["request"]}
    assert is_deny(oversized(request).reply)


def test_a_malformed_request_is_refused_where_its_id_can_be_seen() -> None:
    torn = line(can_use_tool())[:-10] + b"\n"
    assert "can_use_tool" in error_in(malformed(torn).reply)
    assert is_deny(malformed(line(pre_tool_use())[:-10] + b"\n").reply)
    assert is_deny(malformed(b'{"type":"control_request","request_id":"r"\n').reply)


def test_a_request_that_is_nested_too_deeply_is_refused() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    request = line(can_use_tool(input={"a": "DEEP"})).replace(b'"DEEP"', deep)
    assert error_in(malformed(request).reply)
    hook = line(pre_tool_use(tool_input="DEEP")).replace(b'"DEEP"', deep)
    assert is_deny(malformed(hook).reply)


@pytest.mark.parametrize(
    "data",
    [
        b'{"type":"control_request","request_id":"r\n',
        b'{"type":"control_request","request_id":\n',
        b'{"type":"control_response","request_id":"r"\n',
        b'oops {"type":"control_request","request_id":"r"\n',
        rb'{"type":"user","x":"{\"type\":\"control_request\",\"request_id\":\"r\""' + b"\n",
    ],
)
def test_a_line_that_shows_no_request_id_of_its_own_is_only_told(data: bytes) -> None:
    connection = connect()
    only(connection.receive(data), LineMalformed)
    assert connection.counters == Counters(malformed=1)


def test_an_unreadable_copy_of_a_pending_request_leaves_it_pending() -> None:
    connection = connect()
    asked(connection, can_use_tool())
    connection.receive(line(can_use_tool())[:-10] + b"\n")
    assert "ask-1" in connection.pending
    assert connection.counters == Counters(malformed=1, duplicate_requests=1)


# --- prompts


def test_a_prompt_of_text_is_a_user_message() -> None:
    assert written(connect().prompt("hello")) == {
        "type": "user",
        "session_id": "",
        "message": {"role": "user", "content": "hello"},
        "parent_tool_use_id": None,
    }


def test_a_prompt_may_carry_blocks_and_options() -> None:
    image = ImageBlock(Base64Source("QUJD", "image/png"))
    data = connect().prompt(
        [TextBlock("look"), image], uuid="u-1", priority="next", should_query=False
    )
    assert written(data) == {
        "type": "user",
        "session_id": "",
        "uuid": "u-1",
        "priority": "next",
        "shouldQuery": False,
        "parent_tool_use_id": None,
        "message": {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"},
                },
            ],
        },
    }


def test_newlines_and_separators_in_a_prompt_never_tear_its_line() -> None:
    words = "a\nb\r\nc\u2028d\u2029e\x00f\x85"
    data = connect().prompt(words)
    assert written(data)["message"]["content"] == words
    assert b"\r" not in data


WRONG_PROMPTS: list[tuple[Any, dict[str, Any]]] = [
    ("", {}),
    ([], {}),
    (5, {}),
    ([5], {}),
    ([Unknown("new", b"{}", "new")], {}),
    ("\ud800", {}),
    ("hello", {"priority": "soon"}),
    ("hello", {"uuid": 5}),
    (b"hello", {}),
    ({"text": "hello"}, {}),
]


@pytest.mark.parametrize(("content", "options"), WRONG_PROMPTS)
def test_a_wrong_prompt_is_refused_before_it_is_written(
    content: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        connect().prompt(content, **options)
    assert caught.value.subtype == "user"


# --- the end


def test_at_the_end_what_is_open_in_both_directions_is_handed_back() -> None:
    connection = connect()
    first, _ = connection.request(Interrupt())
    second, _ = connection.request(SetModel("opus"))
    pending = [asked(connection, can_use_tool("a")), asked(connection, pre_tool_use("b"))]
    ended = only(connection.receive_eof(), StreamEnded)
    assert ended.unanswered == [
        Unanswered(first, Interrupt()),
        Unanswered(second, SetModel("opus")),
    ]
    assert ended.unsettled == pending


def test_the_end_of_a_quiet_stream_hands_nothing_back() -> None:
    assert only(connect().receive_eof(), StreamEnded) == StreamEnded([], [])


def test_a_last_line_without_a_newline_is_read_at_the_end() -> None:
    connection = connect()
    connection.receive(line(can_use_tool()).rstrip())
    request, ended = connection.receive_eof()
    assert isinstance(request, RequestReceived)
    assert ended == StreamEnded([], [request])


def test_a_torn_last_line_is_malformed() -> None:
    connection = connect()
    connection.receive(b'{"type":"resu')
    assert [type(event) for event in connection.receive_eof()] == [LineMalformed, StreamEnded]


def test_the_end_is_told_once() -> None:
    connection = connect()
    asked(connection, can_use_tool())
    assert connection.receive_eof()
    assert connection.receive_eof() == []


def each_intent(connection: Connection, request_id: str) -> dict[str, Any]:
    return {
        "receive": lambda: connection.receive(b"\n"),
        "answer": lambda: connection.answer("ask-1", Allow()),
        "fail": lambda: connection.fail("ask-1", "no"),
        "request": lambda: connection.request(Interrupt()),
        "cancel": lambda: connection.cancel(request_id),
        "prompt": lambda: connection.prompt("hello"),
    }


@pytest.mark.parametrize("intent", each_intent(connect(), ""))
def test_after_the_end_nothing_can_be_done_any_more(intent: str) -> None:
    connection = connect()
    request_id, _ = connection.request(Interrupt())
    asked(connection, can_use_tool())
    assert not connection.is_ended
    connection.receive_eof()
    assert connection.is_ended
    with pytest.raises(ConnectionEnded, match="after the end"):
        each_intent(connection, request_id)[intent]()
