"""Writers that are killed at random moments. What they were told is stored must be."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from bridle.journal import Stamped, verify, verify_all
from bridle.journal.sqlite.store import SqliteJournal, open_journal
from tests.levels import tries

from .contents import LARGE, SEALED, assert_whole, count_in, is_end_of_batch
from .crashing import BUCKET, KEYS, LIMIT, PROJECTED, STREAMS, Moment, Said, counts
from .files import files_in

REPO = Path(__file__).parents[3]
ROUNDS = tries(8, 200, 1_000)

Crash = Callable[[Moment], Awaitable[Said]]


@asynccontextmanager
async def crashing(home: Path) -> AsyncIterator[Crash]:
    """The program that forks writers of this folder and kills them."""
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.journal.sqlite.crashing",
        str(home),
        cwd=REPO,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )
    assert program.stdin
    assert program.stdout
    heard = program.stdout
    asked = program.stdin

    async def crash(moment: Moment) -> Said:
        asked.write(msgspec.json.encode(moment) + b"\n")
        async with asyncio.timeout(LIMIT):
            return msgspec.json.decode(await heard.readline(), type=Said)

    try:
        yield crash
    finally:
        asked.close()
        async with asyncio.timeout(LIMIT):
            await program.wait()


class Known:
    """What must be in the journal by what was acknowledged and seen, and what may be."""

    def __init__(self) -> None:
        self.last = dict.fromkeys(STREAMS, 0)
        self.asked: dict[str, set[int]] = {stream: {0} for stream in STREAMS}
        self.deleted = 0
        self.may_be_deleted = {0}
        self.put = dict.fromkeys(KEYS, 0)
        self.seen_revision = 0
        self.crashes = 0
        self.lagged = 0  # how often a kill came between an append and its projection

    def heard(self, said: Said) -> None:
        assert said.complaints == []
        self.crashes += 1
        for stream, asked in said.asked.items():
            self.asked[stream].update(asked)
            acknowledged = said.acknowledged.get(stream, [])
            # Acknowledged in the order in which they were asked for, each once.
            assert acknowledged == asked[: len(acknowledged)]
            self.last[stream] = max([self.last[stream], *acknowledged])
        self.may_be_deleted.update(said.deleting)
        self.deleted = max([self.deleted, *said.deleted])
        for key, count in said.put.items():
            assert count > self.put[key]
            self.put[key] = count

    async def check(self, journal: SqliteJournal) -> None:
        audit = await verify_all(journal)
        assert audit.is_intact, audit  # wherever the kill came: between log and anchors, too
        for stream in STREAMS:
            await self._check_stream(journal, stream)
        for key in KEYS:
            await self._check_record(journal, key)
        await self._check_revisions(journal)
        for stream in PROJECTED:
            await self._check_projection(journal, stream)
        self.crashes = 0

    async def _check_stream(self, journal: SqliteJournal, stream: str) -> None:
        info = await journal.log.info(stream)
        assert info.last_seq >= self.last[stream], "what was acknowledged is lost"
        assert info.last_seq in self.asked[stream], "it ends where no batch was asked to"
        assert is_end_of_batch(stream, info.last_seq), "a batch is not whole"
        is_shed = stream.startswith(LARGE)
        if is_shed:
            assert info.first_seq > self.deleted
            assert info.first_seq - 1 in self.may_be_deleted
        else:
            assert info.first_seq == 1
        # What was before has been looked at before, and is once more at the end.
        await assert_whole(journal, stream, after=0 if is_shed else max(0, self.last[stream] - 500))
        if stream.startswith(SEALED):
            verdict = await verify(journal, stream)
            assert verdict.is_intact, verdict
            assert verdict.sealed == sum(seq % 3 != 0 for seq in range(1, info.last_seq + 1))
        self.last[stream] = info.last_seq

    async def _check_record(self, journal: SqliteJournal, key: str) -> None:
        record = await journal.records.get(BUCKET, key)
        count = count_in(key, record.value) if record else 0
        # Each crash may have cut one put off, after it was stored and before we heard of it.
        assert self.put[key] <= count <= self.put[key] + self.crashes
        self.put[key] = count

    async def _check_projection(self, journal: SqliteJournal, stream: str) -> None:
        record = await journal.records.get("counts", stream)
        if record:
            kept = msgspec.json.decode(record.value, type=Stamped[int])
            assert kept.state == kept.seq <= self.last[stream], "it is not what its stamp says"
            self.lagged += kept.seq < self.last[stream]
        now = await counts(journal).get(stream)
        assert now.state == now.seq == self.last[stream]

    async def _check_revisions(self, journal: SqliteJournal) -> None:
        records = await journal.records.list(BUCKET)
        revisions = {record.revision for record in records}
        assert len(revisions) == len(records)
        newest = max(revisions, default=0)
        assert newest == sum(self.put.values()), "a revision was given twice, or left out"


@pytest.mark.slow
@pytest.mark.deeper
@pytest.mark.timeout(240)
async def test_killed_writers_lose_nothing_that_was_acknowledged(home: Path) -> None:
    luck = random.Random()
    known = Known()
    stopped_in_work = stopped_early = 0
    async with crashing(home) as crash:
        for number in range(ROUNDS):
            is_after_opening = number % 5 > 0
            seconds = luck.uniform(0, 0.08 if is_after_opening else 0.006)
            said = await crash(Moment(seconds, is_after_opening))
            stopped_in_work += said.in_flight > 0
            stopped_early += not said.is_opened
            known.heard(said)
            # Not each time, so that some writers start from what a crash has left of a crash.
            if number % 4:
                async with open_journal(home) as journal:
                    assert files_in(home, "blobs/*.part") == []
                    await known.check(journal)
    assert stopped_in_work >= ROUNDS / 2
    assert stopped_early > 0
    assert known.lagged > 0
    async with open_journal(home) as journal:
        await known.check(journal)
        lasts = [await assert_whole(journal, stream) for stream in STREAMS]
        health = await journal.check()
        assert health.problems == []
        deleted = (await journal.log.info(f"{LARGE}-0")).first_seq - 1
        assert health.events == sum(lasts) - deleted
        await journal.vacuum()
        health = await journal.check()
        assert health.problems == []
        assert len(files_in(home, "blobs/??/*")) == health.blobs, (
            "payloads that nothing refers to were left"
        )
