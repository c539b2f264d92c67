"""Rules that people had remembered: stored with the decision, told of, listed and taken back."""

from __future__ import annotations

import pytest

from bridle.approvals import (
    Agent,
    Always,
    Approvals,
    Approve,
    Desk,
    ForSession,
    MayNotDecide,
    Reject,
    RememberedRule,
    UnknownRule,
    open_approvals,
)
from bridle.approvals.model import Remember
from bridle.approvals.remember import REMEMBERED
from bridle.approvals.shelf import CURSORS, FINISHED, OPEN
from bridle.journal import Journal, verify

from ..journal.engines import Engine
from .helpers import ANN, BOB, ForgetfulJournal, TurnedClock, a_rule, events_in, kinds_in, request


async def decided(approvals: Approvals, remember: Remember, session: str = "child") -> str:
    asked = await approvals.open(request(session=session))
    await approvals.decide(asked.id, Approve(remember=remember), by=ANN)
    return asked.id


def told(rules: list[RememberedRule]) -> list[tuple[str, bool]]:
    return [(rule.rule, rule.removed is None) for rule in rules]


async def test_a_rule_of_the_session_is_stored_with_the_decision_and_told_before_the_answer(
    approvals: Approvals, journal: Journal
) -> None:
    seen: list[RememberedRule] = []
    others: list[RememberedRule] = []
    desk = Desk(approvals, session="child", launch="l", apply=seen.append)
    other = Desk(approvals, session="other", launch="l", apply=others.append)
    approval_id = await decided(approvals, ForSession("Bash(make:*)"))
    [rule] = seen
    assert (rule.id, rule.rule, rule.behavior) == (approval_id, "Bash(make:*)", "allow")
    assert (rule.by, rule.session) == (ANN, "child")
    assert others == []
    assert await kinds_in(journal) == ["approval.requested", "approval.decided", "rule.added"]
    assert (await events_in(journal))[-1].seal
    assert await desk.rules() == [rule]
    assert await other.rules() == []


async def test_a_rule_of_the_session_is_there_after_a_restart_until_it_is_taken_back(
    engine: Engine, clock: TurnedClock
) -> None:
    async with (
        engine.open() as journal,
        open_approvals(journal, clock=clock, check=a_rule) as approvals,
    ):
        rule_id = await decided(approvals, ForSession("Bash"))
    async with engine.open() as journal, open_approvals(journal, clock=clock) as approvals:
        seen: list[RememberedRule] = []
        desk = Desk(approvals, session="child", launch="l2", apply=seen.append)
        assert told(await desk.rules()) == [("Bash", True)]
        for _ in range(2):
            await approvals.remembered.remove_of_session("child", rule_id, BOB)
        assert told(seen) == [("Bash", False)]
        assert await desk.rules() == []
        assert (await kinds_in(journal))[-1] == "rule.removed"
        with pytest.raises(UnknownRule):
            await approvals.remembered.remove_of_session("child", "x", BOB)
        assert (await verify(journal, "child")).is_intact


@pytest.mark.parametrize(
    ("scope", "folder", "covers"),
    [
        ("", "/anything", True),
        ("/code", "/code", True),
        ("/code/", "/code", True),
        ("/code", "/code/sub", True),
        ("/code", "/codex", False),
        ("/code/sub", "/code", False),
    ],
)
async def test_a_rule_for_always_holds_in_its_folder(
    approvals: Approvals, scope: str, folder: str, covers: bool
) -> None:
    seen: list[RememberedRule] = []
    desk = Desk(approvals, session="other", launch="l", folder=folder, apply=seen.append)
    await decided(approvals, Always("Bash(ls)", scope))
    assert bool(seen) == covers
    await approvals._shelf.saved()
    assert await desk.rules() == seen
    assert len(await approvals.remembered.always()) == 1


