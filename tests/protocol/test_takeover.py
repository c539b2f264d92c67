"""Another controller goes on: saved state, and the requests that an initialize lists again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridle.errors import AlreadyAnswered, AlreadyWithdrawn, ConnectionEnded, InvalidState
from bridle.protocol.connection import SAVED_IDS, Connection
from bridle.protocol.events import (
    Event,
    Failure,
    LineIgnored,
    LineMalformed,
    MessageReceived,
    RequestReceived,
    ResponseReceived,
    StreamEnded,
    Success,
)
from bridle.protocol.permissions import Allow, Deny
from bridle.protocol.requests import Initialize, Interrupt, McpSetServers, SetModel
from bridle.protocol.unknown import Unknown

from .lines import (
    NONCE,
    answer_in,
    asked,
    assistant,
    can_use_tool,
    cancel,
    connect,
    control_request,
    elicitation,
    failure,
    hook_callback,
    init,
    is_deny,
    line,
    only,
    pre_tool_use,
    refuse,
    result,
    success,
    text,
    user_dialog,
)


def restored(connection: Connection) -> Connection:
    return Connection.restore(connection.save(), nonce="second")


# --- pending requests in an answer to initialize


def initialize(connection: Connection, answer: dict[str, Any]) -> list[Event]:
    request_id, _ = connection.request(Initialize())
    answer["response"]["request_id"] = request_id
    return connection.receive(line(answer))


LISTS = [
    ("pending_permission_requests", can_use_tool("p-1")),
    ("pending_user_dialog_requests", user_dialog("p-1")),
    ("pending_elicitation_requests", elicitation("p-1")),
]


@pytest.mark.parametrize("answer", [success, failure])
@pytest.mark.parametrize(("name", "request_"), LISTS)
def test_what_still_waits_comes_out_after_the_answer(name: str, request_: Any, answer: Any) -> None:
    connection = connect()
    response, request = initialize(connection, answer("", **{name: [request_]}))
    assert isinstance(response, ResponseReceived)
    assert isinstance(response.outcome, Success if answer is success else Failure)
    assert isinstance(request, RequestReceived)
    assert json.loads(request.raw) == request_
    assert dict(connection.pending) == {"p-1": request}


def test_all_three_lists_come_out_in_one_answer() -> None:
    lists = {name: [{**request, "request_id": name}] for name, request in LISTS}
    connection = connect()
    initialize(connection, success("", {}, **lists))
    assert list(connection.pending) == [name for name, _ in LISTS]


def test_what_is_known_already_is_not_delivered_twice() -> None:
    connection = connect()
    for name in ("pending", "answered", "withdrawn"):
        asked(connection, can_use_tool(name))
    connection.answer("answered", Deny("no"))
    connection.receive(line(cancel("withdrawn")))
    listed = [can_use_tool(name) for name in ("pending", "answered", "withdrawn", "new")]
    _, *events = initialize(connection, failure("", pending_permission_requests=listed))
    kinds = [type(event) for event in events]
    assert kinds == [LineIgnored, LineIgnored, LineIgnored, RequestReceived]
    assert list(connection.pending) == ["pending", "new"]
    assert connection.counters.duplicate_requests == 3


def test_what_still_waits_comes_out_of_a_late_answer_too() -> None:
    connection = connect()
    request_id, _ = connection.request(Initialize())
    connection.cancel(request_id)
    answer = success(request_id, {}, pending_permission_requests=[can_use_tool()])
    late, request = connection.receive(line(answer))
    assert isinstance(late, LineIgnored)
    assert isinstance(request, RequestReceived)


def test_an_unreadable_request_in_the_list_is_refused() -> None:
    listed = [control_request("p-1", "sing"), pre_tool_use("p-2", tool_name=5)]
    connection = connect()
    _, sing, hook = initialize(connection, success("", {}, pending_permission_requests=listed))
    assert b'"subtype":"error"' in refuse(connection, sing).reply
    assert is_deny(refuse(connection, hook).reply)


def test_broken_text_in_the_list_is_repaired() -> None:
    connection = connect()
    request_id, _ = connection.request(Initialize())
    listed = [can_use_tool(input={"command": "BROKEN"})]
    answer = line(success(request_id, {}, pending_permission_requests=listed))
    _, request = connection.receive(answer.replace(b"BROKEN", b"\xff"))
    assert isinstance(request, RequestReceived)
    assert request.repaired
    assert connection.counters.repaired == 1


@pytest.mark.parametrize("strange", [result(), cancel("r"), success("req_9"), {}, {"type": "new"}])
def test_what_is_no_request_in_the_list_is_unknown_and_does_nothing(strange: Any) -> None:
    connection = connect()
    _, event = initialize(connection, success("", {}, pending_permission_requests=[strange]))
    assert isinstance(event, MessageReceived)
    assert isinstance(event.message, Unknown)
    assert json.loads(event.message.raw) == strange
    assert connection.counters.unknown == 1


@pytest.mark.parametrize("strange", [5, "words", None, []])
def test_what_is_no_object_in_the_list_is_malformed(strange: Any) -> None:
    _, event = initialize(connect(), success("", {}, pending_permission_requests=[strange]))
    assert isinstance(event, LineMalformed)


def test_responses_nested_in_such_lists_do_not_pile_up() -> None:
    inner = success("x")
    for _ in range(150):
        inner = success("x", pending_permission_requests=[inner])
    assert len(connect().receive(line(inner))) == 2


# --- saved and restored


def busy() -> Connection:
    """A connection with something in every corner of its state."""
    connection = connect(version="2.1.325", line_limit=5000)
    answered, _ = connection.request(Initialize())
    cancelled, _ = connection.request(Interrupt())
    connection.request(McpSetServers({"s": {"args": ["a", 1, None]}}))
    connection.receive(line(success(answered, {"pid": 7, "commands": [{"name": "x"}]})))
    connection.cancel(cancelled)
    for name in ("pending", "answered", "withdrawn"):
        asked(connection, can_use_tool(name, input={"command": name}))
    asked(connection, pre_tool_use("hook"))
    asked(connection, hook_callback("EclipseBegins", "unknown"))
    connection.answer("answered", Deny("no"))
    connection.receive(line(cancel("withdrawn")) + b"oops\n")
    connection.receive(line(can_use_tool("repaired")).replace(b"ls", rb"\ud800"))
    return connection


def test_a_restored_connection_has_all_that_the_first_one_had() -> None:
    first = busy()
    second = restored(first)
    assert second.pending == first.pending
    assert list(second.pending) == list(first.pending)
    assert second.asked == first.asked
    assert second.capabilities == first.capabilities
    assert second.counters == first.counters
    assert second.save() == first.save()


def test_saving_changes_nothing() -> None:
    connection = busy()
    assert connection.save() == connection.save()


def test_a_restored_connection_numbers_on_with_its_own_nonce() -> None:
    first = connect()
    first.request(Interrupt())
    second = restored(first)
    assert second.request(Interrupt())[0] == "req_2_second"


def test_a_restored_connection_answers_what_the_first_one_was_asked() -> None:
    second = restored(busy())
    assert answer_in(second.answer("pending", Allow()))["updatedInput"] == {"command": "pending"}
    assert is_deny(second.fail("hook", "no"))
    assert is_deny(second.fail("unknown", "no"))
    with pytest.raises(AlreadyAnswered):
        second.answer("answered", Allow())
    with pytest.raises(AlreadyWithdrawn):
        second.answer("withdrawn", Allow())


def test_a_restored_connection_gets_the_answers_to_what_the_first_one_asked() -> None:
    first = connect()
    request_id, _ = first.request(SetModel("opus"))
    second = restored(first)
    event = only(second.receive(line(success(request_id, {}))), ResponseReceived)
    assert event.request == SetModel("opus")


def test_a_restored_connection_counts_in_its_own_counters() -> None:
    second = restored(connect())
    asked(second, can_use_tool())
    second.receive(line(can_use_tool()) + line(success("nobody")) + b"oops\n")
    assert second.counters.duplicate_requests == 1
    assert second.counters.strays == 1
    assert second.counters.malformed == 1


def test_a_connection_that_has_ended_stays_ended() -> None:
    first = connect()
    asked(first, can_use_tool())
    first.receive_eof()
    second = restored(first)
    assert second.receive_eof() == []
    with pytest.raises(ConnectionEnded):
        second.answer("ask-1", Allow())


CONVERSATION = b"".join(
    [
        line(init(claude_code_version="2.1.325")),
        line(can_use_tool("a")),
        line(success(f"req_1_{NONCE}", {"still_queued": []})),
        line(success(f"req_1_{NONCE}", {})),
        b"x" * 1500 + b"\r\n",
        line(assistant(text("é" * 5), {"type": "hologram"})),
        line(can_use_tool("b")).replace(b"ls", rb"\ud800"),
        line(cancel("a")),
        b"oops\n\n",
        line(pre_tool_use("h")),
        line(can_use_tool("b")),
        line(success("b", {})),
        line(result()).rstrip(),
    ]
)


def converse(cut: int | None) -> tuple[list[Event], Connection]:
    connection = connect(line_limit=1200)
    connection.request(Interrupt())
    connection.request(SetModel("opus"))
    events = connection.receive(CONVERSATION[:cut])
    if cut is not None:
        connection = Connection.restore(connection.save(), nonce=NONCE)
        events += connection.receive(CONVERSATION[cut:])
    return events + connection.receive_eof(), connection


def test_a_takeover_at_any_byte_gives_the_same_later_events() -> None:
    events, unbroken = converse(None)
    assert isinstance(events[-1], StreamEnded)
    for cut in range(len(CONVERSATION) + 1):
        others, connection = converse(cut)
        assert others == events, cut
        assert connection.save() == unbroken.save(), cut


# --- what can't be restored


def changed(**members: Any) -> bytes:
    connection = connect()
    asked(connection, can_use_tool())
    return json.dumps({**json.loads(connection.save()), **members}).encode()


GARBAGE = {
    "nothing": b"",
    "words": b"oops",
    "another shape": b"[]",
    "no members": b"{}",
    "half": changed()[:-20],
    "invalid UTF-8": changed(asked={"X": {"subtype": "set_model", "model": "Y"}}).replace(
        b'"Y"', b'"\xff"'
    ),
    "too deep": b"[" * 100_000,
    "an older format": changed(format="bridle-connection-0"),
    "a newer format": changed(format="bridle-connection-2"),
    "no format": changed(format=None),
    "a wrong member": changed(next_number="one"),
    "an unknown request of ours": changed(asked={"r": {"subtype": "sing"}}),
    "an unknown fate": changed(fates={"r": "eaten"}),
    "no limit": changed(line_limit=0),
    "pending that is no base64": changed(pending=["!"]),
    "pending that is no JSON": changed(pending=["b29wcw=="]),
    "pending that is no request": changed(pending=["e30="]),
    "pending that is blank": changed(pending=["IA=="]),
}


@pytest.mark.parametrize("what", GARBAGE)
def test_what_is_not_a_saved_connection_is_refused(what: str) -> None:
    with pytest.raises(InvalidState):
        Connection.restore(GARBAGE[what], nonce="n")


def test_the_same_state_without_the_change_is_restored() -> None:
    assert "ask-1" in Connection.restore(changed(), nonce="n").pending


# --- the past of another controller, line by line


def test_what_another_has_answered_is_no_longer_pending_and_can_not_be_answered_again() -> None:
    first, second = connect(), connect()
    for connection in (first, second):
        connection.receive(line(can_use_tool("1")) + line(can_use_tool("2")))
    found = second.recall(first.answer("1", Allow()))
    assert isinstance(found, RequestReceived)
    assert found.request_id == "1"
    assert list(second.pending) == ["2"]
    with pytest.raises(AlreadyAnswered):
        second.answer("1", Deny("no"))
    only(second.receive(line(can_use_tool("1"))), LineIgnored)


def test_what_another_has_failed_is_settled_as_well() -> None:
    first, second = connect(), connect()
    for connection in (first, second):
        connection.receive(line(can_use_tool("1")))
    second.recall(first.fail("1", "no"))
    assert not second.pending


def test_an_answer_to_what_is_not_pending_is_recalled_as_nothing() -> None:
    assert connect().recall(line(success("9", {}))) is None


def test_an_answer_to_what_another_has_asked_is_understood() -> None:
    first, second = connect(), connect()
    request_id, asking = first.request(SetModel("opus"))
    assert isinstance(second.recall(asking), SetModel)
    only(second.receive(line(success(request_id, {}))), ResponseReceived)


def test_a_request_that_another_has_cancelled_is_answered_too_late() -> None:
    first, second = connect(version="2.1.325"), connect()
    request_id, asking = first.request(SetModel("opus"))
    second.recall(asking)
    cancelling = first.cancel(request_id)
    assert second.recall(cancelling) is None
    assert second.recall(cancelling) is None
    only(second.receive(line(success(request_id, {}))), LineIgnored)
    assert second.counters.late_responses == 1


def test_a_prompt_of_another_is_recalled_as_nothing() -> None:
    assert connect().recall(connect().prompt("go", uuid="u")) is None


def test_what_no_controller_of_ours_would_write_is_not_recalled() -> None:
    with pytest.raises(InvalidState, match="not a line that Bridle writes"):
        connect().recall(b'{"type":"nonsense"}\n')


def test_reading_goes_on_at_the_byte_that_was_reached() -> None:
    connection = connect()
    connection.receive(line(assistant(text())) + b'{"half')
    connection.go_on_at(1000)
    whole = line(assistant(text()))
    only(connection.receive(whole), MessageReceived)
    assert connection.consumed == 1000 + len(whole)


def test_of_many_settled_requests_the_latest_are_known_to_the_next_controller() -> None:
    first = connect()
    for number in range(SAVED_IDS + 10):
        asked(first, can_use_tool(f"ask-{number}"))
        first.answer(f"ask-{number}", Deny("no"))
    with pytest.raises(AlreadyAnswered):
        restored(first).answer(f"ask-{SAVED_IDS + 9}", Allow())
