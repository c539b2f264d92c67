"""Hooks: registered by decorator, called with typed inputs, refused when they fail."""

from __future__ import annotations

import asyncio
from typing import Any, get_args

import pytest

import bridle
from bridle import HookOutput, Hooks, pre_tool_use
from bridle.errors import InvalidLaunch
from bridle.protocol.hook_outputs import AsyncHookOutput, PostToolUseOutput, PreToolUseOutput
from bridle.protocol.hooks import HookEvent, KnownHookInput, PostToolUse, PreToolUse, Stop
from bridle.testing import MemoryTransport

from .conftest import StartSession

COMMON = {"session_id": "s", "transcript_path": "", "cwd": "/"}
PRE = {**COMMON, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"a": 1}}


def call(
    cli: MemoryTransport, callback_id: str, told: dict[str, Any], request_id: str = "1"
) -> None:
    cli.ask(request_id, subtype="hook_callback", callback_id=callback_id, input=told)


async def answer(cli: MemoryTransport, request_id: str = "1") -> Any:
    response = await cli.answer(request_id)
    assert response["subtype"] == "success", response
    return response["response"]


def test_there_is_an_input_type_for_every_event() -> None:
    tags = {kind.__struct_config__.tag for kind in get_args(KnownHookInput)}
    assert tags == set(get_args(HookEvent))
    hooks = Hooks()
    for kind in get_args(KnownHookInput):
        hooks.on(kind)(lambda _: None)
    assert len(hooks) == len(tags)


async def test_hooks_are_registered_with_their_matchers_in_order(start: StartSession) -> None:
    hooks = Hooks()
    hooks.on(PreToolUse, matcher="Bash", timeout=30, on_failure="block")(lambda _: None)
    hooks.on(Stop)(lambda _: None)
    hooks.on(PreToolUse)(lambda _: None)
    _, cli = await start(hooks=hooks, policy=bridle.Ungated())
    (request,) = cli.requests("initialize")
    first = {"hookCallbackIds": ["bridle-PreToolUse-1"], "matcher": "Bash", "timeout": 30}
    assert request["hooks"] == {
        "PreToolUse": [
            {**first, "onFailure": "block"},
            {"hookCallbackIds": ["bridle-PreToolUse-2"], "timeout": 600},
        ],
        "Stop": [{"hookCallbackIds": ["bridle-Stop-1"], "timeout": 600}],
    }


async def test_an_old_cli_is_not_told_what_it_does_not_know(start: StartSession) -> None:
    hooks = Hooks()
    hooks.on(PreToolUse, on_failure="block")(lambda _: None)
    _, cli = await start(hooks=hooks, version="2.0.75", policy=bridle.Ungated())
    (request,) = cli.requests("initialize")
    assert request["hooks"]["PreToolUse"] == [
        {"hookCallbackIds": ["bridle-PreToolUse-1"], "timeout": 600}
    ]


async def test_a_hook_is_called_with_its_typed_input(start: StartSession) -> None:
    hooks = Hooks()

    @hooks.on(PreToolUse)
    def guard(event: PreToolUse) -> HookOutput:
        return pre_tool_use("deny", f"not {event.tool_name} with {event.tool_input}")

    _, cli = await start(hooks=hooks)
    call(cli, "bridle-PreToolUse-1", PRE)
    specific = (await answer(cli))["hookSpecificOutput"]
    assert specific["permissionDecision"] == "deny"
    assert specific["permissionDecisionReason"] == "not Bash with {'a': 1}"


async def test_an_async_hook_is_waited_for_and_a_withdrawal_cancels_it(start: StartSession) -> None:
    hooks, cancelled = Hooks(), asyncio.Event()

    @hooks.on(Stop)
    async def stop(event: Stop) -> HookOutput:
        if not event.stop_hook_active:
            await asyncio.sleep(0)
            return HookOutput(decision="block", reason="go on")
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return HookOutput()

    _, cli = await start(hooks=hooks)
    told = {**COMMON, "hook_event_name": "Stop", "stop_hook_active": False}
    call(cli, "bridle-Stop-1", told)
    assert await answer(cli) == {"decision": "block", "reason": "go on"}
    call(cli, "bridle-Stop-1", {**told, "stop_hook_active": True}, "2")
    call(cli, "bridle-Stop-1", told, "3")
    await answer(cli, "3")
    cli.say({"type": "control_cancel_request", "request_id": "2"})
    await asyncio.wait_for(cancelled.wait(), 10)
    assert cli.answered("2") is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, {}),
        (HookOutput(), {}),
        (HookOutput(continue_=False), {"continue": False}),
        (AsyncHookOutput(), {"async": True}),
        (
            PreToolUseOutput(permission_decision="ask"),
            {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask"}},
        ),
    ],
)
async def test_what_a_hook_may_answer(start: StartSession, given: Any, expected: Any) -> None:
    hooks = Hooks()
    hooks.on(PreToolUse)(lambda _: given)
    _, cli = await start(hooks=hooks)
    call(cli, "bridle-PreToolUse-1", PRE)
    assert await answer(cli) == expected


