"""Hooks that we registered."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from bridle.protocol.control import Answer, CanUseTool, HookCallback
from bridle.protocol.events import RequestReceived
from bridle.protocol.hook_outputs import (
    HookOutput,
    PostToolUseOutput,
    PreToolUseOutput,
    pre_tool_use,
)
from bridle.protocol.hooks import HookEvent, HookMatcher, PreToolUse, Stop
from bridle.protocol.permissions import Allow, Deny
from bridle.protocol.requests import Initialize
from bridle.testing import Turn, tool_use

from .lab import BASH, COMMAND, Lab, last_output

BYPASS = ["--permission-mode", "bypassPermissions"]
AS_ROOT = {"IS_SANDBOX": "1"}


def registered(event: HookEvent, **options: Any) -> Initialize:
    return Initialize(hooks={event: [HookMatcher(["cb"], **options)]})


def hooks_say(
    output: HookOutput, tools: Callable[[CanUseTool], Answer | None] = lambda _: None
) -> Callable[[RequestReceived], Answer | None]:
    def respond(event: RequestReceived) -> Answer | None:
        match event.request:
            case HookCallback():
                return output
            case CanUseTool():
                return tools(event.request)
        return None

    return respond


def asked_tools(events: list[object]) -> list[str]:
    requests = [e.request for e in events if isinstance(e, RequestReceived)]
    return [request.tool_name for request in requests if isinstance(request, CanUseTool)]


async def test_hook_allow(lab: Lab) -> None:
    """PreToolUse allow: the tool runs and nothing is asked"""
    respond = hooks_say(pre_tool_use("allow"))
    async with lab.run(
        [Turn(BASH), "Done."], initialize=registered("PreToolUse"), respond=respond
    ) as run:
        run.cli.prompt("go")
        await run.cli.result()
        assert lab.exists("x.txt")
        assert asked_tools(list(run.cli.events)) == []


async def test_hook_deny(lab: Lab) -> None:
    """PreToolUse deny: the tool does not run, in bypass mode either"""
    respond = hooks_say(pre_tool_use("deny", "the gate says no"))
    async with lab.run(
        [Turn(BASH), "I see."],
        initialize=registered("PreToolUse"),
        respond=respond,
        flags=BYPASS,
        env=AS_ROOT,
    ) as run:
        run.cli.prompt("go")
        await run.cli.result()
        assert not lab.exists("x.txt")
        assert "the gate says no" in last_output(run.cli)[0]


async def test_hook_ask(lab: Lab) -> None:
    """PreToolUse ask: can_use_tool follows"""
    respond = hooks_say(pre_tool_use("ask"), lambda _: Deny("asked and denied"))
    async with lab.run(
        [Turn(BASH), "I see."], initialize=registered("PreToolUse"), respond=respond
    ) as run:
        run.cli.prompt("go")
        await run.cli.result()
        assert asked_tools(list(run.cli.events)) == ["Bash"]
        assert not lab.exists("x.txt")


async def test_hook_ask_in_bypass(lab: Lab) -> None:
    """PreToolUse ask in bypass mode"""
    await _ask_where_the_cli_would_not(lab, COMMAND, BYPASS)


async def test_hook_ask_safe_command(lab: Lab) -> None:
    """PreToolUse ask for a command that the CLI thinks safe"""
    await _ask_where_the_cli_would_not(lab, "echo safe", [])


async def _ask_where_the_cli_would_not(lab: Lab, command: str, flags: list[str]) -> None:
    respond = hooks_say(pre_tool_use("ask"), lambda _: Deny("asked and denied"))
    bash = tool_use("Bash", command=command, description="try")
    async with lab.run(
        [Turn(bash), "I see."],
        initialize=registered("PreToolUse"),
        respond=respond,
        flags=flags,
        env=AS_ROOT,
    ) as run:
        run.cli.prompt("go")
        await run.cli.result()
        asked = asked_tools(list(run.cli.events)) == ["Bash"]
        assert asked is not lab.is_old
        lab.saw("asked" if asked else "RUNS UNASKED")


async def test_hook_error_in_bypass(lab: Lab) -> None:
    """An error answer to a PreToolUse hook in bypass mode (Bridle never writes one)"""

    async with lab.run(
        [Turn(BASH), "Done."], initialize=registered("PreToolUse"), flags=BYPASS, env=AS_ROOT
    ) as run:
        run.cli.prompt("go")
        event = await run.cli.request()
        error = {"subtype": "error", "request_id": event.request_id, "error": "broken"}
        run.cli.write(_line({"type": "control_response", "response": error}))
        await run.cli.result()
        assert lab.exists("x.txt")
        lab.saw("THE TOOL RUNS")


async def test_hook_fail_in_bypass(lab: Lab) -> None:
    """Connection.fail on a PreToolUse hook in bypass mode: the tool does not run"""
    async with lab.run(
        [Turn(BASH), "I see."], initialize=registered("PreToolUse"), flags=BYPASS, env=AS_ROOT
    ) as run:
        run.cli.prompt("go")
        run.cli.fail(await run.cli.request(), "the handler raised")
        await run.cli.result()
        assert not lab.exists("x.txt")
        assert "the handler raised" in last_output(run.cli)[0]


async def test_hook_changed_input(lab: Lab) -> None:
    """PreToolUse allow with updatedInput: what was changed runs"""
    changed = PreToolUseOutput(
        permission_decision="allow", updated_input={"command": "touch other.txt"}
    )
    respond = hooks_say(HookOutput(hook_specific_output=changed))
    async with lab.run(
        [Turn(BASH), "Done."], initialize=registered("PreToolUse"), respond=respond
    ) as run:
        run.cli.prompt("go")
        await run.cli.result()
        assert (lab.exists("other.txt"), lab.exists("x.txt")) == (True, False)


async def test_hook_empty(lab: Lab) -> None:
    """PreToolUse with an empty answer: the normal question follows"""
    respond = hooks_say(HookOutput(), lambda _: Allow())
    async with lab.run(
        [Turn(BASH), "Done."], initialize=registered("PreToolUse"), respond=respond
    ) as run:
        run.cli.prompt("go")
        await run.cli.result()
        assert lab.exists("x.txt")
        assert asked_tools(list(run.cli.events)) == ["Bash"]


async def test_hook_timeout(lab: Lab) -> None:
    """A PreToolUse hook that is not answered in its time, in bypass mode"""
    async with lab.run(
        [Turn(BASH), "Done."],
        initialize=registered("PreToolUse", timeout=1),
        flags=BYPASS,
        env=AS_ROOT,
    ) as run:
        run.cli.prompt("go")
        await run.cli.request()
        await run.cli.result()
        assert not run.cli.connection.pending
        assert lab.exists("x.txt") is lab.is_old
        lab.saw("withdrawn, then THE TOOL RUNS" if lab.is_old else "withdrawn, not run")


async def test_post_tool_use(lab: Lab) -> None:
    """PostToolUse with additionalContext: the model reads it"""
    context = PostToolUseOutput(additional_context="the hook has seen it")
    respond = hooks_say(HookOutput(hook_specific_output=context), lambda _: Allow())
    async with lab.run(
        [Turn(BASH), "Done."], initialize=registered("PostToolUse"), respond=respond
    ) as run:
        run.cli.prompt("go")
        await run.cli.result()
        assert "the hook has seen it" in str(run.model.requests[-1].body)


async def test_stop_block(lab: Lab) -> None:
    """Stop with block: the agent goes on with the reason, and is told that it was held"""
    stops: list[Stop] = []

    def respond(event: RequestReceived) -> Answer | None:
        if isinstance(event.request, HookCallback) and isinstance(event.request.input, Stop):
            stops.append(event.request.input)
            if len(stops) == 1:
                return HookOutput(decision="block", reason="write the tests first")
            return HookOutput()
        return None

    async with lab.run(
        ["Done.", "Now with tests."], initialize=registered("Stop"), respond=respond
    ) as run:
        run.cli.prompt("go")
        assert (await run.cli.result()).result == "Now with tests."
        assert [stop.stop_hook_active for stop in stops] == [False, True]
        assert "write the tests first" in str(run.model.requests[-1].body)


async def test_matchers(lab: Lab) -> None:
    """Matchers: a word is one tool's name, anything else a regular expression"""
    hooks: dict[HookEvent, list[HookMatcher]] = {
        "PreToolUse": [
            HookMatcher(["exact"], matcher="Bash"),
            HookMatcher(["regex"], matcher="^(?!Bash$).*"),
            HookMatcher(["all"]),
        ]
    }
    called: list[str] = []

    def respond(event: RequestReceived) -> Answer | None:
        if isinstance(event.request, HookCallback):
            assert isinstance(event.request.input, PreToolUse)
            called.append(event.request.callback_id)
            return pre_tool_use("allow")
        return None

    async with lab.run(
        [Turn(BASH), "Done."], initialize=Initialize(hooks=hooks), respond=respond
    ) as run:
        run.cli.prompt("go")
        await run.cli.result()
        assert sorted(called) == ["all", "exact"]


def _line(message: dict[str, object]) -> bytes:
    return json.dumps(message).encode() + b"\n"
