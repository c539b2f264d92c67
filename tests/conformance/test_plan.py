"""Plan mode."""

from __future__ import annotations

from bridle.process.spec import LaunchOptions
from bridle.protocol.permissions import Allow, Deny, SetMode
from bridle.testing import Turn, tool_use

from .lab import Lab
from .talk import Judge

PLAN = tool_use("ExitPlanMode", plan="1. write planned.txt\n2. stop")
# Without it the newest CLI asks a classifier model in plan mode, which a script can't play.
LAUNCH: LaunchOptions = {"settings": {"useAutoModeDuringPlan": False}}


async def test_plan_approval(lab: Lab) -> None:
    """A plan is approved with setMode acceptEdits: the edit that follows is not asked"""
    write = tool_use("Write", file_path=str(lab.cwd / "planned.txt"), content="planned\n")
    mode = SetMode(mode="acceptEdits", destination="session")
    judge = Judge(Allow(updated_permissions=[mode]))
    script: list[Turn | str] = [Turn("My plan.", PLAN), Turn(write), "Carried out."]
    async with lab.session(script, approver=judge, **LAUNCH) as talk:
        await talk.session.set_permission_mode("plan")
        heard = await talk.say("plan it")
        (request,) = judge.asked
        assert request.tool_name == "ExitPlanMode"
        assert ("plan" in request.input) is lab.is_old
        lab.saw("the plan is in the input" if lab.is_old else "the input is empty")
        assert heard.result.result == "Carried out."
        assert lab.exists("planned.txt")


async def test_plan_refused(lab: Lab) -> None:
    """A plan is refused: the model is told why and stays in plan mode"""
    judge = Judge(Deny("too short"))
    script: list[Turn | str] = [Turn("My plan.", PLAN), "I think again."]
    async with lab.session(script, approver=judge, **LAUNCH) as talk:
        await talk.session.set_permission_mode("plan")
        heard = await talk.say("plan it")
        assert heard.result.result == "I think again."
        assert "too short" in heard.last_output()[0]
        assert talk.session.permission_mode == "plan"
