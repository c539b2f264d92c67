"""What is in an inbox, held against the log: completed where it is cut off, never doubled."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.protocol.outbound import prompt_line
from bridle.supervisor.inbox import Compared, compare, is_harmless
from tests.levels import tries

encode = msgspec.json.encode
#: There are few texts to put together.
FEW = settings(max_examples=tries(20, 200), deadline=None)


def line(**message: Any) -> bytes:
    return encode(message) + b"\n"


def answer(request_id: str, response: dict[str, Any]) -> bytes:
    body = {"subtype": "success", "request_id": request_id, "response": response}
    return line(type="control_response", response=body)


ALLOW = answer("q1", {"behavior": "allow", "updatedInput": {}})
DENY = answer("q1", {"behavior": "deny", "message": "no"})
INTERRUPT = line(type="control_request", request_id="r1", request={"subtype": "interrupt"})
MODE = {"subtype": "set_permission_mode", "mode": "bypassPermissions"}
SET_MODE = line(type="control_request", request_id="r2", request=MODE)
CANCEL = line(type="control_cancel_request", request_id="r2")
PROMPT = prompt_line("go", uuid="u1")

HARMLESS = [DENY, INTERRUPT, CANCEL]
FOREIGN = [ALLOW, SET_MODE, PROMPT, b"\n", b"{}\n", b"garbage\n", b"\xff\xfe\n"]

#: Few texts, so that there are equal ones and such as begin alike.
bytes_of_lines = st.sampled_from([PROMPT, ALLOW, DENY, SET_MODE, INTERRUPT, ALLOW[:-2] + b" }\n"])
logs = st.lists(bytes_of_lines, max_size=8)


@FEW
@given(logs, st.data())
def test_what_is_cut_off_anywhere_is_completed_to_the_log(
    logged: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(logged)
    found = whole[: data.draw(st.integers(0, len(whole)))]
    compared = compare(found, logged)
    assert (compared.unlogged, compared.foreign) == ((), b"")
    assert found + compared.missing == whole


@FEW
@given(logs, st.data())
def test_lines_that_stop_something_may_stand_anywhere_between(
    logged: list[bytes], data: st.DataObject
) -> None:
    unknown = answer("q9", {"behavior": "deny", "message": "it went out first"})
    count = data.draw(st.integers(0, len(logged)))
    at = data.draw(st.integers(0, count))
    found = b"".join([*logged[:at], unknown, *logged[at:count]])
    compared = compare(found, logged)
    assert compared == Compared(b"".join(logged[count:]), (unknown,))


@FEW
@given(logs, st.sampled_from(FOREIGN), st.data())
def test_anything_else_is_foreign(logged: list[bytes], foreign: bytes, data: st.DataObject) -> None:
    logged = [one for one in logged if one != foreign]
    at = data.draw(st.integers(0, len(logged)))
    found = b"".join([*logged[:at], foreign])
    assert compare(found, logged).foreign == foreign


@FEW
@given(logs, st.data())
def test_an_answer_that_is_there_twice_is_foreign(logged: list[bytes], data: st.DataObject) -> None:
    logged = [*(one for one in logged if one != ALLOW), ALLOW]
    found = b"".join([*logged, ALLOW])
    assert compare(found, logged).foreign == ALLOW


@pytest.mark.parametrize("tail", [b"x", ALLOW[:50], DENY[:-1], b"{"])
def test_half_a_line_that_is_none_of_ours_is_foreign(tail: bytes) -> None:
    assert compare(PROMPT + tail, [PROMPT]).foreign == tail


@pytest.mark.parametrize("one", HARMLESS)
def test_what_stops_something_is_harmless(one: bytes) -> None:
    assert is_harmless(one)


@pytest.mark.parametrize("one", FOREIGN)
def test_nothing_else_is(one: bytes) -> None:
    assert not is_harmless(one)
