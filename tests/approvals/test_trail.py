"""The trail: whole after a mixed history, and broken where somebody changed a decision."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from bridle.approvals import (
    Approvals,
    Approve,
    Desk,
    ForSession,
    Outcome,
    Policies,
    Reject,
    open_approvals,
)
from bridle.journal import Durability, Journal, open_journal, verify
from bridle.journal.owner import Owners
from bridle.policy.verdicts import Allowed, Denied

from .helpers import ANN, FailingLog, TurnedClock, a_rule, call, events_in, request


async def _mixed(journal: Journal, approvals: Approvals, clock: TurnedClock) -> None:
    desk = Desk(approvals, session="child", launch="launch-1")
    policies = Policies(journal, approvals.owners, clock.now)
    await policies.apply("child", "preset = 'ask'", source="policy.toml", by=ANN)
    stored = desk.judged(call(), Allowed("Read"))
    assert stored
    await stored
    desk.judged(call(), Denied("Bash(rm:*)"))
    allowed = await approvals.open(request())
    await approvals.decide(allowed.id, Approve(remember=ForSession("Bash")), by=ANN)
    approvals.delivered(allowed.id)
    approvals.outcome(allowed.id, Outcome("ran", 1.0))
    denied = await approvals.open(request())
    await approvals.decide(denied.id, Reject("no"), by=ANN)
    due = await approvals.open(request(), expires_in=10)
    clock.turn(10)
    await approvals.wait(due.id)
    await approvals.open(request())
    desk.ended("is gone")


async def test_after_a_mixed_history_the_chain_is_whole(
    journal: Journal, clock: TurnedClock
) -> None:
    async with open_approvals(journal, clock=clock, check=a_rule) as approvals:
        await _mixed(journal, approvals, clock)
    verdict = await verify(journal, "child")
    assert verdict.is_intact
    sealed = {event.kind for event in await events_in(journal) if event.seal}
    assert sealed == {
        "approval.requested",
        "approval.decided",
        "approval.cancelled",
        "approval.expired",
        "tool.judged",
        "rule.added",
        "policy.applied",
    }


async def test_what_ends_an_approval_survives_a_power_loss(
    journal: Journal, clock: TurnedClock
) -> None:
    log = FailingLog(journal)
    async with open_approvals(journal, clock=clock, check=a_rule, owners=Owners(log)) as approvals:
        await _mixed(journal, approvals, clock)
    powerful = {kind for kind, given in log.durabilities.items() if given is Durability.POWER}
    assert powerful == {
        "approval.decided",
        "approval.cancelled",
        "approval.expired",
        "rule.added",
        "policy.applied",
    }


async def test_a_decision_that_was_changed_in_the_database_is_found(
    tmp_path: Path, clock: TurnedClock
) -> None:
    async with (
        open_journal(tmp_path) as journal,
        open_approvals(journal, clock=clock, check=a_rule) as approvals,
    ):
        await _mixed(journal, approvals, clock)
        events = await events_in(journal)
    [changed] = [e.seq for e in events if e.kind == "approval.decided" and b"reject" in e.body]
    await asyncio.to_thread(_forge, tmp_path / "journal.db")
    async with open_journal(tmp_path) as journal:
        verdict = await verify(journal, "child")
        assert (verdict.broken_at, verdict.reason) == (changed, "it was changed")


def _forge(file: Path) -> None:
    database = sqlite3.connect(file)
    with database:
        done = database.execute(
            "UPDATE event SET body = CAST(REPLACE(body, '\"reject\"', '\"approve\"') AS BLOB)"
            " WHERE kind = 'approval.decided' AND INSTR(CAST(body AS TEXT), '\"reject\"')"
        )
        assert done.rowcount == 1
    database.close()
