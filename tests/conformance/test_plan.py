"""Plan mode."""

from __future__ import annotations

from bridle.protocol.permissions import Allow, Deny, SetMode
from bridle.protocol.requests import Initialize, SetPermissionMode
from bridle.testing import Turn, tool_use

from .lab import Lab, answered, asked_tool, last_output, settings

PLAN = tool_use("ExitPlanMode", plan="1. write planned.txt\n2. stop")
# Without it the newest CLI asks a classifier model in plan mode, which a script can't play.
FLAGS = [settings(useAutoModeDuringPlan=False)]


async def test_plan_approval(lab: Lab) -> None:
    """A plan is approved with setMode acceptEdits: the edit that follows is not asked"""
    write = tool_use("Write", file_path=str(lab.cwd / "planned.txt"), content="planned\n")
    async with lab.run(
        [Turn("My plan.", PLAN), Turn(write), "Carried out."], flags=FLAGS, initialize=Initialize()
    ) as run:
        await answered(run.cli, SetPermissionMode("plan"))
        run.cli.prompt("plan it")
        event = await run.cli.request()
        request = asked_tool(event)
        assert request.tool_name == "ExitPlanMode"
        assert ("plan" in request.input) is lab.is_old
        lab.saw("the plan is in the input" if lab.is_old else "the input is empty")
        mode = SetMode(mode="acceptEdits", destination="session")
        run.cli.answer(event, Allow(updated_permissions=[mode]))
        assert (await run.cli.result()).result == "Carried out."
        assert lab.exists("planned.txt")


async def test_plan_refused(lab: Lab) -> None:
    """A plan is refused: the model is told why and stays in plan mode"""
    async with lab.run(
        [Turn("My plan.", PLAN), "I think again."], flags=FLAGS, initialize=Initialize()
    ) as run:
        await answered(run.cli, SetPermissionMode("plan"))
        run.cli.prompt("plan it")
        run.cli.answer(await run.cli.request(), Deny("too short"))
        assert (await run.cli.result()).result == "I think again."
        assert "too short" in last_output(run.cli)[0]
