"""A home that is only looked at: nothing is taken up, started or written down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from bridle.approvals import Approve, ForSession, Outcome, Reject
from bridle.errors import Asleep
from bridle.supervisor import Limits, Supervisor, open_supervisor

from .homes import ASKS, ME, TURN, Home, asked, until


async def test_what_is_stored_is_seen_and_nothing_is_done(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        stopped = await home.start(supervisor, *TURN, start=False, name="b")
        made = await home.start(supervisor, *ASKS, name="a")
        approval = await asked(supervisor, made.id)
        await until(supervisor, made.id, "awaiting approval")
    alive = home.alive()
    async with open_supervisor(home.folder, is_asleep=True) as supervisor:
        before = await _events(supervisor)
    async with open_supervisor(home.folder, is_asleep=True) as supervisor:
        assert [record.name for record in supervisor.list()] == ["b", "a"]
        assert supervisor.get("a").state == "awaiting approval"
        assert supervisor.get("b").id == stopped.id
        [pending] = await supervisor.approvals.list(status="pending")
        assert pending.id == approval.id
        assert (await supervisor.approvals.get(approval.id)).input == {"command": "rm x"}
        assert supervisor.running == 0
    async with open_supervisor(home.folder, is_asleep=True) as supervisor:
        assert await _events(supervisor) == before
    assert home.alive() == alive
    async with home.open() as supervisor:
        await supervisor.approvals.decide(approval.id, Reject(), by=ME)
        await until(supervisor, "a", "idle")


async def _events(supervisor: Supervisor) -> dict[str, int]:
    streams = await supervisor.journal.log.streams()
    return {info.name: info.last_seq for info in streams}


@pytest.mark.slow
async def test_an_approval_that_came_due_is_left_pending(home: Home) -> None:
    async with home.open(keep=True, expires_in=0.5) as supervisor:
        made = await home.start(supervisor, *ASKS)
        approval = await asked(supervisor, made.id)
        expires = approval.expires
    assert expires
    async with open_supervisor(home.folder, is_asleep=True) as supervisor:
        found = await supervisor.approvals.get(approval.id)
        await supervisor.approvals.clock.until(expires + 0.05)
        assert found.status == "pending"
        assert (await supervisor.approvals.get(approval.id)).status == "pending"
    async with home.open() as supervisor:
        assert (await supervisor.approvals.get(approval.id)).status == "timed_out"


async def test_a_rule_of_a_session_stays_and_nothing_becomes_of_an_approval(home: Home) -> None:
    async with home.open() as supervisor:
        made = await home.start(supervisor, *ASKS, *ASKS)
        approval = await asked(supervisor, made.id)
        choice = Approve(remember=ForSession("Bash(rm x)"))
        await supervisor.approvals.decide(approval.id, choice, by=ME)
        await until(supervisor, made.id, "idle")
    async with open_supervisor(home.folder, is_asleep=True) as supervisor:
        before, approvals = await _events(supervisor), supervisor.approvals
        [rule] = await approvals.remembered.of_session(made.id)
        with pytest.raises(Asleep):
            await approvals.remembered.remove_of_session(made.id, rule.id, ME)
        with pytest.raises(Asleep):
            await approvals.forget(made.id)
        approvals.withdraw(approval.id)
        approvals.delivered(approval.id)
        approvals.outcome(approval.id, Outcome("withdrawn", 1.0))
        approvals.passed(made.id, 1)
        found = await approvals.get(approval.id)
    async with open_supervisor(home.folder, is_asleep=True) as supervisor:
        assert await _events(supervisor) == before
        assert await supervisor.approvals.get(approval.id) == found


DOINGS: list[Callable[[Supervisor], Awaitable[object]]] = [
    lambda s: s.create(cwd=".", by=ME),
    lambda s: s.fork("a", by=ME),
    lambda s: s.send("a", "go"),
    lambda s: s.interrupt("a"),
    lambda s: s.stop("a"),
    lambda s: s.start("a"),
    lambda s: s.resume("a"),
    lambda s: s.pause("a"),
    lambda s: s.unpause("a"),
    lambda s: s.set_limits("a", Limits(turns=1), by="me"),
    lambda s: s.set_policy("a", "ask", by=ME),
    lambda s: s.delete("a"),
    lambda s: s.wait("a", lambda _: False),
    lambda s: s.stop_all(),
    lambda s: s.approvals.decide("x", Reject(), by=ME),
]


async def test_whatever_needs_more_than_looking_says_how_to_have_it(home: Home) -> None:
    async with home.open() as supervisor:
        await home.start(supervisor, *TURN, start=False, name="a")
    async with open_supervisor(home.folder, is_asleep=True) as supervisor:
        for do in DOINGS:
            with pytest.raises(Asleep, match="bridle up"):
                await do(supervisor)
        for look in (supervisor.watch, supervisor.approvals.watch, supervisor.logged_in):
            with pytest.raises(Asleep, match="bridle up"):
                look()
        with pytest.raises(Asleep, match="bridle up"):
            supervisor.live("a")
        assert [record.name for record in supervisor.list()] == ["a"]
