"""The file and its folder: rights, locks, versions, limits, and what is no journal."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import stat
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridle.errors import (
    InvalidEntry,
    JournalCorrupt,
    JournalError,
    JournalInUse,
    JournalTooNew,
    JournalUnusable,
)
from bridle.journal.sqlite import schema, space
from bridle.journal.sqlite.schema import MAX_STREAM
from bridle.journal.sqlite.store import open_journal

from .contents import (
    LARGE,
    append_batches,
    assert_whole,
    assert_writable,
    batch,
    is_end_of_batch,
)
from .files import content, database, files_in, log_of, one, raw
from .gates import LIMIT

REPO = Path(__file__).parents[3]


# --- rights


async def test_everything_in_the_folder_is_for_its_owner_alone_whatever_the_umask(
    home: Path,
) -> None:
    before = os.umask(0)
    try:
        async with open_journal(home) as journal:
            await append_batches(journal, f"{LARGE}-0", 20)
            await journal.blobs.put(b"blob")
            names = {path.name for path in files_in(home)}
            assert {"journal.db", "journal.db-wal", "journal.db-shm", "journal.lock"} <= names
            assert "journal.ballast" in names
            assert len(files_in(home, "blobs/??/*")) > 1
            modes_of_files, modes_of_folders = modes_in(home)
    finally:
        os.umask(before)
    assert modes_of_files == {0o600}
    assert modes_of_folders == {0o700}


def modes_in(home: Path) -> tuple[set[int], set[int]]:
    paths = [home, *home.rglob("*")]
    return (
        {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_file()},
        {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_dir()},
    )


# --- locks


@asynccontextmanager
async def holder(home: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Another process that has the journal open."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.journal.sqlite.holding",
        str(home),
        cwd=REPO,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin
    assert process.stdout
    try:
        async with asyncio.timeout(LIMIT):
            assert await process.stdout.readline() == b"open\n"
        yield process
    finally:
        process.stdin.close()
        async with asyncio.timeout(LIMIT):
            await process.wait()


async def test_a_journal_that_another_process_has_is_refused_with_its_pid(home: Path) -> None:
    async with holder(home) as process:
        for _ in range(2):
            with pytest.raises(JournalInUse, match=rf"process {process.pid}: stop it") as caught:
                async with open_journal(home):
                    pass
            assert caught.value.pid == process.pid
    async with open_journal(home) as journal:
        await assert_writable(journal, "s")


async def test_a_journal_is_free_as_soon_as_its_holder_was_killed(home: Path) -> None:
    async with holder(home) as process:
        process.send_signal(signal.SIGKILL)
        await process.wait()
        async with open_journal(home) as journal:
            assert is_end_of_batch("s", await assert_whole(journal, "s"))
            await assert_writable(journal, "s")


async def test_a_process_can_not_open_its_own_journal_twice(home: Path) -> None:
    async with open_journal(home) as journal:
        with pytest.raises(JournalInUse) as caught:
            async with open_journal(home):
                pass
        assert caught.value.pid == os.getpid()
        await assert_writable(journal, "s")
    async with open_journal(home) as journal:
        await assert_writable(journal, "s")


async def test_a_journal_whose_opening_was_cancelled_can_be_opened(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled, reserve = threading.Event(), space._reserve

    def reserve_later(fd: int) -> None:
        assert cancelled.wait(LIMIT)
        reserve(fd)

    monkeypatch.setattr(space, "_reserve", reserve_later)
    opening = asyncio.ensure_future(open_journal(home).__aenter__())
    await asyncio.to_thread(wait_until_locked, home)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    cancelled.set()
    async with asyncio.timeout(LIMIT):
        await assert_opens_in_the_end(home)


async def assert_opens_in_the_end(home: Path) -> None:
    while True:
        try:
            async with open_journal(home) as journal:
                return await assert_writable(journal, "s")
        except JournalInUse:  # as long as nobody has noticed that nobody wants it any more
            continue


def wait_until_locked(home: Path) -> None:
    lock, deadline = home / "journal.lock", time.monotonic() + LIMIT
    while not (lock.exists() and lock.read_bytes()):
        assert time.monotonic() < deadline


# --- versions


async def test_a_journal_of_a_newer_bridle_is_refused_and_not_touched(home: Path) -> None:
    async with open_journal(home) as journal:
        await append_batches(journal, "s", 3)
    with raw(home) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = content(database(home))
    with pytest.raises(JournalTooNew, match="use the newer Bridle") as caught:
        async with open_journal(home):
            pass
    assert (caught.value.version, caught.value.known) == (99, len(schema.MIGRATIONS))
    assert content(database(home)) == before
    assert not log_of(home).exists()


async def test_an_older_journal_is_brought_up_to_date_once_and_keeps_its_events(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_journal(home) as journal:
        last = await append_batches(journal, "s", 20)
        await journal.records.create("b", "k", b"value")
    version = len(schema.MIGRATIONS)
    assert one(home, "PRAGMA user_version") == version
    more = (
        "CREATE TABLE extra (x INTEGER); INSERT INTO extra VALUES (1)",
        "ALTER TABLE stream ADD COLUMN note TEXT; INSERT INTO extra VALUES (2)",
    )
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, *more))
    for _ in range(3):
        async with open_journal(home) as journal:
            assert await assert_whole(journal, "s") >= last
            assert (await journal.records.list("b"))[0].value == b"value"
            await assert_writable(journal, "s")
        assert one(home, "PRAGMA user_version") == version + 2
        assert one(home, "SELECT count(*) FROM extra") == 2


async def test_an_upgrade_that_fails_half_way_leaves_the_version_before_whole(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_journal(home) as journal:
        last = await append_batches(journal, "s", 20)
    version = len(schema.MIGRATIONS)
    more = (
        "CREATE TABLE kept (x INTEGER)",
        "CREATE TABLE half (x INTEGER); DELETE FROM event; INSERT INTO nowhere VALUES (1)",
    )
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, *more))
        with pytest.raises(JournalError, match="nowhere"):
            async with open_journal(home):
                pass
        assert one(home, "PRAGMA user_version") == version + 1
        assert one(home, "SELECT count(*) FROM sqlite_schema WHERE name = 'kept'") == 1
        assert one(home, "SELECT count(*) FROM sqlite_schema WHERE name = 'half'") == 0
        assert one(home, "SELECT count(*) FROM event") == last
        patch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:-1])
        async with open_journal(home) as journal:
            assert await assert_whole(journal, "s") == last


# --- what is no journal


def make_database_of_another_program(home: Path) -> None:
    home.mkdir()
    with raw(home) as connection:
        connection.execute("CREATE TABLE theirs (x)")
        connection.execute("INSERT INTO theirs VALUES (1)")


def make_garbage(home: Path) -> None:
    home.mkdir()
    database(home).write_bytes(random.Random(1).randbytes(50_000))


async def test_a_database_of_another_program_is_refused_and_not_touched(home: Path) -> None:
    make_database_of_another_program(home)
    before = content(database(home))
    with pytest.raises(JournalCorrupt, match="a database of another program: choose another home"):
        async with open_journal(home):
            pass
    assert content(database(home)) == before


async def test_a_file_that_is_no_database_is_refused_and_not_touched(home: Path) -> None:
    make_garbage(home)
    before = content(database(home))
    with pytest.raises(JournalCorrupt, match="Move it aside"):
        async with open_journal(home):
            pass
    assert content(database(home)) == before
    database(home).unlink()
    async with open_journal(home) as journal:
        await assert_writable(journal, "s")


async def test_a_folder_in_place_of_the_file_is_refused_and_keeps_nothing_locked(
    home: Path,
) -> None:
    database(home).mkdir(parents=True)
    with pytest.raises(JournalUnusable):
        async with open_journal(home):
            pass
    database(home).rmdir()
    async with open_journal(home) as journal:
        await assert_writable(journal, "s")


# --- limits


async def test_a_journal_without_room_for_a_stream_refuses_it_each_time_and_goes_on(
    home: Path,
) -> None:
    async with open_journal(home) as journal:
        await append_batches(journal, "s", 3)
    with raw(home) as connection:
        connection.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'stream'", [MAX_STREAM])
    for _ in range(2):
        async with open_journal(home) as journal:
            for _ in range(2):
                with pytest.raises(InvalidEntry, match="start a new one"):
                    await journal.log.append("new", batch("new", 1), 0)
            await assert_writable(journal, "s")
            assert [info.name for info in await journal.log.streams()] == ["s"]
            assert (await journal.check()).is_sound
