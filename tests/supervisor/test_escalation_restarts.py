"""What is put to an ancestor stays so when the supervisor goes; what came due meanwhile goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from bridle.approvals import Agent, Approval, Approve, SystemClock
from bridle.errors import BridleError
from bridle.supervisor import Supervisor

from .asking import Order
from .families import ASK, MAY, family, limited, put_to
from .homes import ASKS, LIMIT, ME, Home, asked, until

REPO = Path(__file__).parents[2]


async def killed_while_it_asks(home: Home, escalate_after: float) -> Approval:
    """What was put to a parent when the controller was killed."""
    order = Order(str(home.folder), str(home.work), home.cli(*ASKS).command, escalate_after)
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.supervisor.asking", msgspec.json.encode(order).decode()),
        cwd=REPO,
        stdout=asyncio.subprocess.PIPE,
    )
    assert program.stdout
    try:
        async with asyncio.timeout(LIMIT):
            line = await program.stdout.readline()
    finally:
        program.send_signal(signal.SIGKILL)
        await program.wait()
    return msgspec.json.decode(line, type=Approval)


async def test_a_parent_answers_what_it_was_asked_before_the_controller_was_killed(
    home: Home,
) -> None:
    approval = await killed_while_it_asks(home, 300)
    async with home.open(escalate_after=300) as supervisor:
        found = await supervisor.approvals.get(approval.id)
        assert found.steps == approval.steps
        decided = await supervisor.respond(found.id, Approve(), by=Agent(found.asked))
        assert decided.status == "allowed"
        await until(supervisor, approval.session, "idle")
        await home.reported('"behavior": "allow"')


@pytest.mark.slow
async def test_what_came_due_while_nobody_was_there_goes_on_at_once(home: Home) -> None:
    approval = await killed_while_it_asks(home, 1)
    assert approval.asked
    until_then = approval.steps[-1].until
    assert until_then
    await SystemClock().until(until_then)
    async with home.open(escalate_after=300) as supervisor:
        found = await put_to(supervisor, approval.id, "")
        assert "did not answer" in found.steps[-1].why
        await supervisor.approvals.decide(found.id, Approve(), by=ME)
        await until(supervisor, approval.session, "idle")


async def test_what_was_put_to_one_that_ended_meanwhile_goes_on_at_once(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        made = await family(home, supervisor, MAY, MAY, orphans="hand over")
        launch = supervisor.get(made.parent).launch
        assert launch
        assert launch.pid
    os.kill(launch.pid, signal.SIGKILL)
    async with home.open() as supervisor:
        found = await put_to(supervisor, made.approval.id, made.root)
        assert [step.to for step in found.steps] == [made.parent, made.root]
        assert (await supervisor.respond(found.id, Approve(), by=Agent(made.root))).decision


async def test_the_steps_of_an_approval_are_the_same_after_a_restart(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        made = await family(home, supervisor, MAY, MAY)
        await supervisor.escalate(made.approval.id, by=Agent(made.parent), why="ask them")
        before = await supervisor.approvals.get(made.approval.id)
    async with home.open() as supervisor:
        assert (await supervisor.approvals.get(made.approval.id)).steps == before.steps
        # And it is not asked anew: what the CLI asks again is what it was.
        await until(supervisor, made.child, "awaiting approval")
        [pending] = await supervisor.approvals.list(status="pending")
        assert pending.steps == before.steps


async def test_the_steps_of_one_with_a_large_input_are_those_of_the_log(home: Home) -> None:
    given = {"command": "rm x", "description": "y" * 300_000}
    large = (
        *ASKS[:2],
        {"tool_use": {"name": "Bash", "id": "t1", "input": given}},
        {"ask": {"tool_name": "Bash", "input": given, "tool_use_id": "t1"}, "id": "q1"},
        ASKS[-1],
    )
    async with home.open() as supervisor:
        made = await family(home, supervisor, MAY, MAY, steps=large)
        assert made.approval.is_cut
        if made.approval.asked:
            await supervisor.escalate(made.approval.id, by=Agent(made.approval.asked), why="big")
        found = await supervisor.approvals.get(made.approval.id)
        [listed] = await supervisor.approvals.list(status="pending")
        assert not found.is_cut
        assert found.steps == listed.steps
        assert found.steps


async def granted(supervisor: Supervisor, parent: str, home: Home) -> Approval:
    child = await supervisor.create(cwd=home.work, by=Agent(parent), policy=ASK, prompt="go")
    return await asked(supervisor, child.id)


@pytest.mark.slow
async def test_what_was_granted_is_counted_after_a_restart_too(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        made = await family(home, supervisor, limited(count=2))
        await supervisor.respond(made.approval.id, Approve(), by=Agent(made.parent))
    async with home.open() as supervisor:
        second = await granted(supervisor, made.parent, home)
        assert second.asked == made.parent
        await supervisor.respond(second.id, Approve(), by=Agent(made.parent))
        third = await granted(supervisor, made.parent, home)
        [over] = third.steps[-1].over
        assert third.asked == ""
        assert "2 times, and has" in over.why


async def test_what_may_be_granted_for_a_time_is_not_after_it(home: Home) -> None:
    async with home.open() as supervisor:
        made = await family(home, supervisor, limited(seconds=0.01))
        assert made.approval.asked == ""
        assert "they are over" in made.approval.steps[-1].over[0].why


async def test_where_a_policy_can_not_be_read_people_are_asked(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        command = home.cli(*ASKS).command
        parent = await supervisor.create(
            cwd=home.work, by=ME, policy=MAY, loopback=True, command=command
        )
        child = await supervisor.create(cwd=home.work, by=Agent(parent.id), policy=ASK)
        await until(supervisor, child.id, "idle")
        records = supervisor.journal.records
        found = await records.get("policies", parent.policy)
        assert found
        await records.delete("policies", parent.policy, found.revision)
        supervisor._means.policies.clear()
        await supervisor.send(child.id, "go")
        approval = await asked(supervisor, child.id)
        assert approval.asked == ""
        assert "can't be told" in approval.steps[-1].over[0].why
        with pytest.raises(BridleError):
            await supervisor.respond(approval.id, Approve(), by=Agent(parent.id))
        await supervisor.stop_all()
