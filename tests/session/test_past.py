"""A session that goes on where another controller of the same CLI stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from bridle.errors import SessionClosed
from bridle.policy import InForce, Policy
from bridle.protocol.hooks import PostToolUse, PreToolUse
from bridle.protocol.permissions import Allow, SetMode
from bridle.session.commit import Seams
from bridle.session.gate import Gate
from bridle.session.ground import ground_of
from bridle.session.hooks import GATE_ID, Hooks
from bridle.session.making import handlers_of, hello
from bridle.session.options import SessionOptions
from bridle.session.past import SavedSession
from bridle.session.responder import MAYBE_DONE
from bridle.session.session import Session
from bridle.session.tools import ToolServers
from bridle.testing import MemoryTransport

from .test_gate import Trail
from .wire import init, result, say

Json = dict[str, Any]

READY: Json = {
    "type": "control_response",
    "response": {"subtype": "success", "request_id": "req_1_old", "response": {}},
}
HELLO: Json = {
    "type": "control_request",
    "request_id": "req_1_old",
    "request": {"subtype": "initialize", "hooks": None},
}


def line(message: Json) -> bytes:
    return msgspec.json.encode(message)


def asks(request_id: str, call: str, command: str = "rm x") -> Json:
    body: Json = {"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": call}
    request = {**body, "input": {"command": command}}
    return {"type": "control_request", "request_id": request_id, "request": request}


def hook(request_id: str, call: str, callback: str = GATE_ID, command: str = "rm x") -> Json:
    told: Json = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash"}
    told |= {"tool_input": {"command": command}, "tool_use_id": call, "permission_mode": "default"}
    request = {"subtype": "hook_callback", "callback_id": callback, "input": told}
    return {"type": "control_request", "request_id": request_id, "request": request}


def tool_call(request_id: str, method: str = "tools/call") -> Json:
    message: Json = {"jsonrpc": "2.0", "id": 1, "method": method}
    message["params"] = {"name": "touch", "arguments": {}}
    request = {"subtype": "mcp_message", "server_name": "bridle", "message": message}
    return {"type": "control_request", "request_id": request_id, "request": request}


def answer(request_id: str, response: Json) -> Json:
    body = {"subtype": "success", "request_id": request_id, "response": response}
    return {"type": "control_response", "response": body}


def decided(request_id: str, decision: str) -> Json:
    specific = {"hookEventName": "PreToolUse", "permissionDecision": decision}
    return answer(request_id, {"hookSpecificOutput": specific})


def prompt(uuid: str) -> Json:
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": "go"}}


def ran(call: str) -> Json:
    block = {"type": "tool_result", "tool_use_id": call, "content": "ok"}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


class Successor:
    """The later controller: its session, the CLI, and the desk that is told."""

    def __init__(self, *, replies: Any = None, saved: SavedSession | None = None) -> None:
        self.cli = MemoryTransport(replies=replies)
        self.desk = Trail()
        self.policy = InForce(Policy("ask"), ground_of("."))
        self.begun: list[str] = []
        self.called: list[str] = []
        gate = Gate(self.policy, self.desk)
        hooks = Hooks()
        hooks.on(PreToolUse)(lambda _: self.called.append("hook"))
        hooks.on(PostToolUse)(lambda _: self.called.append("after"))

        def touch() -> None:
            self.called.append("tool")

        servers = ToolServers({"bridle": [touch]})
        handlers = handlers_of(self.desk, hooks, servers, None, None, gate)
        options = SessionOptions(initialize=hello(servers, None))
        seams = Seams(begin=self._begin)
        self.session = Session(self.cli, handlers, options, seams, saved)
        self.past = self.session.past()

    async def _begin(self, request_id: str) -> None:
        self.begun.append(request_id)

    def hears(self, *messages: Json) -> None:
        for message in messages:
            self.past.heard(line(message))

    def wrote(self, *messages: Json) -> None:
        for message in messages:
            self.past.wrote(line(message) + b"\n")

    async def go_on(self) -> Session:
        await self.session.go_on(self.past, 1000)
        await asyncio.sleep(0)
        return self.session


def met(**options: Any) -> Successor:
    """One whose predecessor had shaken hands."""
    after = Successor(**options)
    after.wrote(HELLO)
    after.hears(READY)
    return after


def subtypes(written: Sequence[Json]) -> list[str]:
    return [one["request"]["subtype"] for one in written if one["type"] == "control_request"]


async def test_a_healthy_session_is_not_initialised_again() -> None:
    after = met()
    session = await after.go_on()
    assert after.cli.written == []
    assert session.info
    assert session.consumed == 1000


async def test_a_handshake_that_was_under_way_is_waited_for() -> None:
    after = Successor()
    after.wrote(HELLO)
    going = asyncio.ensure_future(after.go_on())
    await asyncio.sleep(0)
    after.cli.say(READY)
    session = await asyncio.wait_for(going, 10)
    assert after.cli.written == []
    assert session.info


async def test_a_handshake_that_was_never_begun_is_made() -> None:
    after = Successor()
    await after.go_on()
    assert subtypes(after.cli.written) == ["initialize"]


async def test_what_nobody_has_answered_is_asked_again_and_answered_once() -> None:
    after = met()
    after.hears(asks("1", "t1"), asks("2", "t2"))
    after.wrote(answer("1", {"behavior": "deny", "message": "no"}))
    after.desk.decision = Allow()
    await after.go_on()
    assert [request.tool_use_id for request in after.desk.asked] == ["t2"]
    assert (await after.cli.answer("2"))["response"]["behavior"] == "allow"
    assert after.cli.answered("1") is None


async def test_what_was_withdrawn_is_not_asked_again() -> None:
    after = met()
    after.hears(asks("1", "t1"), {"type": "control_cancel_request", "request_id": "1"})
    await after.go_on()
    assert after.desk.asked == []


@pytest.mark.parametrize("request_", [hook("1", "t1", "bridle-PreToolUse-1"), tool_call("1")])
async def test_a_handler_is_called_once_for_a_request_whoever_controls(request_: Json) -> None:
    after = met()
    after.hears(request_)
    after.past.began("1")
    await after.go_on()
    told = await after.cli.answer("1")
    assert MAYBE_DONE in str(told)
    assert after.called == []
    if "hook_callback" in str(request_):
        specific = told["response"]["hookSpecificOutput"]
        assert specific["permissionDecision"] == "deny"


async def test_a_lost_hook_answer_is_the_reason_why_its_call_is_refused_whoever_answers_last() -> (
    None
):
    """Old CLIs report the reason of the last hook that answers: an allow would hide it."""
    after = met()
    after.policy.apply(Policy("autonomous"))
    after.hears(hook("1", "t1", "bridle-PreToolUse-1"), hook("2", "t1"), hook("3", "t2"))
    after.past.began("1")
    await after.go_on()
    for request_id, expected in (("1", "deny"), ("2", "deny"), ("3", "allow")):
        specific = (await after.cli.answer(request_id))["response"]["hookSpecificOutput"]
        assert specific["permissionDecision"] == expected
        assert specific.get("permissionDecisionReason") == (
            MAYBE_DONE if expected == "deny" else None
        )


@pytest.mark.parametrize(
    ("request_", "called"),
    [(hook("1", "t1", "bridle-PreToolUse-1"), "hook"), (tool_call("1"), "tool")],
)
async def test_a_handler_that_was_not_called_is_called_now_after_that_is_noted(
    request_: Json, called: str
) -> None:
    after = met()
    after.hears(request_)
    await after.go_on()
    await after.cli.answer("1")
    assert (after.begun, after.called) == (["1"], [called])


async def test_what_changes_nothing_is_not_noted_before_it_is_answered() -> None:
    after = met()
    after.policy.apply(Policy("autonomous"))
    after.hears(tool_call("1", "tools/list"), hook("2", "t1"))
    await after.go_on()
    await after.cli.answer("1")
    await after.cli.answer("2")
    assert after.begun == []


async def test_a_no_that_the_hook_gave_holds_when_the_cli_asks() -> None:
    after = met()
    after.hears(hook("1", "t1"))
    after.wrote(decided("1", "deny"))
    await after.go_on()
    after.cli.say(asks("2", "t1"))
    assert (await after.cli.answer("2"))["response"]["behavior"] == "deny"
    assert after.desk.asked == []


async def test_if_the_cli_asks_about_what_a_rule_allowed_somebody_is_asked() -> None:
    after = met()
    after.policy.remember("Bash(rm x)")
    after.hears(hook("1", "t1"))
    after.wrote(decided("1", "allow"))
    await after.go_on()
    after.cli.say(asks("2", "t1"))
    assert [request.tool_use_id for request in after.desk.asked] == ["t1"]


async def test_that_an_answer_was_written_and_its_tool_has_run_is_told_again() -> None:
    after = met()
    after.hears(asks("1", "t1"))
    after.wrote(answer("1", {"behavior": "allow", "updatedInput": {"command": "rm x"}}))
    after.hears(ran("t1"))
    await after.go_on()
    assert ("delivered", "t1") in after.desk.told
    assert ("ran", "t1") in [told[:2] for told in after.desk.told]


async def test_the_mode_that_was_chosen_with_a_plan_is_still_in_force() -> None:
    after = met()
    update = msgspec.to_builtins(SetMode("acceptEdits", destination="session"))
    allowed = {"behavior": "allow", "updatedInput": {}, "updatedPermissions": [update]}
    after.hears(asks("1", "t1"))
    after.wrote(answer("1", allowed))
    await after.go_on()
    assert after.policy.policy.preset == "edits"


async def test_turns_are_known_and_their_ends_are_understood() -> None:
    after = met()
    after.wrote(prompt("a"), prompt("b"))
    after.hears(init("a"), say("one"), result("A", "a"), init("b"), say("two"))
    session = await after.go_on()
    assert session.is_busy
    after.cli.say(result("B", "b"))
    await asyncio.sleep(0)
    assert not session.is_busy
    assert session.id


async def test_a_saved_state_stands_for_the_past() -> None:
    before = met()
    before.wrote(prompt("a"))
    before.hears(init("a"), say("one"))
    before.policy.choose("acceptEdits")
    saved = (await before.go_on()).save()
    assert saved
    kept = msgspec.json.decode(msgspec.json.encode(saved), type=SavedSession)
    after = Successor(saved=kept)
    after.hears(result("A", "a"))
    session = await after.go_on()
    assert (session.is_busy, session.id is not None) == (False, True)
    assert after.policy.policy.preset == "edits"
    assert after.cli.written == []


async def test_no_state_is_saved_while_something_is_under_way() -> None:
    after = met()
    after.hears(asks("1", "t1"))
    assert (await after.go_on()).save() is None


async def test_who_leaves_answers_nothing_and_cancels_nothing() -> None:
    after = met()
    after.hears(asks("1", "t1"))
    session = await after.go_on()
    turn = await session.send("go")
    await session.leave()
    await asyncio.sleep(0)
    assert after.cli.answered("1") is None
    with pytest.raises(SessionClosed):
        await turn.result(10)
    assert [told for told in after.desk.told if told[0] == "delivered"] == []
