"""Our requests to the CLI: numbered, matched with answers; what answers nothing is ignored."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bridle.errors import ControlFailed, NotPending
from bridle.protocol.answers import (
    ANSWER_OF,
    AgentInfo,
    Done,
    Initialized,
    Interrupted,
    ModeSet,
    SkillsReloaded,
    SlashCommand,
)
from bridle.protocol.blocks import TextBlock
from bridle.protocol.connection import Connection
from bridle.protocol.events import Failure, LineIgnored, MessageReceived, ResponseReceived, Success
from bridle.protocol.outbound import WithMentions, prompt_line
from bridle.protocol.permissions import Deny
from bridle.protocol.remembered import REMEMBERED_IDS
from bridle.protocol.requests import (
    Initialize,
    Interrupt,
    McpSetServers,
    OutboundRequest,
    ReloadSkills,
    SetModel,
    SetPermissionMode,
    StopTask,
)
from bridle.protocol.unknown import Unknown

from .lines import NONCE, asked, can_use_tool, connect, failure, line, only, success, written


def respond(connection: Connection, value: dict[str, Any]) -> ResponseReceived:
    return only(connection.receive(line(value)), ResponseReceived)


def ignored(connection: Connection, value: dict[str, Any]) -> LineIgnored:
    event = only(connection.receive(line(value)), LineIgnored)
    assert event.raw == line(value).rstrip()
    return event


def answer_of(request: OutboundRequest, response: Any) -> Any:
    connection = connect()
    request_id, _ = connection.request(request)
    outcome = respond(connection, success(request_id, response)).outcome
    assert isinstance(outcome, Success)
    return outcome.answer


# --- asking


def test_request_ids_are_numbered_and_carry_the_nonce() -> None:
    connection = connect()
    ids = [connection.request(Interrupt())[0] for _ in range(3)]
    assert ids == [f"req_1_{NONCE}", f"req_2_{NONCE}", f"req_3_{NONCE}"]


def test_another_nonce_gives_other_ids() -> None:
    assert Connection(nonce="a").request(Interrupt())[0] == "req_1_a"
    assert Connection(nonce="b").request(Interrupt())[0] == "req_1_b"


def test_what_was_asked_waits_until_it_is_answered() -> None:
    connection = connect()
    request_id, _ = connection.request(SetModel("opus"))
    assert dict(connection.asked) == {request_id: SetModel("opus")}
    event = respond(connection, success(request_id, {}))
    assert (event.request_id, event.request) == (request_id, SetModel("opus"))
    assert not connection.asked


def test_what_was_asked_is_kept_as_it_was_written_whatever_the_caller_does_with_it() -> None:
    connection = connect()
    request = SetModel("opus")
    request_id, _ = connection.request(request)
    request.model = ""
    assert connection.asked[request_id] == SetModel("opus")
    assert Connection.restore(connection.save(), nonce="n").asked == connection.asked


def test_answers_find_their_requests_in_any_order() -> None:
    connection = connect()
    model, _ = connection.request(SetModel("opus"))
    mode, _ = connection.request(SetPermissionMode("plan"))
    assert respond(connection, success(mode, {"mode": "plan"})).request == SetPermissionMode("plan")
    assert respond(connection, success(model, {})).request == SetModel("opus")


# --- answers


def test_an_answer_is_read_as_its_request_promises() -> None:
    assert answer_of(Interrupt(), {"still_queued": ["u"]}) == Interrupted(["u"])
    assert answer_of(SetPermissionMode("plan"), {"mode": "plan"}) == ModeSet("plan")
    assert answer_of(StopTask("t"), {"whatever": 1}) == Done()


@pytest.mark.parametrize("kind", ANSWER_OF.values())
def test_fields_that_nobody_knows_do_not_spoil_an_answer(kind: type) -> None:
    request = next(asking for asking, answer in ANSWER_OF.items() if answer is kind)
    required = {"cancelled": True, "version": "1", "text": "x"}
    connection = connect(version="2.1.325")
    request_id, _ = connection.request(make(request))
    event = respond(connection, success(request_id, {**required, "new": 1} | clean(kind)))
    assert isinstance(event.outcome, Success)
    assert type(event.outcome.answer) is kind


def clean(kind: type) -> dict[str, Any]:
    # An interrupt's `cancelled` is a list, that of a message a word.
    return {"cancelled": []} if kind is Interrupted else {}


def make(kind: type[OutboundRequest]) -> OutboundRequest:
    fields = {"mode": "plan", "servers": {}, "description": "d"}
    names = ("user_message_id", "task_id", "message_uuid", *fields)
    given = {name: fields.get(name, "x") for name in names if name in kind.__struct_fields__}
    return kind(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("response", [None, {}])
def test_an_answer_without_words_is_empty(response: Any) -> None:
    assert answer_of(Interrupt(), response) == Interrupted()


@pytest.mark.parametrize("response", [[], "done", 5, {"still_queued": "all"}])
def test_an_answer_of_another_shape_is_unknown_and_still_settles(response: Any) -> None:
    answer = answer_of(Interrupt(), response)
    assert isinstance(answer, Unknown)
    assert answer.type == "interrupt"
    assert answer.reason


def test_an_answer_of_null_says_no_more_than_no_answer() -> None:
    connection = connect()
    request_id, _ = connection.request(Interrupt())
    raw = line(success(request_id, 0)).replace(b'"response": 0', b'"response": null')
    event = only(connection.receive(raw), ResponseReceived)
    assert event.outcome == Success(Interrupted())
    assert event.answer() == Interrupted()


def test_a_refusal_is_raised_where_the_answer_is_asked_for() -> None:
    connection = connect()
    request_id, _ = connection.request(SetModel("x"))
    event = respond(connection, failure(request_id, "no such model", error_code="unknown_model"))
    with pytest.raises(
        ControlFailed, match=r"set_model: no such model \(unknown_model\)"
    ) as caught:
        event.answer()
    assert (caught.value.request_id, caught.value.code) == (request_id, "unknown_model")


def test_an_answer_to_initialize_is_read_as_far_as_it_can_be() -> None:
    """A user may have written a list: `argument-hint: [file]`."""
    commands = [
        {"name": "a", "description": None, "argumentHint": ["file"]},
        {"name": "b", "description": "B", "argumentHint": 5, "aliases": None},
        {"description": "no name"},
        "none",
        {"name": "c", "description": "C", "argumentHint": "<x>", "aliases": ["d"]},
    ]
    said = {
        "commands": commands,
        "models": None,
        "agents": [{"name": "x", "model": 3, "description": "X"}],
        "pid": "x",
        "capabilities": ["y"],
        "claude_code_version": "9.9.9",
    }
    answer = answer_of(Initialize(), said)
    assert answer == Initialized(
        commands=[
            SlashCommand("a"),
            SlashCommand("b", "B"),
            SlashCommand("c", "C", "<x>", ["d"]),
        ],
        agents=[AgentInfo("x", "X")],
        capabilities=["y"],
        claude_code_version="9.9.9",
    )
    commands_only = answer_of(ReloadSkills(), {"skills": commands})
    assert isinstance(commands_only, SkillsReloaded)
    assert [one.name for one in commands_only.skills] == ["a", "b", "c"]


@pytest.mark.parametrize("said", [[], "x", 5])
def test_an_answer_to_initialize_that_is_none_teaches_nothing(said: Any) -> None:
    connection = connect()
    request_id, _ = connection.request(Initialize())
    respond(connection, success(request_id, said))
    assert connection.capabilities.version is None


def test_a_refusal_carries_its_words_and_its_code() -> None:
    connection = connect()
    request_id, _ = connection.request(SetPermissionMode("bypassPermissions"))
    event = respond(connection, failure(request_id, "no", error_code="bypass_not_launched"))
    assert event.outcome == Failure("no", "bypass_not_launched")


def test_a_refusal_may_have_no_code() -> None:
    connection = connect()
    request_id, _ = connection.request(Interrupt())
    assert respond(connection, failure(request_id, "no")).outcome == Failure("no")


def test_the_error_for_callers_carries_what_the_cli_said() -> None:
    error = ControlFailed("req_1", "set_model", "no such model", "invalid_model")
    assert str(error) == "set_model: no such model (invalid_model)"
    assert str(ControlFailed("req_1", "set_model", "no")) == "set_model: no"


# --- taking back


def test_a_request_that_is_taken_back_waits_no_more() -> None:
    connection = connect(version="2.1.325")
    request_id, _ = connection.request(Interrupt())
    assert written(connection.cancel(request_id)) == {
        "type": "control_cancel_request",
        "request_id": request_id,
    }
    assert not connection.asked


@pytest.mark.parametrize("version", [None, "2.0.75", "2.1.12", "2.1.100", "strange"])
def test_a_cli_that_might_not_survive_a_cancel_is_not_told(version: str | None) -> None:
    connection = connect(version=version)
    request_id, _ = connection.request(Interrupt())
    assert connection.cancel(request_id) == b""
    assert not connection.asked


def test_only_what_waits_can_be_taken_back() -> None:
    connection = connect()
    request_id, _ = connection.request(Interrupt())
    connection.cancel(request_id)
    asked(connection, can_use_tool())
    for wrong in (request_id, "ask-1", "nobody"):
        with pytest.raises(NotPending):
            connection.cancel(wrong)


# --- responses that answer nothing


def test_a_second_response_is_ignored_and_counted() -> None:
    connection = connect()
    request_id, _ = connection.request(SetPermissionMode("plan"))
    respond(connection, success(request_id, {"mode": "plan"}))
    assert "second" in ignored(connection, success(request_id)).reason
    ignored(connection, failure(request_id))
    assert connection.counters.duplicate_responses == 2


def test_a_response_that_comes_after_the_cancel_is_ignored_and_counted() -> None:
    connection = connect()
    request_id, _ = connection.request(Interrupt())
    connection.cancel(request_id)
    assert "cancelled" in ignored(connection, success(request_id, {})).reason
    assert connection.counters.late_responses == 1


def test_an_echo_of_our_own_answer_is_ignored_and_counted() -> None:
    connection = connect()
    asked(connection, can_use_tool())
    echo = written(connection.answer("ask-1", Deny("no")))
    assert "echo" in ignored(connection, echo).reason
    assert connection.counters.echoes == 1


def test_an_echo_does_not_settle_a_request_that_still_waits() -> None:
    connection = connect()
    asked(connection, can_use_tool())
    ignored(connection, success("ask-1", {"behavior": "allow"}))
    assert "ask-1" in connection.pending


def test_a_response_to_what_nobody_asked_is_ignored_and_counted() -> None:
    connection = connect()
    assert "never asked" in ignored(connection, success("req_1_other", {})).reason
    ignored(connection, failure("nobody"))
    assert connection.counters.strays == 2


def test_an_ignored_initialize_answer_teaches_nothing() -> None:
    connection = connect()
    ignored(connection, success("nobody", {"claude_code_version": "9.9.9"}))
    assert connection.capabilities.version is None


def test_a_response_without_a_readable_id_is_unknown_and_settles_nothing() -> None:
    connection = connect()
    request_id, _ = connection.request(Interrupt())
    value = {"type": "control_response", "response": {"subtype": "success"}}
    event = only(connection.receive(line(value)), MessageReceived)
    assert isinstance(event.message, Unknown)
    assert request_id in connection.asked


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (lambda i: success(i, {}, pending_permission_requests=None), Success(Interrupted())),
        (lambda i: success(i, pending_elicitation_requests=5), Success(Interrupted())),
        (lambda i: failure(i, "no", error_code=7), Failure("no", None)),
        (lambda i: failure(i, 5), None),  # type: ignore[arg-type]
    ],
)
def test_an_answer_with_a_part_that_can_not_be_read_still_wakes_who_waits(
    answer: Any, outcome: Success | Failure | None
) -> None:
    connection = connect()
    request_id, _ = connection.request(Interrupt())
    event = respond(connection, answer(request_id))
    if outcome:
        assert event.outcome == outcome
    else:
        assert isinstance(event.outcome, Failure)
        assert event.outcome.error.startswith("an error that can't be read: Expected `str`")
    assert not connection.asked


def test_a_response_that_is_neither_success_nor_error_is_unknown() -> None:
    connection = connect()
    request_id, _ = connection.request(Interrupt())
    body = {"subtype": "perhaps", "request_id": request_id}
    event = only(
        connection.receive(line({"type": "control_response", "response": body})), MessageReceived
    )
    assert isinstance(event.message, Unknown)


# --- memory


def test_the_memory_of_answered_and_cancelled_requests_is_bounded() -> None:
    connection = connect()
    for _ in range(REMEMBERED_IDS + 1):
        request_id, _ = connection.request(Interrupt())
        respond(connection, success(request_id))
        connection.cancel(connection.request(Interrupt())[0])
    ignored(connection, success(f"req_1_{NONCE}"))
    ignored(connection, success(f"req_2_{NONCE}"))
    assert connection.counters.strays == 2
    ignored(connection, success(f"req_3_{NONCE}"))
    ignored(connection, success(f"req_4_{NONCE}"))
    assert connection.counters.duplicate_responses == 1
    assert connection.counters.late_responses == 1


def test_the_answer_of_initialize_and_others_is_remembered_as_it_was_given() -> None:
    answer = answer_of(Initialize(), {"commands": [{"name": "x", "argumentHint": "y"}]})
    assert isinstance(answer, Initialized)
    assert (answer.commands[0].name, answer.commands[0].argument_hint) == ("x", "y")
    assert answer_of(McpSetServers({}), {"added": ["s"], "errors": {"t": "no"}}).added == ["s"]


# --- mentions


SAID = "@/secret/key and (@~/x) \n@a me@example.com 'quoted @b' \\@c @"
PLAIN = r"\@/secret/key and (\@~/x) " + "\n" + r"\@a me@example.com 'quoted \@b' \@c @"


def test_a_prompt_names_no_file_that_the_cli_would_read() -> None:
    block = [{"type": "text", "text": PLAIN}]
    for content, expected in ((SAID, PLAIN), ([SAID], block), ([TextBlock(SAID)], block)):
        line = msgspec.json.decode(prompt_line(content))
        assert line["message"]["content"] == expected
        # Slash commands are run.
        assert "client_composed" not in line


def test_only_the_parts_with_mentions_may_name_files() -> None:
    line = msgspec.json.decode(prompt_line(WithMentions(SAID)))
    assert line["message"]["content"] == SAID
    line = msgspec.json.decode(prompt_line([WithMentions("see @a"), "and @b"]))
    assert [part["text"] for part in line["message"]["content"]] == ["see @a", r"and \@b"]


def test_a_verbatim_prompt_is_nothing_but_text() -> None:
    for text, expected in (("/c @a", r" /c \@a"), (WithMentions("see @a"), r"see \@a")):
        for content in (text, [text], [TextBlock(text)]):
            line = msgspec.json.decode(prompt_line(content, is_verbatim=True))
            said = line["message"]["content"]
            assert (said if isinstance(said, str) else said[0]["text"]) == expected
            assert line["client_composed"] is True
