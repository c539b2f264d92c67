"""A clock that is set back and forth by years: nothing breaks, and the order is that of the log."""

from __future__ import annotations

import itertools
import time

import pytest

from bridle.approvals import Approve
from bridle.supervisor import Limits

from .homes import ASKS, LIMIT, ME, TURN, Home, asked, published, until

YEARS = 365 * 86400.0


class Clock:
    """Jumps at every look, as `jumps` say, again and again."""

    def __init__(self, *jumps: float) -> None:
        self._jumps = itertools.cycle(jumps)

    def __call__(self) -> float:
        return time.time() + next(self._jumps)


JUMPS = {
    "back": (0.0, -10 * YEARS),
    "forth": (0.0, 10 * YEARS),
    "to and fro": (0.0, 10 * YEARS, -10 * YEARS, 3600.0, -3600.0),
}


@pytest.mark.parametrize("jumps", JUMPS)
async def test_states_and_order_do_not_depend_on_the_clock(home: Home, jumps: str) -> None:
    clock = Clock(*JUMPS[jumps])
    async with home.open(now=clock, size=2) as supervisor:
        record = await home.start(supervisor, *ASKS, name="a")
        approval = await asked(supervisor, record.id)
        await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        await until(supervisor, "a", "idle")
        await supervisor.stop("a")
        assert await published(supervisor, "a", "stopped") == [
            *("queued", "starting", "idle", "running", "awaiting approval", "running"),
            *("idle", "stopping", "stopped"),
        ]
        assert supervisor.get("a").seconds >= 0
        for name in ("b", "c", "d"):
            await home.start(supervisor, *TURN, {"exit": 0}, name=name)
        for name in ("b", "c", "d"):
            record = await until(supervisor, name, "stopped")
            assert (record.turns, record.outcome) == (1, "complete")
            assert record.seconds >= 0


@pytest.mark.slow
async def test_an_approval_expires_by_the_time_that_passes(home: Home) -> None:
    clock = Clock(*JUMPS["to and fro"])
    async with home.open(now=clock, expires_in=1.0) as supervisor:
        record = await home.start(supervisor, *ASKS, name="a")
        approval = await asked(supervisor, record.id)
        start = time.monotonic()
        await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        assert time.monotonic() - start > 0.5
        found = await supervisor.approvals.get(approval.id)
        assert found.status == "timed_out"


@pytest.mark.parametrize("years", [-10, 10])
async def test_an_agent_goes_on_under_a_supervisor_with_another_time(
    home: Home, years: int
) -> None:
    async with home.open(keep=True) as supervisor:
        record = await home.start(supervisor, *ASKS, name="a", limits=Limits(turns=5))
        await asked(supervisor, record.id)
    async with home.open(now=lambda: time.time() + years * YEARS) as supervisor:
        assert supervisor.get("a").state == "awaiting approval"
        [approval] = await supervisor.approvals.list(status="pending")
        await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        record = await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        assert record.state == "idle"
        assert record.seconds >= 0


async def test_a_budget_of_time_that_a_jump_uses_up_says_so_and_can_be_raised(home: Home) -> None:
    ahead = [0.0]
    async with home.open(now=lambda: time.time() + ahead[0]) as supervisor:
        await home.start(supervisor, *TURN * 2, name="a", limits=Limits(seconds=3600))
        await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        ahead[0] = YEARS
        await supervisor.send("a", "again")
        await until(supervisor, "a", "paused")
        await supervisor.set_limits("a", Limits(), by="me")
        await supervisor.wait("a", lambda r: (r.turns, r.state) == (2, "idle"), LIMIT)
