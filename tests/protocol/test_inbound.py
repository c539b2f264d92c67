"""The CLI's requests to us: delivered once, answered once, never after they were withdrawn."""

from __future__ import annotations

from typing import Any

import pytest

from bridle.errors import AlreadyAnswered, AlreadyWithdrawn, InvalidAnswer, NotPending
from bridle.protocol.connection import Connection
from bridle.protocol.control import (
    Answer,
    CanUseTool,
    DialogCancelled,
    DialogCompleted,
    ElicitationAnswer,
    ElicitationRequest,
    HookCallback,
    McpAnswer,
    McpMessage,
    UserDialogRequest,
)
from bridle.protocol.events import LineIgnored, RequestReceived, RequestUnreadable, RequestWithdrawn
from bridle.protocol.hook_outputs import AsyncHookOutput, HookOutput, pre_tool_use
from bridle.protocol.permissions import Allow, Deny
from bridle.protocol.remembered import REMEMBERED_IDS

from .lines import (
    Refusal,
    answer_in,
    asked,
    can_use_tool,
    cancel,
    connect,
    control_request,
    elicitation,
    error_in,
    hook_callback,
    is_deny,
    line,
    mcp_message,
    only,
    refuse,
    user_dialog,
    written,
)
from .lines import pre_tool_use as pre_tool_use_line

REQUESTS: list[tuple[dict[str, Any], type]] = [
    (can_use_tool(), CanUseTool),
    (pre_tool_use_line(), HookCallback),
    (mcp_message(), McpMessage),
    (elicitation(), ElicitationRequest),
    (user_dialog(), UserDialogRequest),
]


def ask_and(connection: Connection, request: dict[str, Any], answer: Answer) -> Any:
    event = asked(connection, request)
    return answer_in(connection.answer(event.request_id, answer))


# --- delivery


@pytest.mark.parametrize(("request_", "kind"), REQUESTS)
def test_a_request_is_delivered_and_waits(request_: dict[str, Any], kind: type) -> None:
    connection = connect()
    event = asked(connection, request_)
    assert isinstance(event.request, kind)
    assert event.raw == line(request_).rstrip()
    assert dict(connection.pending) == {request_["request_id"]: event}


@pytest.mark.parametrize(("request_", "kind"), REQUESTS)
def test_a_request_that_comes_twice_is_delivered_once(request_: Any, kind: type) -> None:
    connection = connect()
    asked(connection, request_)
    only(connection.receive(line(request_)), LineIgnored)
    connection.fail(request_["request_id"], "no")
    ignored = only(connection.receive(line(request_)), LineIgnored)
    assert request_["request_id"] in ignored.reason
    assert ignored.raw == line(request_).rstrip()
    assert not connection.pending
    assert connection.counters.duplicate_requests == 2


def test_a_request_that_comes_again_after_its_withdrawal_is_not_delivered() -> None:
    connection = connect()
    asked(connection, can_use_tool())
    connection.receive(line(cancel("ask-1")))
    only(connection.receive(line(can_use_tool())), LineIgnored)
    assert not connection.pending


def test_requests_of_different_ids_wait_side_by_side_and_are_answered_in_any_order() -> None:
    connection = connect()
    for name in ("a", "b", "c"):
        asked(connection, can_use_tool(name, input={"command": name}))
    for name in ("b", "c", "a"):
        answer = answer_in(connection.answer(name, Allow()))
        assert answer["updatedInput"] == {"command": name}
    assert not connection.pending


def test_what_is_pending_can_be_looked_at_but_not_changed() -> None:
    connection = connect()
    asked(connection, can_use_tool())
    with pytest.raises(TypeError):
        del connection.pending["ask-1"]  # type: ignore[attr-defined]


# --- answers


def test_an_mcp_message_is_answered_with_json_rpc() -> None:
    rpc = {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}
    assert ask_and(connect(), mcp_message(), McpAnswer(rpc)) == {"mcp_response": rpc}


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_an_elicitation_is_answered_with_an_action(action: Any) -> None:
    assert ask_and(connect(), elicitation(), ElicitationAnswer(action)) == {"action": action}


def test_an_accepted_elicitation_may_carry_content() -> None:
    answer = ElicitationAnswer("accept", {"name": "x"})
    assert ask_and(connect(), elicitation(), answer)["content"] == {"name": "x"}


def test_a_dialog_is_completed_or_cancelled() -> None:
    completed = ask_and(connect(), user_dialog(), DialogCompleted([1]))
    assert completed == {"behavior": "completed", "result": [1]}
    assert ask_and(connect(), user_dialog(), DialogCancelled()) == {"behavior": "cancelled"}


