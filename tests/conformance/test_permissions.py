"""Permissions: what an answer to can_use_tool does."""

from __future__ import annotations

from bridle.protocol.content import suggestions
from bridle.protocol.events import Success
from bridle.protocol.messages import Result
from bridle.protocol.permissions import (
    AddDirectories,
    AddRules,
    Allow,
    Deny,
    PermissionRule,
    SetMode,
)
from bridle.protocol.requests import Initialize, SetPermissionMode
from bridle.protocol.system import Init, Status
from bridle.protocol.unknown import Unknown
from bridle.testing import Turn, tool_use

from .lab import BASH, COMMAND, Lab, allow, asked_tool, last_output


async def test_allow(lab: Lab) -> None:
    """Allow: the tool runs, once, with the input that was asked"""
    bash = tool_use("Bash", command="touch t.txt && echo once >> x.txt", description="write x")
    async with lab.run([Turn("Running.", bash), "Done."], initialize=Initialize()) as run:
        run.cli.prompt("go")
        event = await run.cli.request()
        request = asked_tool(event)
        assert (request.tool_name, request.input) == ("Bash", bash.input)
        assert not lab.exists("x.txt")
        assert not [s for s in suggestions(request) if isinstance(s, Unknown)]
        run.cli.answer(event, Allow())
        result = await run.cli.result()
        assert (lab.cwd / "x.txt").read_text() == "once\n"
        assert result.permission_denials == []


async def test_deny(lab: Lab) -> None:
    """Deny: the tool does not run, the model is told why, the turn goes on"""
    async with lab.run([Turn(BASH), "I see."], initialize=Initialize()) as run:
        run.cli.prompt("go")
        run.cli.answer(await run.cli.request(), Deny("not on a Sunday"))
        result = await run.cli.result()
        assert not lab.exists("x.txt")
        assert last_output(run.cli) == ("not on a Sunday", True)
        assert [denial.tool_name for denial in result.permission_denials] == ["Bash"]
        assert result.result == "I see."


async def test_deny_with_interrupt(lab: Lab) -> None:
    """Deny with interrupt: the turn ends, the process lives"""
    async with lab.run([Turn(BASH), "Next turn."], initialize=Initialize()) as run:
        run.cli.prompt("go")
        run.cli.answer(await run.cli.request(), Deny("stop now", interrupt=True))
        result = await run.cli.result()
        assert (result.subtype, lab.exists("x.txt")) == ("error_during_execution", False)
        lab.saw(f"`is_error: {str(result.is_error).lower()}`")
        run.cli.prompt("go on")
        assert (await run.cli.result()).result == "Next turn."


async def test_changed_input(lab: Lab) -> None:
    """Allow with changed input: what was changed runs"""
    async with lab.run([Turn(BASH), "Done."], initialize=Initialize()) as run:
        run.cli.prompt("go")
        event = await run.cli.request()
        changed = {**asked_tool(event).input, "command": "touch other.txt"}
        run.cli.answer(event, Allow(updated_input=changed))
        await run.cli.result()
        assert (lab.exists("other.txt"), lab.exists("x.txt")) == (True, False)


async def test_permission_updates(lab: Lab) -> None:
    """Allow with a session rule: the CLI stops asking for that tool"""
    rules = [PermissionRule("Bash")]
    updates = [AddRules(rules=rules, behavior="allow", destination="session")]
    async with lab.run([Turn(BASH), "One.", Turn(BASH), "Two."], initialize=Initialize()) as run:
        run.cli.prompt("go")
        run.cli.answer(await run.cli.request(), Allow(updated_permissions=updates))
        await run.cli.result()
        (lab.cwd / "x.txt").unlink()
        run.cli.prompt("again")
        assert (await run.cli.result()).result == "Two."
        assert lab.exists("x.txt")
        assert not run.cli.connection.pending


async def test_directories(lab: Lab) -> None:
    """Allow with addDirectories for the session"""
    outside = lab.cwd.parent / "outside"
    outside.mkdir()
    write = tool_use("Write", file_path=str(outside / "w.txt"), content="w")
    update = AddDirectories(directories=[str(outside)], destination="session")
    async with lab.run([Turn(write), "Done."], initialize=Initialize()) as run:
        run.cli.prompt("go")
        run.cli.answer(await run.cli.request(), Allow(updated_permissions=[update]))
        await run.cli.result()
        assert (outside / "w.txt").exists()


async def test_mode_switch_in_answer(lab: Lab) -> None:
    """Allow with setMode acceptEdits: a later edit is not asked"""
    write = tool_use("Write", file_path=str(lab.cwd / "w.txt"), content="w")
    mode = SetMode(mode="acceptEdits", destination="session")
    async with lab.run([Turn(BASH), Turn(write), "Done."], initialize=Initialize()) as run:
        run.cli.prompt("go")
        run.cli.answer(await run.cli.request(), Allow(updated_permissions=[mode]))
        await run.cli.result()
        assert lab.exists("w.txt")
        told = [m.permission_mode for m in run.cli.messages(Status) if m.permission_mode]
        assert told == ([] if lab.is_old else ["acceptEdits"])
        lab.saw("not told" if lab.is_old else "told by `system/status`")


