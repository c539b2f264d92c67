"""What is wrong with one write, or in the hands of another program, is not the others' problem."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from bridle.errors import (
    JournalError,
    JournalUnwritable,
    WrongSequence,
)
from bridle.journal import NewEvent
from bridle.journal.sqlite import store
from bridle.journal.sqlite.store import open_journal

from .contents import (
    append_batches,
    assert_whole,
    assert_writable,
    batch,
)
from .files import raw
from .gates import held


async def test_a_program_that_reads_the_file_is_in_nobodys_way(home: Path) -> None:
    async with open_journal(home) as journal:
        before = await append_batches(journal, "s", 5)
        with raw(home) as connection:
            connection.execute("BEGIN")
            count = "SELECT count(*) FROM event"
            assert connection.execute(count).fetchone() == (before,)
            last = await append_batches(journal, "s", 200)
            await journal.log.append("t", [NewEvent("k", bytes(200_000))] * 20, 0)
            # It sees what was there when it began, as long as it likes.
            assert connection.execute(count).fetchone() == (before,)
            connection.execute("COMMIT")
            assert connection.execute(count).fetchone() == (last + 20,)
        assert await assert_whole(journal, "s") == last
        await assert_writable(journal, "s")
        assert (await journal.check()).is_sound


async def test_a_program_that_reads_the_file_does_not_make_appends_wait_for_a_vacuum(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "BUSY_SECONDS", 4.0)
    async with open_journal(home) as journal:
        await append_batches(journal, "s", 5)
        with raw(home) as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM event").fetchone()
            await append_batches(journal, "s", 5)
            vacuum = asyncio.create_task(journal.vacuum())
            while not vacuum.done():
                async with asyncio.timeout(3.5):  # less than the other would hold us up
                    await append_batches(journal, "s", 1)
            await vacuum
        await assert_writable(journal, "s")


async def test_a_program_that_holds_the_file_makes_appends_fail_until_it_lets_go(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.1)
    async with open_journal(home) as journal:
        last = await append_batches(journal, "s", 3)
        with raw(home) as connection:
            connection.execute("BEGIN IMMEDIATE")
            with pytest.raises(JournalUnwritable, match=r"held by another program"):
                await journal.log.append("s", batch("s", last + 1), last)
            with pytest.raises(JournalUnwritable, match=r"held by another program"):
                await journal.records.create("b", "k", b"value")
            assert await assert_whole(journal, "s") == last
            connection.execute("ROLLBACK")
        await assert_writable(journal, "s")
        assert await journal.records.create("b", "k", b"value") == 1


async def test_many_appends_do_not_wait_one_after_the_other_for_a_program_that_holds_the_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = 0.2
    monkeypatch.setattr(store, "BUSY_SECONDS", busy)
    async with open_journal(home) as journal:
        await append_batches(journal, "s", 3)
        with raw(home) as connection:
            connection.execute("BEGIN IMMEDIATE")
            async with held(journal):
                futures = [
                    journal.log.append(f"s-{number}", [NewEvent("k", b"")], 0)
                    for number in range(100)
                ]
            async with asyncio.timeout(busy * 20):
                errors = await asyncio.gather(*futures, return_exceptions=True)
            assert {type(error) for error in errors} == {JournalUnwritable}
            connection.execute("ROLLBACK")
        await assert_writable(journal, "s")


async def test_a_write_that_can_not_be_stored_fails_alone_in_its_group(home: Path) -> None:
    def refuse_some(connection: sqlite3.Connection) -> None:
        connection.execute(
            "CREATE TEMP TRIGGER picky BEFORE INSERT ON main.event WHEN NEW.kind = 'bad'"
            " BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        )

    async with open_journal(home) as journal:
        last = await append_batches(journal, "s", 3)
        await journal._sqlite.job(refuse_some)
        async with held(journal):
            before = journal.log.append("s", batch("s", last + 1), last)
            bad = journal.log.append("bad", [NewEvent("bad", b"")], 0)
            behind = journal.log.append("bad", [NewEvent("k", b"")], 1)
            record = asyncio.ensure_future(journal.records.create("b", "k", b"value"))
            other = journal.log.append("other", batch("other", 1), 0)
        with pytest.raises(JournalError, match="not this one"):
            await bad
        with pytest.raises(WrongSequence):
            await behind
        assert await before == await assert_whole(journal, "s") > last
        assert await other == await assert_whole(journal, "other")
        assert await record == 1
        assert await journal.log.read("bad") == []
        assert await journal.log.append("bad", [NewEvent("k", b"")], 0) == 1