ANSWERS: list[tuple[Answer, type]] = [
    (Allow(), CanUseTool),
    (Deny("no"), CanUseTool),
    (HookOutput(), HookCallback),
    (AsyncHookOutput(), HookCallback),
    (McpAnswer({}), McpMessage),
    (ElicitationAnswer("cancel"), ElicitationRequest),
    (DialogCompleted(1), UserDialogRequest),
    (DialogCancelled(), UserDialogRequest),
]
MISFITS = [
    (request, answer) for request, kind in REQUESTS for answer, fits in ANSWERS if fits is not kind
]


@pytest.mark.parametrize(("request_", "answer"), MISFITS)
def test_an_answer_of_the_wrong_kind_is_refused_and_the_request_waits_on(
    request_: Any, answer: Answer
) -> None:
    connection = connect()
    event = asked(connection, request_)
    with pytest.raises(InvalidAnswer, match=f"a {type(answer).__name__} where"):
        connection.answer(event.request_id, answer)
    assert event.request_id in connection.pending
    assert connection.fail(event.request_id, "no")


@pytest.mark.parametrize("answer", [None, {}, {"behavior": "allow"}, True, "allow"])
def test_an_answer_that_is_no_answer_is_refused(answer: Any) -> None:
    connection = connect()
    asked(connection, can_use_tool())
    with pytest.raises(InvalidAnswer):
        connection.answer("ask-1", answer)
    assert "ask-1" in connection.pending


@pytest.mark.parametrize("answer", [McpAnswer([]), McpAnswer({"a": object()})])  # type: ignore[arg-type]
def test_json_rpc_that_can_not_be_written_is_refused(answer: McpAnswer) -> None:
    connection = connect()
    asked(connection, mcp_message())
    with pytest.raises(InvalidAnswer):
        connection.answer("mcp-1", answer)
    assert "mcp-1" in connection.pending


# --- once only


def test_a_second_answer_is_refused() -> None:
    connection = connect()
    ask_and(connection, can_use_tool(), Deny("no"))
    with pytest.raises(AlreadyAnswered) as caught:
        connection.answer("ask-1", Allow())
    assert caught.value.request_id == "ask-1"
    with pytest.raises(AlreadyAnswered):
        connection.fail("ask-1", "no")


def test_after_a_failure_no_answer_is_written() -> None:
    connection = connect()
    asked(connection, can_use_tool())
    connection.fail("ask-1", "no")
    with pytest.raises(AlreadyAnswered):
        connection.answer("ask-1", Allow())


def test_a_withdrawn_request_is_told_and_never_answered() -> None:
    connection = connect()
    request = asked(connection, can_use_tool()).request
    withdrawn = only(connection.receive(line(cancel("ask-1"))), RequestWithdrawn)
    assert (withdrawn.request_id, withdrawn.request) == ("ask-1", request)
    assert not connection.pending
    with pytest.raises(AlreadyWithdrawn):
        connection.answer("ask-1", Allow())
    with pytest.raises(AlreadyWithdrawn):
        connection.fail("ask-1", "no")


def test_an_id_that_was_never_asked_can_not_be_answered() -> None:
    with pytest.raises(NotPending) as caught:
        connect().answer("nobody", Allow())
    assert type(caught.value) is NotPending
    with pytest.raises(NotPending):
        connect().fail("nobody", "no")


def test_a_withdrawal_of_what_is_not_pending_is_ignored_and_counted() -> None:
    connection = connect()
    ask_and(connection, can_use_tool(), Deny("no"))
    for request_id in ("ask-1", "nobody"):
        ignored = only(connection.receive(line(cancel(request_id))), LineIgnored)
        assert request_id in ignored.reason
    assert connection.counters.strays == 2
    with pytest.raises(AlreadyAnswered):
        connection.answer("ask-1", Allow())


# --- failing


def test_a_failed_request_is_answered_with_an_error() -> None:
    connection = connect()
    asked(connection, can_use_tool())
    assert written(connection.fail("ask-1", "no approver")) == {
        "type": "control_response",
        "response": {"subtype": "error", "request_id": "ask-1", "error": "no approver"},
    }
    assert not connection.pending


def test_a_failed_pre_tool_use_hook_is_answered_with_a_deny() -> None:
    connection = connect()
    asked(connection, pre_tool_use_line())
    data = connection.fail("hook-1", "the approver died")
    assert is_deny(data)
    specific = answer_in(data)["hookSpecificOutput"]
    assert specific["permissionDecisionReason"] == "the approver died"


def test_a_failed_hook_of_an_unknown_event_is_denied_in_case_a_tool_hangs_on_it() -> None:
    connection = connect()
    asked(connection, hook_callback("BeforeToolUse"))
    assert is_deny(connection.fail("hook-1", "what is this?"))


