"""What was judged is what runs, whatever a user's settings and a CLI's claims say."""

from __future__ import annotations

import asyncio
import json
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import bridle
from bridle.errors import InvalidLaunch, SessionClosed
from bridle.policy import Policy
from bridle.process.spec import LaunchOptions
from bridle.protocol.permissions import Allow, Decision, Deny
from bridle.testing import ScriptedModel, Turn, tool_use

from .lab import BASH, Lab
from .talk import Desk, Judge, hear

BYPASS: LaunchOptions = {"permission_mode": "bypassPermissions", "env": {"IS_SANDBOX": "1"}}
#: What a hook in the user's settings puts in the place of a command.
OTHER = {"command": "touch other.txt", "description": "another"}
#: How long to wait for what some versions never do.
SHORT_SECONDS = 3.0


def user_hook(lab: Lab, event: str, output: dict[str, Any], seconds: float = 0) -> None:
    """A hook in the user's own settings, and a file that shows that it was called."""
    lab.config_dir.mkdir(parents=True, exist_ok=True)
    said = json.dumps({"hookSpecificOutput": {"hookEventName": event, **output}})
    command = f"touch {lab.home / 'called'}; sleep {seconds}; echo {shlex.quote(said)}"
    hook = {"hooks": [{"type": "command", "command": command}]}
    (lab.config_dir / "settings.json").write_text(json.dumps({"hooks": {event: [hook]}}))


def answers_permission_requests(lab: Lab) -> None:
    decision = {"behavior": "allow", "updatedInput": OTHER}
    user_hook(lab, "PermissionRequest", {"decision": decision})


class SlowJudge(Judge):
    """One that leaves others the time to answer first."""

    async def __call__(self, request: bridle.CanUseTool) -> Decision:  # type: ignore[override]
        await asyncio.sleep(1)
        return super().__call__(request)


@pytest.mark.parametrize("launch", [{}, BYPASS])
async def test_permission_hook_of_the_user(lab: Lab, launch: LaunchOptions) -> None:
    """A PermissionRequest hook in the user's settings allows all: the approver's no holds"""
    answers_permission_requests(lab)
    judge = SlowJudge(Deny("not that"))
    async with lab.session([Turn(BASH), "Pity."], approver=judge, policy="ask", **launch) as talk:
        heard = await talk.say("go")
        assert judge.tools == ["Bash"]
        assert "not that" in heard.last_output()[0]
    assert not lab.exists("t.txt")
    assert not lab.exists("other.txt")


async def test_permission_hook_of_the_user_and_a_yes(lab: Lab) -> None:
    """The same, and the approver says yes: what it saw is what runs"""
    answers_permission_requests(lab)
    judge = SlowJudge()
    async with lab.session([Turn(BASH), "Done."], approver=judge, policy="ask") as talk:
        await talk.say("go")
    assert lab.exists("t.txt")
    assert not lab.exists("other.txt")


async def test_permission_hook_of_the_user_and_a_question(lab: Lab) -> None:
    """The same about AskUserQuestion: the approver's answer reaches the model"""
    user_hook(lab, "PermissionRequest", {"decision": {"behavior": "allow"}})
    options = [{"label": name, "description": "a colour"} for name in ("Blue", "Red")]
    asked = {"question": "Which colour?", "header": "Colour", "multiSelect": False}
    questions = [{**asked, "options": options}]
    judge = SlowJudge(Allow({"questions": questions, "answers": {"Which colour?": "Blue"}}))
    turn = Turn(tool_use("AskUserQuestion", questions=questions))
    async with lab.session([turn, "Blue."], approver=judge, policy="ask") as talk:
        heard = await talk.say("go")
        assert judge.tools == ["AskUserQuestion"]
        assert "Blue" in heard.last_output()[0]


async def test_permission_hook_of_the_user_and_a_plan(lab: Lab) -> None:
    """The same about a plan: the approver's no holds"""
    user_hook(lab, "PermissionRequest", {"decision": {"behavior": "allow"}})
    judge = SlowJudge(Deny("too short"))
    script: list[Turn | str] = [Turn(tool_use("ExitPlanMode", plan="1. go")), "I think again."]
    settings = {"useAutoModeDuringPlan": False}
    async with lab.session(script, approver=judge, policy="ask", settings=settings) as talk:
        await talk.session.set_permission_mode("plan")
        heard = await talk.say("plan it")
        assert "too short" in heard.last_output()[0]
        assert talk.session.permission_mode == "plan"


async def test_input_changed_by_the_users_settings(lab: Lab) -> None:
    """The user's hook changes an allowed input: what was judged runs, or the agent stops"""
    await _changed_after(lab, 0)


async def test_input_changed_late_by_the_users_settings(lab: Lab) -> None:
    """The same, a second after our own hook has answered"""
    lab.saw("the agent stops" if await _changed_after(lab, 1) else "what was judged runs")


