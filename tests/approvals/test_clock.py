"""Time: none by default, days where it is wanted, and what came due while nobody was there."""

from __future__ import annotations

import asyncio

import pytest

from bridle.approvals import (
    AlreadyDecided,
    Approvals,
    Approve,
    Expired,
    SystemClock,
    open_approvals,
)
from bridle.errors import JournalUnwritable
from bridle.journal import Journal
from bridle.journal.owner import Owners

from ..journal.engines import Engine
from .helpers import ANN, DAY, LIMIT, FailingLog, TurnedClock, kinds_in, request


async def test_without_a_limit_an_approval_waits_for_ever_and_no_timer_runs(
    approvals: Approvals, clock: TurnedClock
) -> None:
    asked = await approvals.open(request())
    assert asked.expires is None
    assert clock.timers == 0
    clock.turn(1000 * DAY)
    assert (await approvals.decide(asked.id, Approve(), by=ANN)).status == "allowed"


async def test_a_three_day_approval_is_honoured(approvals: Approvals, clock: TurnedClock) -> None:
    first = await approvals.open(request(), expires_in=3 * DAY)
    second = await approvals.open(request(), expires_in=3 * DAY)
    clock.turn(3 * DAY - 1)
    assert (await approvals.decide(first.id, Approve(), by=ANN)).status == "allowed"
    clock.turn(1)
    async with asyncio.timeout(LIMIT):
        over = await approvals.wait(second.id)
    assert over.status == "timed_out"
    assert over.ending == Expired(3 * DAY, clock.now())
    with pytest.raises(AlreadyDecided, match="timed out"):
        await approvals.decide(second.id, Approve(), by=ANN)


async def test_who_decides_at_the_very_moment_is_too_late(
    approvals: Approvals, clock: TurnedClock
) -> None:
    asked = await approvals.open(request(), expires_in=60)
    clock.turn(60)  # and the timer has had no time yet
    with pytest.raises(AlreadyDecided, match="timed out"):
        await approvals.decide(asked.id, Approve(), by=ANN)


async def test_there_is_one_timer_for_the_first_that_is_due(
    approvals: Approvals, clock: TurnedClock
) -> None:
    late = await approvals.open(request(), expires_in=100)
    soon = await approvals.open(request(), expires_in=10)
    later = await approvals.open(request(), expires_in=50)
    await asyncio.sleep(0)
    assert clock.timers == 1
    clock.turn(10)
    async with asyncio.timeout(LIMIT):
        assert (await approvals.wait(soon.id)).status == "timed_out"
    assert len(await approvals.list(status="pending")) == 2
    clock.turn(90)
    async with asyncio.timeout(LIMIT):
        assert (await approvals.wait(late.id)).status == "timed_out"
        assert (await approvals.wait(later.id)).status == "timed_out"
    assert clock.timers == 0


async def test_the_timer_goes_when_nothing_can_expire_any_more(
    approvals: Approvals, clock: TurnedClock
) -> None:
    asked = await approvals.open(request(), expires_in=10)
    await asyncio.sleep(0)
    assert clock.timers == 1
    await approvals.decide(asked.id, Approve(), by=ANN)
    await asyncio.sleep(0)
    assert clock.timers == 0


async def test_the_service_has_a_limit_and_an_approval_may_have_its_own(
    journal: Journal, clock: TurnedClock
) -> None:
    async with open_approvals(journal, clock=clock, expires_in=60) as approvals:
        assert (await approvals.open(request())).expires == clock.now() + 60
        assert (await approvals.open(request(), expires_in=5)).expires == clock.now() + 5


async def test_what_came_due_while_nobody_was_there_has_expired_at_the_start(
    engine: Engine, clock: TurnedClock
) -> None:
    async with engine.open() as journal, open_approvals(journal, clock=clock) as approvals:
        due = await approvals.open(request(), expires_in=60)
        not_due = await approvals.open(request(), expires_in=3 * DAY)
    clock.turn(DAY)
    async with engine.open() as journal, open_approvals(journal, clock=clock) as approvals:
        assert [found.id for found in await approvals.list(status="pending")] == [not_due.id]
        found = await approvals.get(due.id)
        assert found.ending == Expired(60, clock.now())
        clock.turn(2 * DAY)
        async with asyncio.timeout(LIMIT):
            assert (await approvals.wait(not_due.id)).status == "timed_out"
        assert (await kinds_in(journal)).count("approval.expired") == 2


async def test_what_expires_is_a_no_even_when_it_can_not_be_stored(
    journal: Journal, clock: TurnedClock
) -> None:
    log = FailingLog(journal)
    async with open_approvals(journal, clock=clock, owners=Owners(log)) as approvals:
        asking = asyncio.create_task(approvals.ask(request(), expires_in=10))
        await anext(watch := approvals.watch())
        await anext(watch)
        log.refuses = True
        clock.turn(10)
        async with asyncio.timeout(LIMIT):
            assert (await asking).status == "timed_out"
        with pytest.raises(JournalUnwritable):
            await approvals.open(request())
        log.refuses = False
    assert (await kinds_in(journal))[-1] == "approval.expired", "stored when it could be"


async def test_the_systems_clock_waits_and_does_not_wait_for_what_is_past() -> None:
    clock = SystemClock()
    start = clock.now()
    await clock.until(start - 5)
    await clock.until(start + 0.01)
    assert clock.now() >= start + 0.01
