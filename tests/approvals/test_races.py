"""One end, whoever comes at the same time; what the log says first is what counts."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from bridle.approvals import (
    AlreadyDecided,
    Approval,
    Approvals,
    Approve,
    Cancelled,
    Decided,
    Expired,
    Outcome,
    Person,
    Reject,
    open_approvals,
)
from bridle.approvals.events import body_of
from bridle.approvals.fold import fold
from bridle.errors import JournalUnwritable
from bridle.journal import Journal, verify
from bridle.journal.owner import Owners
from tests.levels import tries

from .helpers import (
    ANN,
    LIMIT,
    FailingLog,
    TurnedClock,
    events_in,
    kinds_in,
    request,
    until,
    until_pending,
)

DECIDERS = [Person(f"person-{number}") for number in range(100)]
ROUNDS = tries(50, 1_000)


@pytest.mark.deeper
async def test_of_a_hundred_deciders_at_once_one_wins_a_thousand_times(
    approvals: Approvals, journal: Journal
) -> None:
    luck = random.Random(5)
    choices: list[Approve | Reject] = [Approve(), Reject()]
    winners: Counter[str] = Counter()
    for number in range(ROUNDS):
        asked = await approvals.open(request(session=f"s{number % 10}"))
        deciders = luck.sample(DECIDERS, len(DECIDERS))
        results = await asyncio.gather(
            *(approvals.decide(asked.id, luck.choice(choices), by=by) for by in deciders),
            return_exceptions=True,
        )
        won = [result for result in results if isinstance(result, Approval)]
        lost = [result for result in results if isinstance(result, AlreadyDecided)]
        assert (len(won), len(lost)) == (1, len(DECIDERS) - 1)
        assert all(error.approval.ending == won[0].ending for error in lost)
        assert won[0].decision
        assert isinstance(won[0].decision.by, Person)
        winners[won[0].decision.by.name] += 1
    assert len(winners) > ROUNDS / 20, "it is not always the same who wins"
    decided = 0
    for number in range(10):
        decided += (await kinds_in(journal, f"s{number}")).count("approval.decided")
        assert (await verify(journal, f"s{number}")).is_intact
    assert decided == ROUNDS


async def test_deciding_cancelling_withdrawing_and_expiring_at_once_end_it_once(
    approvals: Approvals, journal: Journal
) -> None:
    luck = random.Random(7)
    ends: Counter[str] = Counter()
    for _ in range(300):
        asked = await approvals.open(request())

        async def withdrawing(approval_id: str = asked.id) -> None:
            approvals.withdraw(approval_id)

        racers = [
            approvals.decide(asked.id, Approve(), by=ANN),
            approvals.decide(asked.id, Reject(), by=ANN),
            approvals.cancel(asked.id),
            approvals.expire(asked.id),
            withdrawing(),
        ]
        luck.shuffle(racers)
        results = await asyncio.gather(*racers, return_exceptions=True)
        final = await approvals.wait(asked.id)
        ends[final.status] += 1
        for result in results:
            if isinstance(result, Approval):
                assert result.ending == final.ending
            elif isinstance(result, BaseException):
                assert isinstance(result, AlreadyDecided), result
                assert result.approval.ending == final.ending
    assert set(ends) == {"allowed", "denied", "cancelled", "timed_out"}
    kinds = Counter(await kinds_in(journal))
    finals = ("approval.decided", "approval.cancelled", "approval.expired")
    assert sum(kinds[kind] for kind in finals) == 300
    assert kinds["approval.decided"] == ends["allowed"] + ends["denied"]


async def test_a_withdrawal_behind_a_decision_leaves_it_decided_and_without_effect(
    approvals: Approvals, journal: Journal
) -> None:
    asking = asyncio.create_task(approvals.ask(request()))
    [asked] = await until_pending(approvals)
    deciding = asyncio.create_task(approvals.decide(asked.id, Approve(), by=ANN))
    await asyncio.sleep(0)  # its append is made
    approvals.withdraw(asked.id, "interrupted", "stop that")
    told = await asking
    assert isinstance(told.ending, Cancelled), "the agent is never told yes after our interrupt"
    assert (await deciding).status == "allowed"
    final = await until(approvals, asked.id, lambda approval: approval.outcome)
    assert isinstance(final.ending, Decided)
    assert final.outcome
    assert (final.outcome.how, final.outcome.words) == ("withdrawn", "stop that")
    assert await kinds_in(journal) == [
        "approval.requested",
        "approval.decided",
        "approval.outcome",
    ]


async def test_a_withdrawal_behind_a_decision_that_fails_is_the_end(
    journal: Journal, clock: TurnedClock
) -> None:
    log = FailingLog(journal)
    async with open_approvals(journal, clock=clock, owners=Owners(log)) as approvals:
        asked = await approvals.open(request())
        log.refused_kinds = {"approval.decided"}
        deciding = asyncio.create_task(approvals.decide(asked.id, Approve(), by=ANN))
        await asyncio.sleep(0)
        approvals.withdraw(asked.id)
        assert (await approvals.wait(asked.id)).status == "cancelled"
        [failed] = await asyncio.gather(deciding, return_exceptions=True)
        assert isinstance(failed, JournalUnwritable)
        assert await kinds_in(journal) == ["approval.requested", "approval.cancelled"]


async def test_an_expiry_behind_a_decision_that_fails_comes_after_all(
    journal: Journal, clock: TurnedClock
) -> None:
    log = FailingLog(journal)
    async with open_approvals(journal, clock=clock, owners=Owners(log)) as approvals:
        asked = await approvals.open(request(), expires_in=10)
        log.refused_kinds = {"approval.decided"}
        deciding = asyncio.create_task(approvals.decide(asked.id, Approve(), by=ANN))
        await asyncio.sleep(0)
        clock.turn(10)
        async with asyncio.timeout(LIMIT):
            assert (await approvals.wait(asked.id)).ending == Expired(10, clock.now())
        [failed] = await asyncio.gather(deciding, return_exceptions=True)
        assert isinstance(failed, JournalUnwritable)


async def test_a_time_that_is_up_while_a_decision_is_on_its_way_is_too_late(
    journal: Journal, clock: TurnedClock
) -> None:
    log = FailingLog(journal)
    async with open_approvals(journal, clock=clock, owners=Owners(log)) as approvals:
        asked = await approvals.open(request(), expires_in=10)
        log.held = asyncio.Event()
        deciding = asyncio.create_task(approvals.decide(asked.id, Approve(), by=ANN))
        await asyncio.sleep(0)
        clock.turn(10)
        expiring = asyncio.create_task(approvals.expire(asked.id))
        for _ in range(5):  # the timer has its turn
            await asyncio.sleep(0)
        log.held.set()
        assert (await deciding).status == "allowed"
        [late] = await asyncio.gather(expiring, return_exceptions=True)
        assert isinstance(late, AlreadyDecided)
        assert await kinds_in(journal) == ["approval.requested", "approval.decided"]


async def test_a_withdrawal_of_what_is_on_its_way_to_the_log_is_logged_behind_it(
    approvals: Approvals, journal: Journal
) -> None:
    asking = asyncio.create_task(approvals.ask(request(tool_use_id=None)))
    await asyncio.sleep(0)
    assert await approvals.list(status="pending") == [], "nobody sees what is not stored"
    [asked] = approvals.unfinished("child", "launch-1")
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    async with asyncio.timeout(LIMIT):
        async for changes in approvals.watch():
            if [(change.id, change.status) for change in changes] == [(asked.id, "cancelled")]:
                break
    assert await kinds_in(journal) == ["approval.requested", "approval.cancelled"]


async def test_a_withdrawal_of_what_could_not_be_asked_leaves_no_trace(
    journal: Journal, clock: TurnedClock
) -> None:
    log = FailingLog(journal)
    async with open_approvals(journal, clock=clock, owners=Owners(log)) as approvals:
        await approvals.open(request())
        log.refused_kinds = {"approval.requested"}
        asking = asyncio.create_task(approvals.ask(request(tool_use_id=None)))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        log.refused_kinds = set()
        await approvals.open(request())
        assert await kinds_in(journal) == ["approval.requested", "approval.requested"]


async def test_a_decider_who_goes_away_has_decided_all_the_same(approvals: Approvals) -> None:
    asked = await approvals.open(request())
    deciding = asyncio.create_task(approvals.decide(asked.id, Approve(), by=ANN))
    await asyncio.sleep(0)
    deciding.cancel()
    await asyncio.gather(deciding, return_exceptions=True)
    assert (await approvals.wait(asked.id)).status == "allowed"


async def test_an_end_in_the_log_after_the_first_changes_nothing(
    approvals: Approvals, journal: Journal
) -> None:
    """Whoever wrote it: the fold holds it as the service does."""
    asked = await approvals.open(request())
    await approvals.decide(asked.id, Reject("no"), by=ANN)
    approvals.outcome(asked.id, Outcome("withdrawn", 1.0))
    await until(approvals, asked.id, lambda approval: approval.outcome)
    first = next(e for e in await events_in(journal) if e.kind == "approval.decided")
    forged = first.body.replace(b'"reject"', b'"approve"')
    before = await approvals.get(asked.id)
    after = fold(before, 99, body_of(first, forged))
    assert after
    assert (after.status, after.ending) == ("denied", before.ending)
