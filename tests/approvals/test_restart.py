"""Opened again: what was stored is there, once, whatever came between."""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from bridle.approvals import (
    Approval,
    Approvals,
    Approve,
    Outcome,
    Person,
    Reject,
    open_approvals,
)
from bridle.approvals.fold import view
from bridle.approvals.model import (
    AcceptElicitation,
    AnswerQuestion,
    ApprovePlan,
    Choice,
    Decided,
)
from bridle.approvals.shelf import CURSORS, FINISHED, OPEN
from bridle.journal import Journal, open_journal, verify
from bridle.journal.events import MAX_BODY

from ..journal.engines import Engine
from .helpers import ANN, LIMIT, ForgetfulJournal, TurnedClock, events_in, kinds_in, request, until

REPO = Path(__file__).parents[2]


async def test_pending_approvals_are_there_again_and_can_be_decided(
    engine: Engine, clock: TurnedClock
) -> None:
    async with engine.open() as journal, open_approvals(journal, clock=clock) as approvals:
        asked = await approvals.open(request(lineage=("root",), notes=("careful",)))
        decided = await approvals.open(request())
        decided = await approvals.decide(decided.id, Reject("no"), by=ANN)
    async with engine.open() as journal, open_approvals(journal, clock=clock) as approvals:
        assert await approvals.list(status="pending") == [asked]
        assert await approvals.get(decided.id) == decided
        assert (await approvals.decide(asked.id, Approve(), by=ANN)).status == "allowed"
    async with engine.open() as journal, open_approvals(journal, clock=clock) as approvals:
        assert await approvals.list(status="pending") == []
        approvals.outcome(asked.id, Outcome("ran", 1.0))
        assert (await until(approvals, asked.id, lambda a: a.outcome)).is_finished
    async with engine.open() as journal, open_approvals(journal, clock=clock) as approvals:
        assert (await approvals.get(asked.id)).outcome == Outcome("ran", 1.0)


async def _forget(journal: Journal, *buckets: str) -> None:
    for bucket in buckets:
        for record in await journal.records.list(bucket):
            await journal.records.delete(bucket, record.key, record.revision)


async def _mixed_history(approvals: Approvals) -> list[Approval]:
    for number, session in enumerate(["a", "b", "a", "b", "a"]):
        asked = await approvals.open(request(session=session))
        if number < 4:
            await approvals.decide(asked.id, Approve() if number % 2 else Reject(), by=ANN)
        if number < 2:
            approvals.delivered(asked.id)
            approvals.outcome(asked.id, Outcome("ran", 2.0))
            await until(approvals, asked.id, lambda approval: approval.outcome)
    return await approvals.list()


@pytest.mark.parametrize(
    "lost", [(OPEN,), (FINISHED,), (OPEN, FINISHED), (OPEN, FINISHED, CURSORS), (CURSORS,)]
)
async def test_records_are_made_from_the_log_and_twice_is_as_once(
    engine: Engine, clock: TurnedClock, lost: tuple[str, ...]
) -> None:
    async with engine.open() as journal, open_approvals(journal, clock=clock) as approvals:
        before = await _mixed_history(approvals)
    async with engine.open() as journal:
        await _forget(journal, *lost, CURSORS)
        revisions = None
        for _ in range(2):
            async with open_approvals(journal, clock=clock) as approvals:
                assert await approvals.list() == before
            now = [
                (record.key, record.value)
                for bucket in (OPEN, FINISHED)
                for record in await journal.records.list(bucket)
            ]
            assert revisions in (None, now)
            revisions = now


async def test_records_that_could_not_be_saved_are_made_at_the_next_start(
    journal: Journal, clock: TurnedClock
) -> None:
    forgetful = ForgetfulJournal(journal, OPEN, FINISHED)
    async with open_approvals(forgetful, clock=clock) as approvals:
        before = await _mixed_history(approvals)
        assert len(before) == 5, "it knows them all the same"
    assert await journal.records.list(OPEN) == []
    async with open_approvals(journal, clock=clock) as approvals:
        assert await approvals.list() == before


async def test_a_start_reads_only_what_came_after_the_cursor(
    journal: Journal, clock: TurnedClock
) -> None:
    async with open_approvals(journal, clock=clock) as approvals:
        await _mixed_history(approvals)
    cursors = {r.key: msgspec.json.decode(r.value) for r in await journal.records.list(CURSORS)}
    for stream in ("a", "b"):
        assert cursors[stream] == {"seq": (await journal.log.info(stream)).last_seq}