async def test_a_rule_for_always_can_be_taken_back_and_stays_taken_back(
    engine: Engine, clock: TurnedClock
) -> None:
    async with (
        engine.open() as journal,
        open_approvals(journal, clock=clock, check=a_rule) as approvals,
    ):
        seen: list[RememberedRule] = []
        desk = Desk(approvals, session="other", launch="l", apply=seen.append)
        rule_id = await decided(approvals, Always("Bash(ls)"))
        await approvals._shelf.saved()
        removed = await approvals.remembered.remove(rule_id, BOB)
        assert removed.removed
        assert removed.removed.by == BOB
        assert await approvals.remembered.remove(rule_id, ANN) == removed
        assert told(seen) == [("Bash(ls)", True), ("Bash(ls)", False)]
        assert await desk.rules() == []
        with pytest.raises(UnknownRule):
            await approvals.remembered.remove("x", BOB)
    async with engine.open() as journal:
        for bucket in (OPEN, FINISHED, CURSORS):
            for record in await journal.records.list(bucket):
                await journal.records.delete(bucket, record.key, record.revision)
        async with open_approvals(journal, clock=clock) as approvals:
            assert await approvals.remembered.always() == [], "the log does not bring it back"


@pytest.mark.parametrize("lost", [(REMEMBERED,), (REMEMBERED, OPEN, FINISHED)])
async def test_a_rule_for_always_whose_record_could_not_be_saved_gets_it_at_the_next_start(
    journal: Journal, clock: TurnedClock, lost: tuple[str, ...]
) -> None:
    forgetful = ForgetfulJournal(journal, *lost)
    async with open_approvals(forgetful, clock=clock, check=a_rule) as approvals:
        seen: list[RememberedRule] = []
        desk = Desk(approvals, session="child", launch="l", apply=seen.append)
        await decided(approvals, Always("Bash(ls)"))
        assert told(seen) == [("Bash(ls)", True)], "it is in force all the same"
        desk.detach()
    assert await journal.records.list(REMEMBERED) == []
    async with open_approvals(journal, clock=clock) as approvals:
        assert await approvals.remembered.always() == seen


async def test_a_no_can_be_remembered_too(approvals: Approvals) -> None:
    asked = await approvals.open(request())
    await approvals.decide(asked.id, Reject(remember=ForSession("Bash(rm *)")), by=ANN)
    [rule] = await approvals.remembered.of_session("child")
    assert rule.behavior == "deny"


async def test_once_is_not_remembered(approvals: Approvals, journal: Journal) -> None:
    asked = await approvals.open(request())
    await approvals.decide(asked.id, Approve(), by=ANN)
    assert await kinds_in(journal) == ["approval.requested", "approval.decided"]


async def test_only_a_person_takes_rules_back(approvals: Approvals) -> None:
    rule_id = await decided(approvals, Always("Bash"))
    await approvals._shelf.saved()
    with pytest.raises(MayNotDecide):
        await approvals.remembered.remove(rule_id, Agent("root"))  # type: ignore[arg-type]
    with pytest.raises(MayNotDecide):
        await approvals.remembered.remove_of_session("child", rule_id, Agent("root"))  # type: ignore[arg-type]
    assert len(await approvals.remembered.always()) == 1


async def test_a_policy_that_chokes_on_a_rule_does_not_undo_the_decision(
    approvals: Approvals, caplog: pytest.LogCaptureFixture
) -> None:
    def choke(rule: RememberedRule) -> None:
        raise RuntimeError(rule.rule)

    desk = Desk(approvals, session="child", launch="l", apply=choke)
    await decided(approvals, ForSession("Bash"))
    assert "was not applied" in caplog.text
    assert told(await desk.rules()) == [("Bash", True)]


async def test_a_desk_that_is_detached_is_told_no_more(approvals: Approvals) -> None:
    seen: list[RememberedRule] = []
    desk = Desk(approvals, session="child", launch="l", apply=seen.append)
    desk.detach()
    await decided(approvals, ForSession("Bash"))
    assert seen == []