def test_a_failed_hook_of_another_event_is_answered_with_an_error() -> None:
    connection = connect()
    asked(connection, hook_callback("Stop"))
    assert error_in(connection.fail("hook-1", "no")) == "no"


@pytest.mark.parametrize("request_", [can_use_tool("r"), pre_tool_use_line("r")])
def test_an_error_whose_text_can_not_be_written_is_still_told(request_: Any) -> None:
    connection = connect()
    asked(connection, request_)
    assert b"bad ? text" in connection.fail("r", "bad \ud800 text")


# --- refusing


def refused(connection: Connection, request: dict[str, Any]) -> Refusal:
    event = only(connection.receive(line(request)), RequestUnreadable)
    assert event.request_id == request["request_id"]
    assert event.raw == line(request).rstrip()
    assert connection.counters.unreadable_requests == 1
    return refuse(connection, event)


def test_an_unknown_subtype_is_refused_by_an_error_that_names_it() -> None:
    event = refused(connect(), control_request("r-1", "sing_a_song", tempo=5))
    assert event.event.subtype == "sing_a_song"
    assert "sing_a_song" in error_in(event.reply)
    assert written(event.reply)["response"]["request_id"] == "r-1"


def test_a_known_request_that_can_not_be_read_is_refused_by_an_error() -> None:
    event = refused(connect(), can_use_tool(input="ls"))
    assert "can_use_tool" in error_in(event.reply)
    assert "input" in event.event.reason


def test_an_unreadable_pre_tool_use_hook_is_denied_and_never_answered_with_an_error() -> None:
    event = refused(connect(), pre_tool_use_line(tool_name=None))
    assert is_deny(event.reply)
    assert "tool_name" in answer_in(event.reply)["hookSpecificOutput"]["permissionDecisionReason"]


@pytest.mark.parametrize("event_name", [None, 5, "", ["PreToolUse"]])
def test_a_hook_that_may_be_pre_tool_use_is_denied(event_name: Any) -> None:
    request = pre_tool_use_line()
    request["request"]["input"]["hook_event_name"] = event_name
    assert is_deny(refused(connect(), request).reply)


@pytest.mark.parametrize("input_", [None, [], "PreToolUse", 5])
def test_a_hook_whose_input_is_no_object_is_denied(input_: Any) -> None:
    request = control_request("h", "hook_callback", callback_id="c", input=input_)
    assert is_deny(refused(connect(), request).reply)


@pytest.mark.parametrize("body", [None, {}, [], {"subtype": 5}, {"subtype": ""}])
def test_a_request_of_no_readable_kind_may_be_a_hook_and_is_denied(body: Any) -> None:
    event = refused(connect(), {"type": "control_request", "request_id": "r", "request": body})
    assert is_deny(event.reply)


def test_an_unreadable_hook_of_another_event_is_refused_by_an_error() -> None:
    assert "hook_callback" in error_in(refused(connect(), hook_callback("Setup")).reply)


def test_a_refused_request_is_settled() -> None:
    connection = connect()
    refused(connection, control_request("r-1", "sing"))
    with pytest.raises(AlreadyAnswered):
        connection.answer("r-1", Allow())
    only(connection.receive(line(control_request("r-1", "sing"))), LineIgnored)
    only(connection.receive(line(cancel("r-1"))), LineIgnored)
    assert connection.counters.unreadable_requests == 1


def test_an_unreadable_copy_of_a_pending_request_does_not_settle_it() -> None:
    connection = connect()
    asked(connection, can_use_tool())
    only(connection.receive(line(can_use_tool(input=None))), LineIgnored)
    assert answer_in(connection.answer("ask-1", Allow()))["behavior"] == "allow"


# --- memory


def test_the_memory_of_settled_requests_is_bounded() -> None:
    connection = connect()
    for number in range(REMEMBERED_IDS + 1):
        asked(connection, can_use_tool(f"r-{number}"))
        connection.answer(f"r-{number}", Deny("no"))
    with pytest.raises(AlreadyAnswered):
        connection.answer("r-1", Allow())
    with pytest.raises(NotPending) as caught:
        connection.answer("r-0", Allow())
    assert type(caught.value) is NotPending


def test_what_is_pending_is_never_forgotten() -> None:
    connection = connect()
    asked(connection, can_use_tool("first"))
    for number in range(REMEMBERED_IDS + 10):
        asked(connection, hook_callback("Stop", f"r-{number}"))
        connection.receive(line(cancel(f"r-{number}")))
    assert isinstance(connection.pending["first"], RequestReceived)
    assert ask_and(connection, pre_tool_use_line("last"), pre_tool_use("deny"))
    assert answer_in(connection.answer("first", Allow()))["behavior"] == "allow"