async def _killed(home: Path, tag: str, after: float | None) -> list[tuple[str, str]]:
    """What a child said that it was told, until it was killed."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.approvals.crashing",
        str(home),
        tag,
        *(["at-once"] if after is None else []),
        cwd=REPO,
        stdout=asyncio.subprocess.PIPE,
    )
    assert child.stdout
    said: list[tuple[str, str]] = []
    async with asyncio.timeout(LIMIT):
        assert await child.stdout.readline() == b"opened -\n"
        if after is not None:
            said += [_pair(await child.stdout.readline()) for _ in range(int(after))]
            child.kill()
        said += [_pair(line) for line in (await child.stdout.read()).splitlines()]
        await child.wait()
    return said


def _pair(line: bytes) -> tuple[str, str]:
    status, approval_id = line.decode().split()
    return status, approval_id


async def test_a_kill_between_the_event_and_its_record_is_mended(tmp_path: Path) -> None:
    said = await _killed(tmp_path, "x", None)
    [(status, approval_id)] = said
    async with open_journal(tmp_path) as journal:
        kept = await journal.bucket(OPEN, Approval).get(approval_id)
        assert kept is None or kept.value.status == "pending", "the record is behind the log"
        for _ in range(2):
            async with open_approvals(journal) as approvals:
                found = await approvals.get(approval_id)
                assert found.status == status == "allowed"
                assert isinstance(found.ending, Decided)
                assert found.ending.by == Person("ann")
                [rule] = await approvals.remembered.always()
                assert (rule.id, rule.rule) == (approval_id, "Bash(make test)")


@pytest.mark.slow
async def test_killed_at_any_moment_nothing_is_lost_doubled_or_stuck(tmp_path: Path) -> None:
    luck = random.Random()
    known: dict[str, str] = {}
    for number in range(6):
        said = await _killed(tmp_path, f"r{number}", luck.randrange(5, 120))
        known |= {approval_id: status for status, approval_id in said}
        async with open_journal(tmp_path) as journal:
            await _check(journal, known)
    assert set(known.values()) == {"allowed", "denied", "cancelled"}


async def _check(journal: Journal, known: dict[str, str]) -> None:
    for session in "0123":
        assert (await verify(journal, session)).is_intact
        ends: Counter[str] = Counter()
        for event in await events_in(journal, session):
            if event.kind in ("approval.decided", "approval.cancelled"):
                ends[msgspec.json.decode(event.body)["id"]] += 1
        assert set(ends.values()) <= {1}
    async with open_approvals(journal) as approvals:
        found = {approval.id: approval for approval in await approvals.list()}
        for approval_id, status in known.items():
            # It may have gone on after the last that we heard of it, and never back.
            assert found[approval_id].status in {status, *_AFTER[status]}
            known[approval_id] = found[approval_id].status
        for approval in await approvals.list(status="pending"):
            assert (await approvals.decide(approval.id, Reject(), by=ANN)).status == "denied"
            known[approval.id] = "denied"
    async with open_approvals(journal) as again:
        assert await again.list(status="pending") == []


_AFTER: dict[str, set[str]] = {
    "pending": {"allowed", "denied", "cancelled"},
    "allowed": set(),
    "denied": set(),
    "cancelled": set(),
}


# --- large, and many


def _large(size: int = 3 * MAX_BODY) -> dict[str, Any]:
    return {"file_path": "/a", "content": "é" * (size // 2), "edits": [{"old": "x" * 5_000}] * 99}


async def test_a_large_input_is_cut_in_lists_and_whole_where_it_is_asked_for(
    engine: Engine, clock: TurnedClock
) -> None:
    large, larger = _large(), _large(4 * MAX_BODY)
    async with engine.open() as journal, open_approvals(journal, clock=clock) as approvals:
        call = request("Write", input=large)
        asked = await approvals.open(call)
        assert (asked.input, asked.is_cut) == (large, False)
        [shown] = await approvals.list(status="pending")
        assert shown.is_cut
        assert shown.input["file_path"] == "/a"
        assert len(shown.input["content"]) < 3_000
        assert "more characters" in shown.input["content"]
        assert shown.digest == asked.digest
        asking = asyncio.create_task(approvals.ask(call))
        await asyncio.sleep(0)
        await approvals.decide(asked.id, Approve(larger), by=ANN, shown=asked.digest)
        told = await asking
        assert told.decision
        assert told.decision.choice == Approve(larger)
    async with engine.open() as journal, open_approvals(journal, clock=clock) as approvals:
        found = await approvals.get(asked.id)
        assert (found.input, found.is_cut) == (large, False)
        assert found.decision
        assert found.decision.choice == Approve(larger)
        assert await approvals.ask(call) == found, "asked again it is decided as it was"
        await _forget(journal, OPEN, FINISHED, CURSORS)
    async with engine.open() as journal, open_approvals(journal, clock=clock) as approvals:
        assert await approvals.get(asked.id) == found
        assert (await verify(journal, "child")).is_intact


@pytest.mark.parametrize("decided", [Reject("no" * 1_000), Approve({"x": "y" * 400_000})])
async def test_any_approval_fits_into_its_record(
    approvals: Approvals, journal: Journal, decided: Approve | Reject
) -> None:
    wide = {f"key-{number}" * 50: ["x" * 2_000] * 40 for number in range(200)}
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"a": deep, "b": "x" * 1_000}
    for given in (wide, deep, {"x": ["é" * 90_000] * 9}):
        more: dict[str, Any] = {
            "reason": "r" * 300_000,
            "notes": ("n" * 300_000,),
            "suggestions": ("s" * 300_000,),
        }
        asked = await approvals.open(request(input=given, **more))
        await approvals.decide(asked.id, decided, by=ANN)
        whole = await approvals.get(asked.id)
        assert (whole.input, whole.reason, whole.is_cut) == (given, more["reason"], False)
        assert whole.suggestions == more["suggestions"]
        assert whole.decision
        assert whole.decision.choice == decided
    await approvals._shelf.saved()
    records = await journal.records.list(OPEN)
    assert len(records) == 3
    assert all(len(record.value) <= MAX_BODY for record in records)


LONG = "x" * 300_000


@pytest.mark.parametrize(
    ("choice", "field"),
    [
        (ApprovePlan("acceptEdits", LONG, "ok"), "plan"),
        (ApprovePlan("acceptEdits", "short", LONG), "message"),
        (AnswerQuestion({"Why?": LONG}, "ok"), "answers"),
        (AcceptElicitation({"name": LONG}, "ok"), "content"),
        (Reject(LONG, interrupt=True), "message"),
        (Approve(None, LONG, directories=("/a",)), "message"),
    ],
)
def test_of_any_choice_the_view_cuts_what_is_long_and_keeps_the_rest(
    choice: Choice, field: str
) -> None:
    approval = Approval(
        id="a", launch="l", session="s", created=0.0, kind="tool", tool="Bash", input={"a": 1},
        digest="d", status="allowed", ending=Decided(ANN, choice, 2.0),
        suggestions=("Bash(ls)", LONG),
    )  # fmt: skip
    cut = view(approval)
    assert cut.is_cut
    assert cut.decision
    assert (cut.decision.by, cut.decision.at) == (ANN, 2.0)
    shorter = getattr(cut.decision.choice, field)
    assert "298000 more characters" in str(shorter)
    assert type(shorter) is type(getattr(choice, field))
    assert replace(cut.decision.choice, **{field: getattr(choice, field)}) == choice
    assert (cut.input, cut.suggestions, cut.status) == ({"a": 1}, ("Bash(ls)",), "allowed")


async def test_where_the_log_is_gone_the_cut_view_is_left_and_says_so(
    approvals: Approvals, journal: Journal
) -> None:
    asked = await approvals.open(request(input=_large()))
    await approvals.decide(asked.id, Reject(), by=ANN)
    approvals.delivered(asked.id)
    await until(approvals, asked.id, lambda approval: approval.is_finished)
    last = (await journal.log.info("child")).last_seq
    await journal.log.delete("child", last)
    found = await approvals.get(asked.id)
    assert found.is_cut
    assert found.status == "denied"


async def test_ten_thousand_finished_approvals_are_only_records(
    journal: Journal, clock: TurnedClock
) -> None:
    async with open_approvals(journal, clock=clock) as approvals:
        asked = await approvals.open(request())
        done = await approvals.decide(asked.id, Reject(), by=ANN)
        approvals.delivered(asked.id)
        await until(approvals, asked.id, lambda approval: approval.is_finished)
        finished = await approvals.get(asked.id)
        encoded = msgspec.json.encode(finished)
        puts = [journal.records.create(FINISHED, f"f{number}", encoded) for number in range(10_000)]
        await asyncio.gather(*puts)
    async with open_approvals(journal, clock=clock) as approvals:
        assert approvals._register.unfinished == {}
        assert approvals._register._calls == {}
        again = await approvals.open(request())
        assert again.status == "pending"
        assert replace(done, delivered=finished.delivered, seq=finished.seq) == finished
        assert await kinds_in(journal) == [
            "approval.requested",
            "approval.decided",
            "approval.delivered",
            "approval.requested",
        ]
