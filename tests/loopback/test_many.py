"""Many families at once: each parent runs its own children over its own pipe."""

from __future__ import annotations

import asyncio

import pytest

from bridle.loopback import tools_of
from bridle.supervisor import Supervisor
from bridle.supervisor.states import ENDED
from tests.supervisor.homes import DONE, INIT, ME, Home, Step

from .parents import branching

PARENTS = 50
CHILDREN = 4
ASK = {"tool_name": "Bash", "input": {"command": "rm x"}, "tool_use_id": "t1"}
WORK: list[Step] = [INIT, {"say": "I will"}, {"ask": ASK}, {"say": "I have"}, DONE]


async def run_family(home: Home, supervisor: Supervisor, command: list[str], number: int) -> str:
    """One parent, until its turn is over; its id."""
    parent = await supervisor.create(
        cwd=home.work, by=ME, name=f"p{number}", command=command, prompt="lead",
        loopback=True, policy="autonomous",
    )  # fmt: skip
    await supervisor.wait(parent.id, lambda now: now.turns == 1 or now.state in ENDED)
    await supervisor.stop(parent.id)
    return parent.id


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_fifty_parents_run_four_children_each(home: Home) -> None:
    names = [f"c{number}" for number in range(CHILDREN)]
    command = branching(home, {"lead": [INIT, {"family": names}], "work": WORK})
    size = PARENTS * (CHILDREN + 1)
    async with home.open(loopback=tools_of, size=size) as supervisor:
        async with asyncio.timeout(150):
            parents = await asyncio.gather(
                *(run_family(home, supervisor, command, number) for number in range(PARENTS))
            )
        records = supervisor.list()
        assert len(records) == size
        children = [record for record in records if record.parent]
        assert {record.parent for record in children} == set(parents)
        assert {record.turns for record in records} == {1}
        assert {record.outcome for record in records} == {"complete"}
        approvals = await supervisor.approvals.list()
        assert len(approvals) == PARENTS * CHILDREN
        # Each was decided by its own parent.
        by_child = {record.id: record.parent for record in children}
        for approval in approvals:
            assert approval.decision
            assert getattr(approval.decision.by, "session", "") == by_child[approval.session]
