"""Hooks that we registered."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable

from bridle import Hooks, remind_to_commit
from bridle.process.spec import LaunchOptions
from bridle.protocol.hook_outputs import (
    HookOutput,
    PostToolUseOutput,
    PreToolUseOutput,
    pre_tool_use,
)
from bridle.protocol.hooks import HookEvent, HookMatcher, PostToolUse, PreToolUse, Stop
from bridle.protocol.permissions import Deny
from bridle.protocol.requests import Initialize
from bridle.session.hooks import HookAnswer
from bridle.testing import Conversation, Turn, tool_use

from .lab import BASH, COMMAND, Lab
from .talk import Judge

AS_ROOT = {"IS_SANDBOX": "1"}
BYPASS: LaunchOptions = {"permission_mode": "bypassPermissions", "env": AS_ROOT}


def before_tools(answer: HookAnswer) -> Hooks:
    """A PreToolUse hook for every tool that always says the same."""
    hooks = Hooks()
    hooks.on(PreToolUse)(lambda _: answer)
    return hooks


async def test_hook_allow(lab: Lab) -> None:
    """PreToolUse allow: the tool runs and nothing is asked"""
    judge, hooks = Judge(), before_tools(pre_tool_use("allow"))
    async with lab.session([Turn(BASH), "Done."], approver=judge, hooks=hooks) as talk:
        await talk.say("go")
        assert lab.exists("x.txt")
        assert judge.asked == []


async def test_hook_deny(lab: Lab) -> None:
    """PreToolUse deny: the tool does not run, in bypass mode either"""
    hooks = before_tools(pre_tool_use("deny", "the gate says no"))
    async with lab.session([Turn(BASH), "I see."], hooks=hooks, **BYPASS) as talk:
        heard = await talk.say("go")
        assert not lab.exists("x.txt")
        assert "the gate says no" in heard.last_output()[0]


async def test_hook_ask(lab: Lab) -> None:
    """PreToolUse ask: can_use_tool follows"""
    judge, hooks = Judge(Deny("asked and denied")), before_tools(pre_tool_use("ask"))
    async with lab.session([Turn(BASH), "I see."], approver=judge, hooks=hooks) as talk:
        await talk.say("go")
        assert judge.tools == ["Bash"]
        assert not lab.exists("x.txt")


async def test_hook_ask_in_bypass(lab: Lab) -> None:
    """PreToolUse ask in bypass mode"""
    await _ask_where_the_cli_would_not(lab, COMMAND, BYPASS)


async def test_hook_ask_safe_command(lab: Lab) -> None:
    """PreToolUse ask for a command that the CLI thinks safe"""
    await _ask_where_the_cli_would_not(lab, "echo safe", {})


async def _ask_where_the_cli_would_not(lab: Lab, command: str, launch: LaunchOptions) -> None:
    judge, hooks = Judge(Deny("asked and denied")), before_tools(pre_tool_use("ask"))
    bash = tool_use("Bash", command=command, description="try")
    async with lab.session([Turn(bash), "I see."], approver=judge, hooks=hooks, **launch) as talk:
        await talk.say("go")
        asked = judge.tools == ["Bash"]
        assert asked is not lab.is_old
        lab.saw("asked" if asked else "RUNS UNASKED")


async def test_hook_error_in_bypass(lab: Lab) -> None:
    """An error answer to a PreToolUse hook in bypass mode (Bridle never writes one)"""
    hooks: dict[HookEvent, list[HookMatcher]] = {"PreToolUse": [HookMatcher(["cb"])]}
    async with lab.run(
        [Turn(BASH), "Done."],
        initialize=Initialize(hooks=hooks),
        flags=["--permission-mode", "bypassPermissions"],
        env=AS_ROOT,
    ) as run:
        run.cli.prompt("go")
        event = await run.cli.request()
        error = {"subtype": "error", "request_id": event.request_id, "error": "broken"}
        run.cli.write(_line({"type": "control_response", "response": error}))
        await run.cli.result()
        assert lab.exists("x.txt")
        lab.saw("THE TOOL RUNS")


async def test_hook_fail_in_bypass(lab: Lab) -> None:
    """A PreToolUse hook that raises, in bypass mode: the tool does not run"""
    hooks = Hooks()

    @hooks.on(PreToolUse)
    def broken(event: PreToolUse) -> HookOutput:
        raise LookupError("the register is gone")

    async with lab.session([Turn(BASH), "I see."], hooks=hooks, **BYPASS) as talk:
        heard = await talk.say("go")
        assert not lab.exists("x.txt")
        assert "the register is gone" in heard.last_output()[0]


async def test_hook_changed_input(lab: Lab) -> None:
    """PreToolUse allow with updatedInput: what was changed runs"""
    changed = PreToolUseOutput(
        permission_decision="allow", updated_input={"command": "touch other.txt"}
    )
    async with lab.session([Turn(BASH), "Done."], hooks=before_tools(changed)) as talk:
        await talk.say("go")
        assert (lab.exists("other.txt"), lab.exists("x.txt")) == (True, False)


async def test_hook_empty(lab: Lab) -> None:
    """PreToolUse with an empty answer: the normal question follows"""
    judge = Judge()
    async with lab.session([Turn(BASH), "Done."], approver=judge, hooks=before_tools(None)) as talk:
        await talk.say("go")
        assert lab.exists("x.txt")
        assert judge.tools == ["Bash"]


async def test_hook_timeout(lab: Lab) -> None:
    """A PreToolUse hook that is not answered in its time, in bypass mode (Bridle denies before)"""
    matcher = HookMatcher(["h"], timeout=1)
    async with lab.run(
        [Turn(BASH), "Done."],
        initialize=Initialize(hooks={"PreToolUse": [matcher]}),
        flags=["--permission-mode=bypassPermissions"],
        env=AS_ROOT,
    ) as run:
        run.cli.prompt("go")
        await run.cli.request()
        await run.cli.result()
        assert not run.cli.connection.pending
        assert lab.exists("x.txt") is lab.is_old
        lab.saw("withdrawn, then THE TOOL RUNS" if lab.is_old else "withdrawn, not run")


async def test_slow_hook(lab: Lab) -> None:
    """A PreToolUse hook of a session that takes too long, in bypass mode: denied in time"""
    hooks, fates = Hooks(), list[str]()

    @hooks.on(PreToolUse, timeout=2)
    async def slow(event: PreToolUse) -> HookOutput:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            fates.append("cancelled")
            raise
        return pre_tool_use("allow")

    async with lab.session([Turn(BASH), "I see."], hooks=hooks, **BYPASS) as talk:
        heard = await talk.say("go")
        assert fates == ["cancelled"]
        assert not lab.exists("x.txt")
        assert "no answer in 1.6 s" in heard.last_output()[0]


async def test_post_tool_use(lab: Lab) -> None:
    """PostToolUse with additionalContext: the model reads it"""
    hooks = Hooks()
    hooks.on(PostToolUse)(lambda _: PostToolUseOutput(additional_context="the hook has seen it"))
    async with lab.session([Turn(BASH), "Done."], approver=Judge(), hooks=hooks) as talk:
        await talk.say("go")
        assert "the hook has seen it" in str(talk.model.requests[-1].body)


async def test_stop_block(lab: Lab) -> None:
    """Stop with block: the agent goes on with the reason, and is told that it was held"""
    hooks = Hooks()
    stops: list[Stop] = []

    @hooks.on(Stop)
    def hold_once(event: Stop) -> HookOutput | None:
        stops.append(event)
        if len(stops) > 1:
            return None
        return HookOutput(decision="block", reason="write the tests first")

    async with lab.session(["Done.", "Now with tests."], hooks=hooks) as talk:
        assert (await talk.say("go")).result.result == "Now with tests."
        assert [stop.stop_hook_active for stop in stops] == [False, True]
        assert "write the tests first" in str(talk.model.requests[-1].body)


async def test_matchers(lab: Lab) -> None:
    """Matchers: a word is one tool's name, anything else a regular expression"""
    hooks = Hooks()
    called: list[str] = []

    def noting(name: str) -> Callable[[PreToolUse], HookOutput]:
        def note(event: PreToolUse) -> HookOutput:
            called.append(name)
            return pre_tool_use("allow")

        return note

    hooks.on(PreToolUse, matcher="Bash")(noting("exact"))
    hooks.on(PreToolUse, matcher="^(?!Bash$).*")(noting("regex"))
    hooks.on(PreToolUse)(noting("all"))
    async with lab.session([Turn(BASH), "Done."], hooks=hooks) as talk:
        await talk.say("go")
        assert sorted(called) == ["all", "exact"]


def _line(message: dict[str, object]) -> bytes:
    return json.dumps(message).encode() + b"\n"


async def test_reminder_to_commit(lab: Lab) -> None:
    """The reminder to commit: the first stop is blocked with a reason, the second is not"""
    await asyncio.to_thread(subprocess.run, ["git", "init", "--quiet"], cwd=lab.cwd, check=True)
    (lab.cwd / "new.txt").write_text("not committed\n")
    hooks = Hooks()
    hooks.on(Stop)(remind_to_commit())
    # In a repository old CLIs ask the model something more.
    script = Conversation(["I stop."], then="I stop all the same.")
    async with lab.session(script, hooks=hooks) as talk:
        assert (await talk.say("go")).result.result == "I stop all the same."
        assert "uncommitted changes" in str(talk.model.requests[-1].body)
        assert "new.txt" in str(talk.model.requests[-1].body)
