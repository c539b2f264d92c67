"""Permissions: what an answer to can_use_tool does."""

from __future__ import annotations

import pytest

from bridle.errors import ControlFailed
from bridle.protocol.content import suggestions
from bridle.protocol.control import CanUseTool
from bridle.protocol.messages import Result, User
from bridle.protocol.permissions import (
    AddDirectories,
    AddRules,
    Allow,
    Deny,
    PermissionMode,
    PermissionRule,
    SetMode,
)
from bridle.protocol.requests import Initialize
from bridle.protocol.system import Init, Status
from bridle.protocol.unknown import Unknown
from bridle.testing import Conversation, Turn, tool_use

from .lab import BASH, COMMAND, Lab
from .talk import Desk, Judge, hear, last_output


async def test_allow(lab: Lab) -> None:
    """Allow: the tool runs, once, with the input that was asked"""
    bash = tool_use("Bash", command="touch t.txt && echo once >> x.txt", description="write x")
    desk = Desk()
    async with lab.session([Turn("Running.", bash), "Done."], approver=desk) as talk:
        turn = await talk.session.send("go")
        question = await desk.question()
        request = question.request
        assert (request.tool_name, request.input) == ("Bash", bash.input)
        assert not lab.exists("x.txt")
        assert not [s for s in suggestions(request) if isinstance(s, Unknown)]
        question.decision.set_result(Allow())
        heard = await hear(turn)
        assert (lab.cwd / "x.txt").read_text() == "once\n"
        assert heard.result.permission_denials == []


async def test_deny(lab: Lab) -> None:
    """Deny: the tool does not run, the model is told why, the turn goes on"""
    judge = Judge(Deny("not on a Sunday"))
    async with lab.session([Turn(BASH), "I see."], approver=judge) as talk:
        heard = await talk.say("go")
        assert not lab.exists("x.txt")
        assert heard.last_output() == ("not on a Sunday", True)
        assert [denial.tool_name for denial in heard.result.permission_denials] == ["Bash"]
        assert heard.result.result == "I see."


async def test_deny_with_interrupt(lab: Lab) -> None:
    """Deny with interrupt: the turn ends, the process lives"""
    judge = Judge(Deny("stop now", interrupt=True))
    async with lab.session([Turn(BASH), "Next turn."], approver=judge) as talk:
        result = (await talk.say("go")).result
        assert (result.subtype, lab.exists("x.txt")) == ("error_during_execution", False)
        assert result.is_interrupted
        lab.saw(f"`is_error: {str(result.is_error).lower()}`")
        assert (await talk.say("go on")).result.result == "Next turn."


async def test_no_approver(lab: Lab) -> None:
    """A session without an approver: denied, and the model is told so"""
    async with lab.session([Turn(BASH), "I see."]) as talk:
        heard = await talk.say("go")
        text, is_error = heard.last_output()
        assert (lab.exists("x.txt"), is_error) == (False, True)
        assert "nobody is there to approve it" in text


async def test_approver_raises(lab: Lab) -> None:
    """An approver that raises: denied, and the model is told why"""

    def broken(request: CanUseTool) -> Allow:
        raise LookupError("the register is gone")

    async with lab.session([Turn(BASH), "I see."], approver=broken) as talk:
        heard = await talk.say("go")
        text, is_error = heard.last_output()
        assert (lab.exists("x.txt"), is_error) == (False, True)
        assert "the register is gone" in text


async def test_changed_input(lab: Lab) -> None:
    """Allow with changed input: what was changed runs"""

    def change(request: CanUseTool) -> Allow:
        return Allow(updated_input={**request.input, "command": "touch other.txt"})

    async with lab.session([Turn(BASH), "Done."], approver=change) as talk:
        await talk.say("go")
        assert (lab.exists("other.txt"), lab.exists("x.txt")) == (True, False)


async def test_permission_updates(lab: Lab) -> None:
    """Allow with a session rule: the CLI stops asking for that tool"""
    rules = [PermissionRule("Bash")]
    updates = [AddRules(rules=rules, behavior="allow", destination="session")]
    judge = Judge(Allow(updated_permissions=updates))
    async with lab.session([Turn(BASH), "One.", Turn(BASH), "Two."], approver=judge) as talk:
        await talk.say("go")
        (lab.cwd / "x.txt").unlink()
        assert (await talk.say("again")).result.result == "Two."
        assert lab.exists("x.txt")
        assert judge.tools == ["Bash"]


