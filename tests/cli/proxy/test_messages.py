"""What a line is: whatever stands in it, it is read, and what is not changed goes on as it is."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.cli.proxy.messages import (
    Answer,
    Nothing,
    Notice,
    Request,
    Told,
    Unreadable,
    Withdrawn,
    moved_on,
    progress_line,
    read_answer,
    read_line,
)
from tests.levels import tries

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
words = st.sampled_from(["tools/call", "tools/list", "initialize", "notifications/cancelled", ""])
messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0"),
        "id": values,
        "method": words | values,
        "params": values
        | st.fixed_dictionaries(
            {}, optional={"name": values, "arguments": values, "_meta": values, "requestId": values}
        ),
    },
)


def line_of(value: Any) -> bytes:
    return json.dumps(value).encode()


def request(**more: Any) -> Request:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", **more}
    found = read_line(line_of(message))
    assert isinstance(found, Request)
    return found


@given(messages | values)
@settings(max_examples=tries(50, 500), deadline=None)
def test_whatever_json_a_line_is_it_is_read(value: Any) -> None:
    found = read_line(line_of(value))
    if isinstance(found, Request):
        assert b"\n" not in found.body
        assert all(part.isascii() for pair in found.headers.items() for part in pair)
    assert isinstance(found, Request | Notice | Withdrawn | Unreadable | Nothing)


@given(st.binary(max_size=200))
@settings(max_examples=tries(50, 500), deadline=None)
def test_whatever_bytes_a_line_is_it_is_read(line: bytes) -> None:
    assert read_line(line) is not None
    assert read_answer(line, request()) is None or line.strip()


@given(st.text(max_size=20), values, st.dictionaries(st.text(max_size=8), values, max_size=3))
@settings(max_examples=tries(50, 500), deadline=None)
def test_a_call_keeps_all_that_is_in_it_and_gets_an_id(
    name: str, arguments: Any, meta: dict[str, Any]
) -> None:
    params = {"name": name, "arguments": arguments, "_meta": meta}
    found = json.loads(request(params=params).body)
    key = found["params"]["_meta"].pop("bridle/requestId")
    meta.pop("bridle/requestId", None)
    assert key is not None
    assert found == {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def test_an_id_that_the_client_gives_is_kept() -> None:
    found = request(params={"name": "x", "_meta": {"bridle/requestId": "mine"}})
    assert json.loads(found.body)["params"]["_meta"] == {"bridle/requestId": "mine"}


@pytest.mark.parametrize("name", ["tool-é", "étool", "a\nb", "a ", " a", "", "=?base64?eA==?="])
def test_a_name_that_no_header_can_have_is_wrapped(name: str) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    header = request(params={"name": name, "_meta": meta}).headers["mcp-name"]
    assert header.startswith("=?base64?")
    assert base64.b64decode(header[9:-2]).decode() == name


@pytest.mark.parametrize("params", ["[1]", '{"name":"x","_meta":5}', '"x"', "null"])
def test_a_call_that_can_not_be_read_goes_on_as_it_is(params: str) -> None:
    line = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'.encode()
    found = read_line(line)
    assert isinstance(found, Request)
    assert found.body == line


def test_half_of_a_character_is_refused_to_the_one_who_waits() -> None:
    found = read_line(b'{"jsonrpc":"2.0","id":5,"method":"x","params":{"text":"\\ud800"}}')
    assert isinstance(found, Unreadable)
    assert found.id == 5


def test_only_the_answer_to_the_question_is_its_answer() -> None:
    asked = request()
    answer = line_of({"jsonrpc": "2.0", "id": 1, "result": {}})
    assert read_answer(answer, asked) == Answer(answer)
    assert read_answer(line_of({"jsonrpc": "2.0", "id": 2, "result": {}}), asked) is None
    assert read_answer(line_of({"jsonrpc": "2.0", "id": 1, "method": "ask"}), asked) is None
    told = line_of({"jsonrpc": "2.0", "method": "notifications/message"})
    assert read_answer(told, asked) == Told(told)


def test_an_answer_over_several_lines_becomes_one() -> None:
    found = read_answer(b'{"id": 1,\r\n "result": "a\\nb"\n}', request())
    assert isinstance(found, Answer)
    assert json.loads(found.line)["result"] == "a\nb"
    assert b"\n" not in found.line


def test_progress_is_told_under_the_clients_name_and_with_another_number() -> None:
    asked = request(params={"name": "x", "_meta": {"progressToken": ["any", 1]}})
    own = json.loads(progress_line(asked, 3, "still waiting"))
    assert own["params"]["progressToken"] == ["any", 1]
    params = {"progressToken": "p", "progress": 1, "total": 4}
    line = line_of({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    assert read_answer(line, asked) == Told(line, 1.0)
    assert json.loads(moved_on(line, 7))["params"] == {**params, "progress": 7}


@pytest.mark.parametrize("id_", [0, 7, "", "a", 1.5])
def test_a_call_is_withdrawn_by_its_id_whatever_that_is(id_: object) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    assert read_line(line_of({**message, "params": {"requestId": id_}})) == Withdrawn(id_)  # type: ignore[arg-type]


@pytest.mark.parametrize("params", [{}, {"requestId": None}, {"requestId": [1]}, [], "x"])
def test_the_end_of_no_call_is_nothing(params: object) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    assert read_line(line_of(message)) == Nothing()
    assert read_line(line_of({"jsonrpc": "2.0", "id": 1, "result": {}})) == Nothing()


def test_what_was_agreed_upon_is_known_by_the_answer_to_initialize_alone() -> None:
    data = line_of({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18"}})
    assert read_answer(data, request(method="initialize")) == Answer(data, "2025-06-18")
    assert read_answer(data, request()) == Answer(data)
    other = line_of({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 5}})
    assert read_answer(other, request(method="initialize")) == Answer(other)
    asked = line_of({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage"})
    assert read_answer(asked, request()) is None