def fails(_: object) -> None:
    raise RuntimeError("out of paper")


async def fails_later(_: object) -> None:
    raise RuntimeError("out of paper")


@pytest.mark.parametrize(
    ("hook", "reason"),
    [
        (fails, "out of paper"),
        (fails_later, "out of paper"),
        (lambda _: True, "a hook answered a bool"),
        (lambda _: PostToolUseOutput(), "PostToolUse"),
    ],
)
async def test_a_pre_tool_use_hook_that_fails_denies_and_never_errs(
    start: StartSession, hook: Any, reason: str
) -> None:
    """An error would count as no answer, and in bypass mode the tool would run."""
    hooks = Hooks()
    hooks.on(PreToolUse)(hook)
    _, cli = await start(hooks=hooks)
    call(cli, "bridle-PreToolUse-1", PRE)
    specific = (await answer(cli))["hookSpecificOutput"]
    assert specific["permissionDecision"] == "deny"
    assert reason in specific["permissionDecisionReason"]


async def test_an_unknown_callback_or_input_denies(start: StartSession) -> None:
    hooks = Hooks()
    hooks.on(PreToolUse)(lambda _: None)
    _, cli = await start(hooks=hooks)
    call(cli, "another-program", PRE, "1")
    call(cli, "bridle-PreToolUse-1", {**COMMON, "hook_event_name": "BrandNew"}, "2")
    for request_id in ("1", "2"):
        specific = (await answer(cli, request_id))["hookSpecificOutput"]
        assert specific["permissionDecision"] == "deny"


async def test_another_hook_that_fails_errs(start: StartSession) -> None:
    hooks = Hooks()
    hooks.on(PostToolUse)(fails)
    _, cli = await start(hooks=hooks)
    told = {**PRE, "hook_event_name": "PostToolUse", "tool_response": {}}
    call(cli, "bridle-PostToolUse-1", told)
    assert "out of paper" in (await cli.answer("1"))["error"]


def test_what_is_no_hook_event_is_refused() -> None:
    with pytest.raises(InvalidLaunch, match="no hook event"):
        Hooks().on(dict)  # type: ignore[type-var]


async def test_a_pre_tool_use_hook_that_takes_too_long_denies_before_the_cli_gives_up(
    start: StartSession,
) -> None:
    """Old CLIs go on without a hook that timed out, and in bypass mode run the tool."""
    hooks, cancelled = Hooks(), asyncio.Event()

    @hooks.on(PreToolUse, timeout=0.1)
    async def slow(_: PreToolUse) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    _, cli = await start(hooks=hooks)
    call(cli, "bridle-PreToolUse-1", PRE)
    specific = (await answer(cli))["hookSpecificOutput"]
    assert specific["permissionDecision"] == "deny"
    assert "no answer in 0.08 s" in specific["permissionDecisionReason"]
    assert cancelled.is_set()


async def test_a_hook_that_is_withdrawn_before_it_began_is_not_called() -> None:
    hooks, called = Hooks(), []

    @hooks.on(PreToolUse)
    async def note(event: PreToolUse) -> None:
        called.append(event)

    cli = MemoryTransport()
    async with bridle.connect(transport=cli, hooks=hooks) as session:
        body = {"subtype": "hook_callback", "callback_id": "bridle-PreToolUse-1", "input": PRE}
        cancel = {"type": "control_cancel_request", "request_id": "1"}
        cli.say({"type": "control_request", "request_id": "1", "request": body}, cancel)
        await session.mcp_status()
    assert called == []