async def test_directories(lab: Lab) -> None:
    """Allow with addDirectories for the session"""
    outside = lab.cwd.parent / "outside"
    outside.mkdir()
    write = tool_use("Write", file_path=str(outside / "w.txt"), content="w")
    update = AddDirectories(directories=[str(outside)], destination="session")
    judge = Judge(Allow(updated_permissions=[update]))
    async with lab.session([Turn(write), "Done."], approver=judge) as talk:
        await talk.say("go")
        assert (outside / "w.txt").exists()


async def test_mode_switch_in_answer(lab: Lab) -> None:
    """Allow with setMode acceptEdits: a later edit is not asked"""
    write = tool_use("Write", file_path=str(lab.cwd / "w.txt"), content="w")
    mode = SetMode(mode="acceptEdits", destination="session")
    judge = Judge(Allow(updated_permissions=[mode]))
    async with lab.session([Turn(BASH), Turn(write), "Done.", "More."], approver=judge) as talk:
        heard = await talk.say("go")
        assert lab.exists("w.txt")
        assert judge.tools == ["Bash"]
        told = [m.permission_mode for m in heard.of(Status) if m.permission_mode]
        assert told == ([] if lab.is_old else ["acceptEdits"])
        assert talk.session.permission_mode == ("default" if lab.is_old else "acceptEdits")
        lab.saw("not told before the next turn" if lab.is_old else "told by `system/status`")
        await talk.say("more")
        assert talk.session.permission_mode == "acceptEdits"


async def test_error_answer(lab: Lab) -> None:
    """An error in place of a decision: the tool does not run"""
    async with lab.run([Turn(BASH), "I see."], initialize=Initialize()) as run:
        run.cli.prompt("go")
        run.cli.fail(await run.cli.request(), "the approver is gone")
        await run.cli.result()
        text, is_error = last_output(run.cli.messages(User))
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
    judge = Judge()
    async with lab.session([Turn(write), "Done."], approver=judge) as talk:
        await talk.session.set_permission_mode("acceptEdits")
        heard = await talk.say("go")
        assert lab.exists("w.txt")
        assert judge.asked == []
        assert heard.of(Init)[-1].permission_mode == "acceptEdits"
        extra = talk.session.counters.duplicate_responses
        assert extra == (1 if lab.is_old else 0)
        lab.saw("answered twice" if extra else "answered once")


async def test_confirmed_mode(lab: Lab) -> None:
    """The permission mode that a session tells is the one that the CLI has confirmed"""
    modes: list[PermissionMode] = ["plan", "acceptEdits"]
    async with lab.session(Conversation([], then="Hi.")) as talk:
        assert talk.session.permission_mode == (None if lab.is_old else "default")
        lab.saw("not known before the first answer" if lab.is_old else "known from the start")
        for mode in modes:
            told = await talk.session.set_permission_mode(mode)
            assert told.mode == talk.session.permission_mode == mode
            heard = await talk.say("hi")
            assert [init.permission_mode for init in heard.of(Init)] == [mode]
            assert talk.session.permission_mode == mode


async def test_bypass_not_launched(lab: Lab) -> None:
    """set_permission_mode bypassPermissions without a launch flag for it"""
    async with lab.session([Turn(BASH), "Done."], approver=Judge()) as talk:
        if lab.is_old:
            await talk.session.set_permission_mode("bypassPermissions")
            lab.saw("obeyed")
        else:
            with pytest.raises(ControlFailed) as raised:
                await talk.session.set_permission_mode("bypassPermissions")
            assert talk.session.permission_mode == "default"
            lab.saw(f"refused: `{raised.value.code}`")
        heard = await talk.say("go")
        mode = heard.of(Init)[-1].permission_mode
        assert mode == ("bypassPermissions" if lab.is_old else "default")
        assert talk.session.permission_mode == mode


async def test_ask_user_question(lab: Lab) -> None:
    """AskUserQuestion: answered through updatedInput.answers"""
    options = [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]
    question = {
        "question": "Which colour?",
        "header": "Colour",
        "options": options,
        "multiSelect": False,
    }

    def blue(request: CanUseTool) -> Allow:
        assert request.tool_name == "AskUserQuestion"
        return Allow(updated_input={**request.input, "answers": {"Which colour?": "Blue"}})

    ask = tool_use("AskUserQuestion", questions=[question])
    async with lab.session([Turn(ask), "Blue it is."], approver=blue) as talk:
        text, is_error = (await talk.say("go")).last_output()
        assert "Blue" in text
        assert not is_error


async def test_max_turns(lab: Lab) -> None:
    """--max-turns: the turn ends with error_max_turns"""
    script: list[Turn | str] = [Turn(BASH), Turn(BASH), "Never."]
    async with lab.session(script, approver=Judge(), max_turns=1) as talk:
        heard = await talk.say("go")
        assert heard.result.subtype == "error_max_turns"
        assert len(heard.of(Result)) == 1
