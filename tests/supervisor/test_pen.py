"""What a pen promises those who wait for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bridle.errors import JournalClosed
from bridle.journal import NewEvent, memory_journal, open_journal
from bridle.journal.events import MAX_BODY
from bridle.journal.owner import StreamOwner
from bridle.journal.sqlite.store import SqliteJournal
from bridle.supervisor.pen import MOST_BYTES, MOST_EVENTS, Pen, fits

EVENT = NewEvent("k", b"{}")


def numbered(count: int) -> list[NewEvent]:
    return [NewEvent("k", b"%d" % number) for number in range(count)]


async def protect(journal: SqliteJournal, *, is_on: bool = True) -> None:
    """Nothing can be written to it; or it can again."""
    await journal._sqlite.job(lambda db: db.execute(f"PRAGMA query_only = {int(is_on)}"))


async def test_it_is_not_quiet_while_somebody_is_still_to_be_told() -> None:
    """What is saved when it is quiet must have in it all that is stored."""
    async with memory_journal() as journal:
        pen, seen = Pen(StreamOwner(journal.log, "s")), []
        pen.write([EVENT])
        for _ in range(3):  # these go together, in the next batch
            pen.write([EVENT], lambda: seen.append((pen.last_seq, pen.is_quiet)))
        await pen.idle()
    assert seen == [(4, False), (4, False), (4, True)]


async def test_more_than_a_batch_can_hold_is_stored_in_order_and_told_at_the_end() -> None:
    async with memory_journal() as journal:
        pen, told = Pen(StreamOwner(journal.log, "s")), []
        events = numbered(2 * MOST_EVENTS + 1)
        pen.write([EVENT])
        pen.write(events, lambda: told.append((pen.last_seq, pen.backlog)))
        assert pen.backlog == sum(len(event.body) for event in (EVENT, *events))
        await pen.idle()
        assert told == [(len(events) + 1, 0)]
        read = await journal.log.read("s", 1, len(events) + 1)
        assert [event.body for event in read] == [event.body for event in events]


def test_what_fits_is_known_to_the_last_event_and_byte() -> None:
    assert fits(numbered(MOST_EVENTS))
    assert not fits(numbered(MOST_EVENTS + 1))
    # A larger body is stored elsewhere.
    large = [NewEvent("k", bytes(size)) for size in (MAX_BODY, MAX_BODY + 1)]
    most = large * (MOST_BYTES // MAX_BODY // 2)
    assert fits(most)
    assert not fits([*most, NewEvent("k", b"1")])


async def test_what_is_taken_back_in_time_is_neither_stored_nor_told() -> None:
    async with memory_journal() as journal:
        pen, told = Pen(StreamOwner(journal.log, "s")), []
        first = pen.write([NewEvent("k", b"1")], lambda: told.append(1))
        second = pen.write([NewEvent("k", b"2")], lambda: told.append(2))
        third = pen.write([NewEvent("k", b"3")], lambda: told.append(3))
        assert not pen.take_back(first)  # it is on its way
        assert pen.take_back(second)
        assert pen.backlog == 2
        await pen.idle()
        assert pen.is_quiet
        assert not pen.take_back(third)
        assert (told, pen.backlog) == ([1, 3], 0)
        assert [event.body for event in await journal.log.read("s", 0, 9)] == [b"1", b"3"]


async def test_a_mistake_of_one_who_is_told_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def mistaken() -> None:
        raise ZeroDivisionError("theirs")

    async with memory_journal() as journal:
        pen, told = Pen(StreamOwner(journal.log, "s")), []
        pen.write([EVENT], mistaken)
        pen.write([EVENT], lambda: told.append(pen.last_seq))
        await pen.idle()
    assert told == [2]
    assert "theirs" in caplog.text


async def test_what_can_not_be_written_is_tried_until_it_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_journal(tmp_path / "journal") as journal:
        assert isinstance(journal, SqliteJournal)
        pen, told = Pen(StreamOwner(journal.log, "s")), []
        await pen.stored([EVENT])
        for time in (1, 2):  # it may happen again
            await protect(journal)
            pen.write([EVENT], lambda: told.append(pen.last_seq))
            await pen.idle_or_stuck()
            assert (pen.is_stuck, pen.is_quiet, len(told)) == (True, False, time - 1)
            waiting = asyncio.ensure_future(pen.stored([EVENT]))
            await protect(journal, is_on=False)
            await waiting
            await pen.idle_or_stuck()
            assert (pen.is_stuck, pen.is_quiet, pen.backlog) == (False, True, 0)
            assert (told[-1], pen.last_seq) == (2 * time, 2 * time + 1)
        assert len(await journal.log.read("s", 0, 9)) == 5
        assert caplog.text.count("can't be written down") == 2


async def test_who_waits_for_what_can_not_be_written_is_told_that_it_is_closed(
    tmp_path: Path,
) -> None:
    async with open_journal(tmp_path / "journal") as journal:
        assert isinstance(journal, SqliteJournal)
        pen = Pen(StreamOwner(journal.log, "s"))
        await protect(journal)
        waiting = [asyncio.ensure_future(pen.stored([EVENT])) for _ in range(2)]
        await pen.idle_or_stuck()
        assert pen.is_stuck
        pen.close()
        await pen.idle()
        for one in waiting:
            with pytest.raises(JournalClosed):
                await one
        with pytest.raises(JournalClosed):
            await pen.stored([EVENT])
        await protect(journal, is_on=False)
        assert await journal.log.read("s", 0, 9) == []


async def test_of_a_journal_that_was_closed_nothing_more_is_expected(tmp_path: Path) -> None:
    async with open_journal(tmp_path / "journal") as journal:
        pen = Pen(StreamOwner(journal.log, "s"))
        await pen.stored([EVENT])
    with pytest.raises(JournalClosed):
        await pen.stored([EVENT])
    await pen.idle()
    assert pen.last_seq == 1
