"""What real CLIs said, and what was really said to them, read with our own types.

The recordings live beside the repo, not in it: without them these tests are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridle.protocol.codec import encode_line
from bridle.protocol.connection import Connection
from bridle.protocol.content import suggestions, unknown_parts
from bridle.protocol.control import ANSWERS_TO, Answer, CanUseTool, Prompt
from bridle.protocol.events import (
    Event,
    LineIgnored,
    LineMalformed,
    LineOversized,
    MessageReceived,
    RequestReceived,
    RequestUnreadable,
    ResponseReceived,
    Success,
)
from bridle.protocol.requests import OutboundRequest
from bridle.protocol.unknown import Unknown

from .lines import answer_in, written

FOLDER = Path(__file__).parents[2].parent / "shared" / "transcripts"
RECORDINGS = sorted(FOLDER.glob("*/*.ndjson"))

if not RECORDINGS:
    pytest.skip("no recordings beside the repo (../shared/transcripts)", allow_module_level=True)

#: Lines that may be unknown, by their type, with the reason why. None is.
UNKNOWN_ON_PURPOSE: dict[str, str] = {}

#: What the recordings ask on purpose to see how a CLI takes it; we would not write it.
WRONG_ON_PURPOSE: list[dict[str, Any]] = [
    {"subtype": "no_such_subtype"},
    {"subtype": "account_info"},
    {"subtype": "channel_enable"},
    {"subtype": "side_question"},
    {"subtype": "supported_commands"},
    {"subtype": "supported_models"},
    {"subtype": "apply_flag_settings"},
    {"subtype": "cancel_async_message"},
    {"subtype": "generate_session_title"},
    {"subtype": "mcp_reconnect"},
    {"subtype": "mcp_set_servers"},
    {"subtype": "mcp_toggle"},
    {"subtype": "rewind_files"},
    {"subtype": "stop_task"},
    {"subtype": "set_max_thinking_tokens", "max_thinking_tokens": "x"},
    {"subtype": "set_permission_mode", "mode": "manual"},
    {"subtype": "set_permission_mode", "mode": "nonsense"},
    {"subtype": "set_permission_mode", "mode": None},
]

#: Recordings whose answers are wrong on purpose.
WRONG_ANSWERS = {
    "c_allow_noupdated": "an allow without its input, which we would echo",
    "c_seed_updatedperms": "permission updates of an old, wrong shape",
}


def lines_of(recording: Path) -> Iterator[tuple[str, Any]]:
    for text in recording.read_text().splitlines():
        entry = json.loads(text)
        if entry["dir"] in ("in", "out"):
            yield entry["dir"], entry["msg"]


_REQUEST: msgspec.json.Decoder[OutboundRequest] = msgspec.json.Decoder(OutboundRequest)


def dense(value: Any) -> Any:
    """The recorder wrote null for what is absent, where we may leave the key out."""
    if isinstance(value, dict):
        return {key: dense(inner) for key, inner in value.items() if inner is not None}
    return [dense(inner) for inner in value] if isinstance(value, list) else value


def request_in(msg: dict[str, Any]) -> OutboundRequest:
    return _REQUEST.decode(json.dumps(dense(msg["request"])))


class Replay:
    """Reads a recording as the controller in it: asks what it asked, under our own ids."""

    def __init__(self, recording: Path) -> None:
        self.connection = Connection(nonce="r", version=recording.parent.name)
        self.requests: dict[str, dict[str, Any]] = {}
        self.unasked: set[str] = set()
        self._ids: dict[str, str] = {}
        self.events: list[Event] = []
        for direction, msg in lines_of(recording):
            if direction == "out":
                self._hear(msg)
            elif msg.get("type") == "control_request":
                self._ask(msg)

    def _ask(self, msg: dict[str, Any]) -> None:
        is_wrong = msg["request"] in WRONG_ON_PURPOSE
        if is_wrong or self.connection.capabilities.hazard(request_in(msg)):
            self.unasked.add(msg["request_id"])
        else:
            self._ids[msg["request_id"]], _ = self.connection.request(request_in(msg))

    def _hear(self, msg: dict[str, Any]) -> None:
        if msg.get("type") == "control_request":
            self.requests[msg["request_id"]] = msg["request"]
        elif msg.get("type") == "control_response":
            response = msg["response"]
            request_id = self._ids.get(response["request_id"], response["request_id"])
            msg = {**msg, "response": {**response, "request_id": request_id}}
        self.events += self.connection.receive(encode_line(msg))


def unknowns(event: Event) -> Iterator[Unknown]:
    match event:
        case MessageReceived(message=said):
            yield from unknown_parts(said)
        case RequestReceived(request=request):
            yield from unknown_parts(request)
            if isinstance(request, CanUseTool):
                yield from (part for part in suggestions(request) if isinstance(part, Unknown))
        case ResponseReceived(outcome=Success(answer=Unknown() as unknown)):
            yield unknown


def test_everything_that_a_real_cli_says_is_known() -> None:
    for recording in RECORDINGS:
        events = Replay(recording).events
        found = [unknown for event in events for unknown in unknowns(event)]
        assert [unknown for unknown in found if unknown.type not in UNKNOWN_ON_PURPOSE] == [], (
            recording
        )
        unreadable = LineMalformed | LineOversized | RequestUnreadable
        assert [event for event in events if isinstance(event, unreadable)] == [], recording


def test_every_response_that_is_ignored_has_a_reason_to_be() -> None:
    for recording in RECORDINGS:
        replay = Replay(recording)
        for event in replay.events:
            if isinstance(event, LineIgnored):
                request_id = json.loads(event.raw)["response"]["request_id"]
                is_echo = "echo" in event.reason and request_id in replay.requests
                is_stray = "never asked" in event.reason and request_id in replay.unasked
                assert is_echo or is_stray or "second" in event.reason, recording


def test_every_request_would_show_its_id_if_its_line_could_not_be_read() -> None:
    for recording in RECORDINGS:
        for direction, msg in lines_of(recording):
            if direction == "out" and msg.get("type") == "control_request":
                connection = Connection(nonce="r")
                torn = encode_line(msg).rstrip()[:-1]
                _, refused = connection.receive(torn + b"\n")
                assert isinstance(refused, RequestUnreadable), recording
                assert refused.request_id == msg["request_id"]
                assert refused.subtype == msg["request"]["subtype"]


def test_every_request_to_a_cli_is_one_that_we_would_write() -> None:
    for recording in RECORDINGS:
        for direction, msg in lines_of(recording):
            if direction != "in" or msg.get("type") != "control_request":
                continue
            if msg["request"] in WRONG_ON_PURPOSE:
                with pytest.raises(msgspec.ValidationError):
                    request_in(msg)
                continue
            _, data = Connection(nonce="r", version="2.1.325").request(request_in(msg))
            assert dense(written(data)["request"]) == dense(msg["request"]), recording


def test_every_answer_to_a_cli_is_one_that_we_would_write() -> None:
    for recording in RECORDINGS:
        replay = Replay(recording)
        for direction, msg in lines_of(recording):
            if direction != "in" or msg.get("type") != "control_response":
                continue
            response = msg["response"]
            if response["subtype"] == "error" or recording.stem in WRONG_ANSWERS:
                continue
            asker = Connection(nonce="r")
            request = {"request_id": response["request_id"], "type": "control_request"}
            request["request"] = replay.requests[response["request_id"]]
            (event,) = asker.receive(encode_line(request))
            assert isinstance(event, RequestReceived)
            answer = answer_as(event, response["response"])
            assert answer_in(asker.answer(event.request_id, answer)) == response["response"], (
                recording
            )


def answer_as(event: RequestReceived, response: Any) -> Answer:
    errors = []
    for kind in ANSWERS_TO[type(event.request)]:
        try:
            return msgspec.convert(response, kind)
        except msgspec.ValidationError as error:
            errors.append(error)
    pytest.fail(f"no answer of ours fits {response}: {errors}")


def test_every_prompt_to_a_cli_is_one_that_we_would_write() -> None:
    for recording in RECORDINGS:
        for direction, msg in lines_of(recording):
            if direction == "in" and msg.get("type") == "user":
                prompt = msgspec.convert(msg, Prompt)
                assert written(encode_line(prompt)) == {"parent_tool_use_id": None, **msg}, (
                    recording
                )