async def _changed_after(lab: Lab, seconds: float) -> bool:
    """Whether the user's hook, which takes so long, wins: then the agent must have stopped."""
    user_hook(lab, "PreToolUse", {"permissionDecision": "allow", "updatedInput": OTHER}, seconds)
    policy = Policy(allow=["Bash(touch t.txt)", "Bash(echo:*)", "Edit(/x.txt)"])
    async with lab.session([Turn(BASH), "Done."], policy=policy) as talk:
        turn = await talk.session.send("go")
        with suppress(SessionClosed):
            await hear(turn)
        is_changed = lab.exists("other.txt")
        if is_changed:
            with pytest.raises(SessionClosed, match=r"ran with another input.*touch other.txt"):
                await talk.session.send("go on")
        else:
            assert lab.exists("t.txt")
    assert (lab.home / "called").exists()
    return is_changed


def liar(lab: Lab, folder: Path) -> list[str]:
    """The CLI, as one that says it is of a version which does not exist."""
    path = folder / "claude"
    path.write_text(
        "#!/bin/sh\n"
        'case "$1" in --version) echo "9.9.9 (Claude Code)"; exit;; esac\n'
        f'exec {shlex.join(lab.cli.command)} "$@"\n'
    )
    path.chmod(0o700)
    return [str(path)]


@pytest.mark.parametrize("command", ["touch t.txt && echo hi > x.txt", "echo safe"])
@pytest.mark.parametrize("settings", [{}, {"disableAllHooks": True}])
async def test_a_version_that_does_not_exist(
    lab: Lab, tmp_path: Path, command: str, settings: dict[str, Any]
) -> None:
    """A CLI that calls itself 9.9.9, in bypass mode: the gate sees all, or it is not used"""
    lab.config_dir.mkdir(parents=True)
    (lab.config_dir / "settings.json").write_text(json.dumps(settings))
    judge = Judge(Deny("not that"))
    turn = Turn(tool_use("Bash", command=command, description="try"))
    async with ScriptedModel([] if lab.is_old else [turn, "Pity."]) as model:
        launch = lab._launch(model, {**BYPASS, "command": liar(lab, tmp_path)})
        launch["env"] = {**model.environment(lab.home), "IS_SANDBOX": "1"}
        connecting = bridle.connect(approver=judge, **launch)
        if lab.is_old:
            with pytest.raises(InvalidLaunch, match="answers like an older one"):
                await connecting.__aenter__()
        else:
            async with connecting as session:
                heard = await hear(await session.send("go"))
                assert judge.tools == ["Bash"]
                assert "not that" in heard.last_output()[0]
    assert not lab.exists("t.txt")
    lab.saw("not used" if lab.is_old else "the gate sees all")


async def test_the_directory_changes_before_an_approved_call(lab: Lab) -> None:
    """A call waits for approval while another one changes the directory: it does not run there"""
    (lab.cwd / "v").mkdir()
    desk = Desk()
    both = Turn(
        tool_use("Bash", command="pwd", description="where"),
        tool_use("Bash", command="cd v", description="go"),
    )
    policy = Policy("edits", allow=["Bash(cd:*)"], ask=["Bash(pwd)"])
    async with lab.session([both, "Done."], approver=desk, policy=policy) as talk:
        turn = await talk.session.send("go")
        question = await desk.question()
        moved = await _has_moved(talk.wire.received)
        question.decision.set_result(Allow())
        heard = await hear(turn)
        outputs = [last for last in heard.outputs() if "cd v" not in last]
        if moved:
            assert any("the working directory" in one for one in outputs)
        else:
            assert str(lab.cwd) in outputs
        assert str(lab.cwd / "v") not in outputs


async def _has_moved(received: list[bytes]) -> bool:
    """Whether the `cd` has run; where the CLI makes one call after the other, it does not."""
    end = asyncio.get_running_loop().time() + SHORT_SECONDS
    while asyncio.get_running_loop().time() < end:
        if any(b'"tool_result"' in line for line in received):
            return True
        await asyncio.sleep(0.01)
    return False


async def test_rules_of_the_user(lab: Lab) -> None:
    """Deny and ask rules of the user's settings hold where Bridle's policy allows the call"""
    lab.config_dir.mkdir(parents=True)
    rules = {"deny": ["Bash(touch:*)"], "ask": ["Bash(mkdir:*)"]}
    (lab.config_dir / "settings.json").write_text(json.dumps({"permissions": rules}))
    script: list[Turn | str] = [
        Turn(tool_use("Bash", command="touch t.txt", description="try")),
        Turn(tool_use("Bash", command="mkdir d", description="try")),
        "Done.",
    ]
    judge = Judge(Deny("not that"))
    async with lab.session(script, approver=judge, policy=Policy(allow=["Bash"])) as talk:
        heard = await talk.say("go")
        assert "Bridle denied this" in heard.outputs()[0]
        assert "not that" in heard.outputs()[1]
        assert judge.tools == ["Bash"]
    assert not lab.exists("t.txt")
    assert not lab.exists("d")
