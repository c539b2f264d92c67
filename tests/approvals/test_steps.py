"""Whom an approval is put to: stored before it is seen, in one order, and never after its end."""

from __future__ import annotations

import asyncio
import random

import pytest

from bridle.approvals import (
    Agent,
    AlreadyDecided,
    Approval,
    Approvals,
    Approve,
    Cancelled,
    UnknownApproval,
    open_approvals,
)
from bridle.approvals.model import ApprovalRequest, Step
from bridle.errors import JournalUnwritable
from bridle.journal import Journal, verify
from bridle.journal.owner import Owners

from .helpers import ANN, FailingLog, TurnedClock, kinds_in, request, until

TO_PARENT = Step(to="parent", at=1.0, until=2.0)
TO_ROOT = Step(to="root", at=2.0, until=3.0, why="I can't tell", by="parent")
TO_PEOPLE = Step(at=3.0, why="session root has ended")


async def to_parent(_: ApprovalRequest) -> tuple[Step, ...]:
    return (TO_PARENT,)


def below() -> ApprovalRequest:
    return request(lineage=("root", "parent"))


async def test_what_is_asked_is_put_to_whom_the_address_says(approvals: Approvals) -> None:
    approvals.address = to_parent
    asked = await approvals.open(below())
    assert (asked.steps, asked.asked) == ((TO_PARENT,), "parent")
    assert asked.was_put_to("parent")
    assert not asked.was_put_to("root")
    assert not asked.was_put_to("")


async def test_each_step_is_in_the_log_and_the_last_is_who_is_asked(
    approvals: Approvals, journal: Journal, clock: TurnedClock
) -> None:
    approvals.address = to_parent
    asked = await approvals.open(below())
    second = await approvals.escalate(asked.id, TO_ROOT, known=1)
    third = await approvals.escalate(asked.id, TO_PEOPLE, known=2)
    assert (second.asked, third.asked) == ("root", "")
    assert third.steps == (TO_PARENT, TO_ROOT, TO_PEOPLE)
    assert await kinds_in(journal) == ["approval.requested", *["approval.escalated"] * 2]
    assert (await verify(journal, "child")).is_intact
    await approvals.aclose()
    async with open_approvals(journal, clock=clock) as again:
        assert (await again.get(asked.id)).steps == third.steps


async def test_of_those_who_pass_it_on_from_the_same_step_one_does(
    approvals: Approvals, journal: Journal
) -> None:
    approvals.address = to_parent
    asked = await approvals.open(below())
    found = await asyncio.gather(
        *(approvals.escalate(asked.id, TO_ROOT, known=1) for _ in range(20))
    )
    assert {one.steps for one in found} == {(TO_PARENT, TO_ROOT)}
    assert (await kinds_in(journal)).count("approval.escalated") == 1


async def test_what_has_ended_is_not_passed_on(approvals: Approvals, journal: Journal) -> None:
    asked = await approvals.open(below())
    await approvals.decide(asked.id, Approve(), by=ANN)
    with pytest.raises(AlreadyDecided):
        await approvals.escalate(asked.id, TO_ROOT, known=0)
    with pytest.raises(UnknownApproval):
        await approvals.escalate("nobody", TO_ROOT, known=0)
    assert "approval.escalated" not in await kinds_in(journal)


async def test_deciding_passing_on_and_cancelling_at_once_end_it_once(
    approvals: Approvals, journal: Journal
) -> None:
    luck = random.Random(11)
    approvals.address = to_parent
    for _ in range(200):
        asked = await approvals.open(below())
        work = [
            approvals.decide(asked.id, Approve(), by=ANN),
            approvals.decide(asked.id, Approve(), by=Agent("parent")),
            approvals.escalate(asked.id, TO_ROOT, known=1),
            approvals.escalate(asked.id, TO_PEOPLE, known=1),
            approvals.cancel(asked.id, "no more"),
        ]
        luck.shuffle(work)
        results = await asyncio.gather(*work, return_exceptions=True)
        assert all(isinstance(one, Approval | AlreadyDecided) for one in results)
        found = await approvals.get(asked.id)
        assert found.status in ("allowed", "cancelled")
        assert len(found.steps) <= 2
    kinds = await kinds_in(journal)
    ends = kinds.count("approval.decided") + kinds.count("approval.cancelled")
    assert ends == kinds.count("approval.requested") == 200
    assert (await verify(journal, "child")).is_intact


async def test_what_is_withdrawn_while_it_is_passed_on_is_over_at_once(journal: Journal) -> None:
    log = FailingLog(journal)
    owners = Owners(log)
    async with open_approvals(journal, owners=owners) as approvals:
        asked = await approvals.open(below())
        log.held = asyncio.Event()
        passing = asyncio.ensure_future(approvals.escalate(asked.id, TO_ROOT, known=0))
        for _ in range(5):
            await asyncio.sleep(0)
        approvals.withdraw(asked.id)
        log.held.set()
        await passing
        found = await until(approvals, asked.id, lambda one: one.status == "cancelled")
        assert isinstance(found.ending, Cancelled)
    kinds = ["approval.requested", "approval.escalated", "approval.cancelled"]
    assert await kinds_in(journal) == kinds


async def test_what_can_not_be_stored_is_not_passed_on_and_can_be_again(journal: Journal) -> None:
    log = FailingLog(journal)
    owners = Owners(log)
    async with open_approvals(journal, owners=owners) as approvals:
        asked = await approvals.open(below())
        log.refuses = True
        with pytest.raises(JournalUnwritable):
            await approvals.escalate(asked.id, TO_ROOT, known=0)
        assert (await approvals.get(asked.id)).steps == ()
        log.refuses = False
        assert (await approvals.escalate(asked.id, TO_ROOT, known=0)).asked == "root"


async def test_what_is_passed_on_expires_as_if_it_were_not(
    journal: Journal, clock: TurnedClock
) -> None:
    async with open_approvals(journal, clock=clock, expires_in=60) as approvals:
        asked = await approvals.open(below())
        await approvals.escalate(asked.id, TO_ROOT, known=0)
        clock.turn(61)
        assert (await until(approvals, asked.id, lambda one: one.ending)).status == "timed_out"
