"""What a supervisor hears of the past when it takes an agent up is not noted again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bridle.approvals import ApprovePlan, Person
from bridle.approvals.events import WENT_ON
from bridle.supervisor.opening import open_supervisor
from bridle.testing import FakeCli

from .leftovers import no_leftovers

ANN = Person("ann", "test")
PLAN: list[dict[str, Any]] = [
    {"prompt": True},
    {"init": {"permissionMode": "plan"}},
    {"ask": {"tool_name": "ExitPlanMode", "input": {"plan": "go"}, "tool_use_id": "toolu_1"}},
    {"message": {"type": "system", "subtype": "status", "permissionMode": "acceptEdits"}},
    {"result": "planned"},
]


async def test_how_a_plan_went_on_is_noted_once_however_often_it_is_taken_up(
    tmp_path: Path,
) -> None:
    home, cli = tmp_path / "home", FakeCli(PLAN, tmp_path / "agents")
    async with no_leftovers(tmp_path):
        async with open_supervisor(home) as supervisor:
            session = await supervisor.create(
                cwd=tmp_path, by=ANN, prompt="plan it", command=cli.command
            )
            async for changed in supervisor.approvals.watch():
                if changed:
                    break
            await supervisor.approvals.decide(changed[0].id, ApprovePlan("acceptEdits"), by=ANN)
            await supervisor.wait(session.id, lambda record: record.turns == 1, 20)
        for _ in range(3):
            async with open_supervisor(home):
                pass
        async with open_supervisor(home) as supervisor:
            events = await supervisor.journal.log.read(session.id, 0, 500)
            await supervisor.stop(session.id)
    assert [event.kind for event in events].count(WENT_ON) == 1