async def test_error_answer(lab: Lab) -> None:
    """An error in place of a decision: the tool does not run"""
    async with lab.run([Turn(BASH), "I see."], initialize=Initialize()) as run:
        run.cli.prompt("go")
        run.cli.fail(await run.cli.request(), "the approver is gone")
        await run.cli.result()
        text, is_error = last_output(run.cli)
        assert (lab.exists("x.txt"), is_error) == (False, True)
        assert "the approver is gone" in text


async def test_unanswerable_answer(lab: Lab) -> None:
    """An answer that is no decision: the tool does not run"""
    async with lab.run([Turn(BASH), "I see."], initialize=Initialize()) as run:
        run.cli.prompt("go")
        event = await run.cli.request()
        line = run.cli.connection.answer(event.request_id, Deny("x"))
        run.cli.write(line.replace(b'"behavior":"deny"', b'"behavior":"perhaps"'))
        await run.cli.result()
        assert not lab.exists("x.txt")


async def test_second_answer(lab: Lab) -> None:
    """A second answer to one request, and an answer to an id that was never asked: ignored"""
    async with lab.run([Turn(BASH), "I see."], initialize=Initialize()) as run:
        run.cli.prompt("go")
        event = await run.cli.request()
        later = type(run.cli.connection).restore(run.cli.connection.save(), nonce="later")
        denied = run.cli.connection.answer(event.request_id, Deny("no"))
        allowed = later.answer(event.request_id, Allow())
        run.cli.write(denied + allowed + denied.replace(event.request_id.encode(), b"never-asked"))
        assert (await run.cli.result()).result == "I see."
        assert not lab.exists("x.txt")


async def test_launch_without_prompt_tool(lab: Lab) -> None:
    """Launched without a permission prompt: refused, and listed in permission_denials"""
    async with lab.run([Turn(BASH), "I see."], ask_us=False, initialize=Initialize()) as run:
        run.cli.prompt("go")
        result = await run.cli.result()
        assert not lab.exists("x.txt")
        assert [denial.tool_input["command"] for denial in result.permission_denials] == [COMMAND]


async def test_set_permission_mode(lab: Lab) -> None:
    """set_permission_mode acceptEdits: a Write is not asked"""
    write = tool_use("Write", file_path=str(lab.cwd / "w.txt"), content="w")
    async with lab.run([Turn(write), "Done."], initialize=Initialize()) as run:
        outcome = await run.cli.ask(SetPermissionMode("acceptEdits"))
        assert isinstance(outcome, Success)
        run.cli.prompt("go")
        await run.cli.result()
        assert lab.exists("w.txt")
        assert run.cli.messages(Init)[-1].permission_mode == "acceptEdits"
        extra = run.cli.connection.counters.duplicate_responses
        assert extra == (1 if lab.is_old else 0)
        lab.saw("answered twice" if extra else "answered once")


async def test_bypass_not_launched(lab: Lab) -> None:
    """set_permission_mode bypassPermissions without a launch flag for it"""
    async with lab.run([Turn(BASH), "Done."], initialize=Initialize(), respond=allow) as run:
        outcome = await run.cli.ask(SetPermissionMode("bypassPermissions"))
        run.cli.prompt("go")
        await run.cli.result()
        mode = run.cli.messages(Init)[-1].permission_mode
        assert isinstance(outcome, Success) is lab.is_old
        assert mode == ("bypassPermissions" if lab.is_old else "default")
        lab.saw("obeyed" if lab.is_old else f"refused: `{getattr(outcome, 'code', None)}`")


async def test_ask_user_question(lab: Lab) -> None:
    """AskUserQuestion: answered through updatedInput.answers"""
    options = [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]
    question = {
        "question": "Which colour?",
        "header": "Colour",
        "options": options,
        "multiSelect": False,
    }
    ask = tool_use("AskUserQuestion", questions=[question])
    async with lab.run([Turn(ask), "Blue it is."], initialize=Initialize()) as run:
        run.cli.prompt("go")
        event = await run.cli.request()
        given = {**asked_tool(event).input, "answers": {"Which colour?": "Blue"}}
        run.cli.answer(event, Allow(updated_input=given))
        await run.cli.result()
        text, is_error = last_output(run.cli)
        assert "Blue" in text
        assert not is_error


async def test_max_turns(lab: Lab) -> None:
    """--max-turns: the turn ends with error_max_turns"""
    flags = ["--max-turns", "1"]
    async with lab.run(
        [Turn(BASH), Turn(BASH), "Never."], flags=flags, initialize=Initialize(), respond=allow
    ) as run:
        run.cli.prompt("go")
        result = await run.cli.result()
        assert result.subtype == "error_max_turns"
        assert len(run.cli.messages(Result)) == 1
