"""The writer's thread: how it gathers, when it checkpoints, whom it holds up, how it ends."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from bridle.errors import JournalClosed
from bridle.journal import Batch, Durability, NewEvent
from bridle.journal.contract import Feed
from bridle.journal.events import MAX_BATCH_BYTES, MAX_BODY
from bridle.journal.sqlite import store, writer
from bridle.journal.sqlite.store import SqliteJournal, open_journal

from .contents import LARGE, append_batches, assert_whole, batch, is_end_of_batch
from .files import log_of, size_of
from .gates import LIMIT, Trace, held

SMALL = [NewEvent("k", b"body", at=0.0)]
KB = 1024
MB = 1024 * KB


def synchronous(connection: sqlite3.Connection) -> int:
    level = connection.execute("PRAGMA synchronous").fetchone()[0]
    assert isinstance(level, int)
    return level


NORMAL, FULL = 1, 2


# --- groups


async def test_what_waits_together_is_one_transaction(home: Path) -> None:
    async with open_journal(home) as journal:
        trace = Trace(journal)
        async with held(journal):
            futures = [
                journal.log.append(f"s-{stream}", SMALL, seq)
                for seq in range(3)
                for stream in range(20)
            ]
            record = asyncio.ensure_future(journal.records.create("b", "k", b"value"))
        assert await asyncio.gather(*futures) == [seq + 1 for seq in range(3) for _ in range(20)]
        assert await record == 1
        assert trace.count("COMMIT") == 1
        assert trace.count("INSERT INTO event") == 1


async def test_a_thousand_that_wait_take_a_few_transactions(home: Path) -> None:
    async with open_journal(home) as journal:
        await journal.log.append("s", SMALL, 0)
        trace = Trace(journal)
        async with held(journal):
            futures = [journal.log.append("s", SMALL, seq) for seq in range(1, 1_001)]
        assert await asyncio.gather(*futures) == list(range(2, 1_002))
        # Each is one statement, and by that a transaction.
        assert trace.count("INSERT INTO event") == -(-1_000 // writer.MAX_GROUP_WRITES)
        assert trace.count("BEGIN") == 0


async def test_events_of_known_streams_need_no_more_than_one_statement(home: Path) -> None:
    async with open_journal(home) as journal:
        for stream in ("a", "b"):
            await journal.log.append(stream, SMALL, 0)
        trace = Trace(journal)
        async with held(journal):
            futures = [journal.log.append(s, SMALL, n) for n in range(1, 11) for s in ("a", "b")]
        await asyncio.gather(*futures)
        assert len(trace.statements) == 1
        assert trace.statements[0].startswith("INSERT INTO event")


async def test_pipelined_appends_need_far_fewer_transactions_than_appends(home: Path) -> None:
    appends = 2_000
    async with open_journal(home) as journal:
        await journal.log.append("s", SMALL, 0)
        trace = Trace(journal)
        futures = []
        for seq in range(1, appends + 1):
            futures.append(journal.log.append("s", SMALL, seq))
            if seq % 20 == 0:
                await asyncio.sleep(0)  # as many others would be served in between
        assert await asyncio.gather(*futures) == list(range(2, appends + 2))
        assert 0 < len(trace.statements) < appends / 4


async def test_a_group_is_bounded_so_that_none_in_it_waits_long(home: Path) -> None:
    body = bytes(MAX_BODY)
    per_group = MAX_BATCH_BYTES // MAX_BODY
    async with open_journal(home) as journal:
        await journal.log.append("s", SMALL, 0)
        trace = Trace(journal)
        async with held(journal):
            futures = [journal.log.append("s", [NewEvent("k", body)], n + 1) for n in range(64)]
        await asyncio.gather(*futures)
        assert trace.count("INSERT INTO event") == 64 / per_group


async def test_a_group_is_told_before_the_next_one_is_written(home: Path) -> None:
    gate = threading.Event()
    async with open_journal(home) as journal, asyncio.timeout(LIMIT):
        async with held(journal):
            first = journal.log.append("a", SMALL, 0)
            job = asyncio.create_task(journal._sqlite.job(lambda _: gate.wait(LIMIT)))
            await asyncio.sleep(0)  # it has asked
            behind = journal.log.append("b", SMALL, 0)
        assert await first == 1  # while the writer stands in the job behind it
        assert not behind.done()
        gate.set()
        assert await job
        assert await behind == 1


async def test_a_job_sees_what_was_submitted_before_it_and_nothing_behind_it(home: Path) -> None:
    def count(connection: sqlite3.Connection) -> int:
        assert not connection.in_transaction
        found = connection.execute("SELECT count(*) FROM event").fetchone()[0]
        assert isinstance(found, int)
        return found

    async with open_journal(home) as journal:
        async with held(journal):
            before = journal.log.append("s", SMALL * 3, 0)
            job = asyncio.create_task(journal._sqlite.job(count))
            await asyncio.sleep(0)
            behind = journal.log.append("s", SMALL * 4, 3)
        assert await before == 3
        assert await job == 3
        assert await behind == 7


async def test_a_job_that_fails_is_the_only_one_to_hear_of_it(home: Path) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN")
        connection.execute("DELETE FROM event")
        connection.execute("SELECT * FROM nowhere")

    async with open_journal(home) as journal:
        last = await append_batches(journal, "s", 5)
        with pytest.raises(Exception, match="nowhere"):
            await journal._sqlite.job(fail)
        assert await assert_whole(journal, "s") == last
        assert await append_batches(journal, "s", 5) > last


# --- the log and the file


async def test_the_log_is_moved_into_the_file_when_nothing_is_waiting(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "CHECKPOINT_WHEN_IDLE", 256 * KB)
    monkeypatch.setattr(writer, "IDLE_SECONDS", 0.01)
    async with open_journal(home) as journal:
        trace = Trace(journal)
        before = size_of(home / "journal.db")
        await journal.log.append("s", [NewEvent("k", bytes(200 * KB))] * 5, 0)
        await trace.until("PRAGMA wal_checkpoint")
        assert size_of(home / "journal.db") > before + 900 * KB
        # The log starts again from its beginning: it does not grow.
        size = size_of(log_of(home))
        await journal.log.append("s", [NewEvent("k", bytes(200 * KB))], 5)
        assert size_of(log_of(home)) == size


async def test_the_log_is_not_moved_for_little(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "IDLE_SECONDS", 0.0)
    async with open_journal(home) as journal:
        trace = Trace(journal)
        await append_batches(journal, "s", 5)
        await journal._sqlite.job(lambda _: None)
        assert trace.count("PRAGMA wal_checkpoint") == 0


async def test_the_log_stays_bounded_when_much_is_written_without_a_pause(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "CHECKPOINT_WHEN_IDLE", 2 * MB)
    monkeypatch.setattr(writer, "CHECKPOINT_ALWAYS", 4 * MB)
    largest = 0
    async with open_journal(home) as journal:
        for number in range(100):
            await journal.log.append("s", [NewEvent("k", bytes(250 * KB))] * 4, number * 4)
            largest = max(largest, size_of(log_of(home)))
    # What comes in the group that reaches the limit is on top of it.
    assert 4 * MB < largest < 10 * MB
    assert size_of(home / "journal.db") > 100 * 4 * 250 * KB


async def test_the_log_stays_bounded_when_many_small_events_are_written_one_by_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "CHECKPOINT_WHEN_IDLE", 512 * KB)
    monkeypatch.setattr(writer, "CHECKPOINT_ALWAYS", 1 * MB)
    largest = 0
    async with open_journal(home) as journal:
        for number in range(2_000):
            await journal.log.append("s", SMALL, number)
            largest = max(largest, size_of(log_of(home)))
    assert largest < 4 * MB


@pytest.mark.slow
async def test_the_log_stays_bounded_while_a_vacuum_moves_much(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "CHECKPOINT_WHEN_IDLE", 1 * MB)
    monkeypatch.setattr(writer, "CHECKPOINT_ALWAYS", 2 * MB)
    body = NewEvent("k", bytes(250 * KB))
    largest = 0
    async with open_journal(home) as journal, asyncio.timeout(LIMIT):
        for number in range(50):
            await journal.log.append("old", [body] * 2, number * 2)
        for number in range(50):  # behind it in the file: these have to move
            await journal.log.append("new", [body] * 2, number * 2)
        await journal.log.delete("old", 100)
        await journal._sqlite.job(checkpoint)
        await journal.log.append("s", SMALL, 0)  # the log has started again
        vacuum = asyncio.create_task(journal.vacuum())
        while not vacuum.done():
            largest = max(largest, size_of(log_of(home)))
            await journal._sqlite.job(lambda _: None)
        await vacuum
        assert size_of(home / "journal.db") < 30 * MB
    assert 0 < largest < 10 * MB


def checkpoint(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


async def test_a_log_that_a_burst_made_large_is_cut_when_it_starts_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MAX_IDLE_LOG", 1 * MB)
    monkeypatch.setattr(writer, "CHECKPOINT_ALWAYS", 8 * MB)
    async with open_journal(home) as journal:
        for number in range(9):
            await journal.log.append("s", [NewEvent("k", bytes(250 * KB))] * 4, number * 4)
        assert size_of(log_of(home)) > 8 * MB
        await journal.log.append("s", SMALL, 36)
        assert size_of(log_of(home)) <= 1 * MB


async def test_nothing_is_left_of_the_log_when_the_journal_was_closed(home: Path) -> None:
    async with open_journal(home) as journal:
        last = await append_batches(journal, "s", 100)
    assert not log_of(home).exists()
    async with open_journal(home) as journal:
        assert await assert_whole(journal, "s") == last


# --- durability


async def test_an_append_waits_for_the_disk_only_if_it_asks_for_it(home: Path) -> None:
    async with open_journal(home) as journal:
        level = journal._sqlite.job
        await journal.log.append("s", SMALL, 0)
        assert await level(synchronous) == NORMAL
        await journal.log.append("s", SMALL, 1, Durability.POWER)
        assert await level(synchronous) == FULL
        await journal.log.append("s", SMALL, 2)
        assert await level(synchronous) == NORMAL
        await journal.records.create("b", "k", b"value", Durability.POWER)
        assert await level(synchronous) == FULL


async def test_the_level_is_switched_before_the_transaction_and_only_when_it_changes(
    home: Path,
) -> None:
    async with open_journal(home) as journal:
        await journal.log.append("s", SMALL, 0)
        trace = Trace(journal)
        for seq, durability in enumerate(
            (Durability.POWER, Durability.POWER, Durability.PROCESS, Durability.PROCESS), 1
        ):
            await journal.log.append("s", SMALL, seq, durability)
        kinds = [statement.partition(" (")[0] for statement in trace.statements]
        insert = "INSERT INTO event"
        assert kinds == [
            "PRAGMA synchronous = FULL",
            insert,
            insert,
            "PRAGMA synchronous = NORMAL",
            insert,
            insert,
        ]


async def test_one_append_that_asks_for_the_disk_makes_its_group_wait_for_it(home: Path) -> None:
    async with open_journal(home) as journal:
        await journal.log.append("s", SMALL, 0)
        trace = Trace(journal)
        async with held(journal):
            futures = [journal.log.append("s", SMALL, seq) for seq in range(1, 10)]
            futures.append(journal.log.append("s", SMALL, 10, Durability.POWER))
            futures += [journal.log.append("s", SMALL, seq) for seq in range(11, 20)]
        await asyncio.gather(*futures)
        assert trace.statements[0] == "PRAGMA synchronous = FULL"
        assert trace.count("PRAGMA") == 1
        assert trace.count("INSERT") == 1


# --- who waits for whom


async def test_other_streams_go_on_while_a_large_payload_is_being_stored(home: Path) -> None:
    order: list[str] = []

    def note(name: str, future: asyncio.Future[int]) -> None:
        future.add_done_callback(lambda _: order.append(name))

    async with open_journal(home) as journal:
        large = journal.log.append("large", [NewEvent("k", bytes(60 * MB))], 0)
        behind = journal.log.append("large", SMALL, 1)
        note("large", large)
        note("behind", behind)
        for seq in range(5):
            small = journal.log.append("small", SMALL, seq)
            note("small", small)
            await small
        await journal.records.create("b", "k", b"value")
        order.append("record")
        assert await journal.log.read("large") == []
        assert (await behind, await large) == (2, 1)
        assert order == ["small"] * 5 + ["record", "large", "behind"]
        events = await journal.log.read("large")
        assert await journal.payload(events[0]) == bytes(60 * MB)


async def test_reading_does_not_wait_for_the_writer(home: Path) -> None:
    async with open_journal(home) as journal:
        last = await append_batches(journal, "s", 10)
        async with held(journal), asyncio.timeout(LIMIT / 2):
            waiting = journal.log.append("s", batch("s", last + 1), last)
            assert await assert_whole(journal, "s") == last
            assert [info.last_seq for info in await journal.log.streams()] == [last]
            assert not waiting.done()
        assert await waiting > last


# --- closing


def threads() -> set[str]:
    for thread in threading.enumerate():
        if thread.name.startswith("bridle-journal-door"):
            thread.join(5)  # it has opened or closed one and may be on its last instruction
    names = {thread.name for thread in threading.enumerate()}
    return {name for name in names if name.startswith("bridle-journal")}


async def test_closing_settles_all_that_was_submitted(home: Path) -> None:
    opened = open_journal(home)
    journal = await opened.__aenter__()
    futures = []
    lasts = dict.fromkeys(("a", "b", f"{LARGE}-0"), 0)
    for _ in range(50):
        for stream, last in lasts.items():
            events = batch(stream, last + 1)
            futures.append(journal.log.append(stream, events, last))
            lasts[stream] += len(events)
    record = asyncio.ensure_future(journal.records.create("b", "k", b"value"))
    await asyncio.sleep(0)  # it has asked
    await opened.__aexit__(None, None, None)
    assert all(future.done() for future in futures)
    assert [future.exception() for future in futures] == [None] * len(futures)
    assert await record == 1
    async with open_journal(home) as journal:
        for stream, last in lasts.items():
            assert await assert_whole(journal, stream) == last
            assert is_end_of_batch(stream, last)


async def test_a_closed_journal_says_so_and_leaves_no_threads(home: Path) -> None:
    assert threads() == set()
    async with open_journal(home) as journal:
        await append_batches(journal, f"{LARGE}-0", 20)
        await assert_whole(journal, f"{LARGE}-0")
        assert "bridle-journal" in threads()
    assert threads() == set()
    for refused in (
        journal.log.append("s", SMALL, 0),
        journal.log.read("s"),
        journal.log.delete("s", 0),
        journal.records.create("b", "k", b""),
        journal.blobs.put(b"blob"),
        journal.check(),
        journal.vacuum(),
    ):
        with pytest.raises(JournalClosed):
            await refused
    assert threads() == set()
    await journal.aclose()


async def test_a_feed_that_is_reading_history_ends_when_the_journal_closes(home: Path) -> None:
    async with asyncio.timeout(LIMIT), open_journal(home) as journal:
        await append_batches(journal, "s", 10)
        feed = journal.log.follow("s")
        async with held(journal):
            closing = asyncio.create_task(journal.aclose())
            await until_reads_are_refused(journal)
            reading = asyncio.create_task(all_of(feed))
            await asyncio.sleep(0)  # it asks for history
        await closing
        assert await reading == []


async def all_of(feed: Feed) -> list[Batch]:
    return [found async for found in feed]


async def until_reads_are_refused(journal: SqliteJournal) -> None:
    while True:
        try:
            await journal._sqlite.read("s", 0, 1)
        except JournalClosed:
            return


async def test_a_delete_that_closing_interrupts_says_so_and_stays_whole(home: Path) -> None:
    async with open_journal(home) as journal:
        last = await append_batches(journal, "s", 600)
        deleting = asyncio.ensure_future(journal.log.delete("s", last))
        await asyncio.sleep(0)
    with pytest.raises(JournalClosed):
        await deleting
    async with open_journal(home) as journal:
        assert await journal.log.read("s") == []
        assert (await journal.log.info("s")).first_seq == last + 1
        await journal.vacuum()
        assert (await journal.check()).events == 0
        assert await journal.log.append("s", SMALL, last) == last + 1
