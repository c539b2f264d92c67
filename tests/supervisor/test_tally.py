"""How often an agent has granted: taken before, given back after, and looked up after a crash."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bridle.approvals import (
    Agent,
    ApprovalRequest,
    Approvals,
    Approve,
    Person,
    Reject,
    open_approvals,
)
from bridle.approvals.model import Choice, Decider, Step
from bridle.journal import memory_journal
from bridle.supervisor.tally import BUCKET, Tally, Used

PARENT = Agent("parent")


@pytest_asyncio.fixture
async def approvals() -> AsyncIterator[Approvals]:
    async with memory_journal() as journal, open_approvals(journal) as opened:
        yield opened


async def asked(approvals: Approvals) -> str:
    request = ApprovalRequest(
        session="child",
        launch="l",
        kind="tool",
        tool="Bash",
        input={},
        lineage=("parent",),
        steps=(Step(to="parent", at=1, until=2),),
    )
    return (await approvals.open(request)).id


async def counts(approvals: Approvals) -> dict[str, int]:
    async with Tally(approvals).of("parent") as counting:
        return counting.counts


@pytest.mark.parametrize(("is_spent", "left"), [(True, 1), (False, 0)])
async def test_what_is_taken_is_spent_or_given_back(
    approvals: Approvals, is_spent: bool, left: int
) -> None:
    async with Tally(approvals).of("parent") as counting:
        await counting.take("k", "a1")
        assert counting.counts == {"k": 1}
        await counting.settle(is_spent=is_spent)
    assert await counts(approvals) == {"k": left}


@pytest.mark.parametrize(
    ("by", "choice", "left"),
    [
        (PARENT, Approve(), 1),
        (PARENT, Reject(), 0),
        (Person("ann"), Approve(), 0),
        (None, None, 0),
    ],
)
async def test_what_a_crash_left_open_is_as_the_log_says(
    approvals: Approvals, by: Decider | None, choice: Choice | None, left: int
) -> None:
    approval = await asked(approvals)
    bucket = approvals.journal.bucket(BUCKET, Used)
    await bucket.create("parent", Used(counts={"k": 1}, held=("k", approval)))
    if by and choice:
        await approvals.decide(approval, choice, by=by)
    assert await counts(approvals) == {"k": left}
    # And that is not done twice.
    assert await counts(approvals) == {"k": left}


async def test_what_can_not_be_found_any_more_was_spent(approvals: Approvals) -> None:
    bucket = approvals.journal.bucket(BUCKET, Used)
    await bucket.create("parent", Used(counts={"k": 1}, held=("k", "gone")))
    assert await counts(approvals) == {"k": 1}
