"""Vacuums, and what an interruption left: space comes back, and nobody is held up."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path

import pytest

from bridle.journal import NewEvent
from bridle.journal.sqlite.blobs import BlobFiles
from bridle.journal.sqlite.store import open_journal

from .contents import (
    LARGE,
    LARGE_EVENT,
    append_batches,
    assert_whole,
)
from .files import database, files_in, one, raw, size_of
from .gates import LIMIT


@pytest.mark.slow
async def test_a_vacuum_gives_space_back_while_others_append(home: Path) -> None:
    async with open_journal(home) as journal, asyncio.timeout(LIMIT):
        for number in range(200):
            await journal.log.append("old", [NewEvent("k", os.urandom(100_000))], number)
        await append_batches(journal, "kept", 20)
        await journal.log.delete("old", 200)
        await journal._sqlite.job(lambda c: c.execute("PRAGMA wal_checkpoint").fetchall())
        before = size_of(database(home))
        assert before > 200 * 100_000
        vacuum = asyncio.create_task(journal.vacuum())
        appended = last = 0
        while not vacuum.done():
            last = await append_batches(journal, "new", 1)
            appended += 1
        await vacuum
        assert appended > 5
        assert size_of(database(home)) < before / 2
        assert await assert_whole(journal, "new") == last
        await assert_whole(journal, "kept")
        assert (await journal.check()).is_sound


async def test_a_vacuum_removes_payloads_that_nothing_refers_to_and_no_others(home: Path) -> None:
    async with open_journal(home) as journal:
        await journal.log.append("s", [LARGE_EVENT], 0)
        (used,) = files_in(home, "blobs/??/*")
        await journal.blobs.put(b"orphan")
        held_by_us = [file for file in files_in(home, "blobs/??/*") if file != used]
        await journal.vacuum()
        assert files_in(home, "blobs/??/*") == sorted([used, *held_by_us])
    async with open_journal(home) as journal:
        await journal.vacuum()
        assert files_in(home, "blobs/??/*") == [used]
        assert (await journal.check()).is_sound


async def test_a_vacuum_leaves_files_alone_that_are_no_payloads(home: Path) -> None:
    async with open_journal(home) as journal:
        await journal.log.append("s", [LARGE_EVENT], 0)
        (used,) = files_in(home, "blobs/??/*")
        stray = used.with_name(".DS_Store")
        stray.touch()
        await journal.vacuum()
        assert files_in(home, "blobs/??/*") == sorted([stray, used])


async def test_what_an_interrupted_deletion_left_does_not_count_and_may_be_half_gone(
    home: Path,
) -> None:
    async with open_journal(home) as journal:
        await journal.log.append("s", [LARGE_EVENT], 0)
        kept = await append_batches(journal, "kept", 3)
    with raw(home) as connection:
        connection.execute("UPDATE stream SET floor = 1 WHERE name = 's'")
    (file,) = files_in(home, "blobs/??/*")
    file.unlink()  # a power loss may keep this and forget that the row was removed
    async with open_journal(home) as journal:
        health = await journal.check()
        assert (health.events, health.blobs, health.problems) == (kept, 0, [])


async def test_a_vacuum_ends_a_deletion_that_was_interrupted(home: Path) -> None:
    async with open_journal(home) as journal:
        last = await append_batches(journal, f"{LARGE}-0", 30)
        await append_batches(journal, "kept", 3)
    assert len(files_in(home, "blobs/??/*")) > 3
    with raw(home) as connection:
        connection.execute("UPDATE stream SET floor = ? WHERE name = ?", (last, f"{LARGE}-0"))
    async with open_journal(home) as journal:
        assert await journal.log.read(f"{LARGE}-0") == []
        assert (await journal.log.info(f"{LARGE}-0")).first_seq == last + 1
        await journal.log.append(f"{LARGE}-0", [NewEvent("k", b"new")], last)
        await journal.vacuum()
        (event,) = await journal.log.read(f"{LARGE}-0")
        assert event.seq == last + 1
        assert files_in(home, "blobs/??/*") == []
        health = await journal.check()
        assert health.is_sound
        assert health.events == 1 + await assert_whole(journal, "kept")
    assert one(home, "SELECT count(*) FROM event") == health.events


def leave_half_written(home: Path) -> None:
    for name in ("0123456789abcdef.part", "fedcba9876543210.part"):
        (home / "blobs" / name).write_bytes(b"half")


async def test_half_written_payloads_are_removed_at_the_start(home: Path) -> None:
    async with open_journal(home) as journal:
        await journal.log.append("s", [LARGE_EVENT], 0)
    leave_half_written(home)
    async with open_journal(home) as journal:
        assert files_in(home, "blobs/*.part") == []
        assert (await journal.check()).is_sound


def test_a_payload_that_is_stored_again_while_it_is_removed_is_there_afterwards(
    tmp_path: Path,
) -> None:
    blobs, data = BlobFiles(tmp_path), b"wanted again"
    ref = blobs.put(data)
    blobs.unpin(ref.digest)
    again = threading.Thread(target=blobs.put, args=[data], daemon=True)

    def is_used() -> bool:
        again.start()
        wait_until_pinned(blobs, ref.digest)
        return False

    blobs.remove(ref.digest, is_used)
    again.join(LIMIT)
    assert not again.is_alive()
    assert blobs.get(ref) == data


def wait_until_pinned(blobs: BlobFiles, digest: str) -> None:
    """Who stores it has said so, and waits for its removal to end."""
    deadline = time.monotonic() + LIMIT
    while True:
        assert time.monotonic() < deadline
        with blobs._lock:
            if digest in blobs._pins:
                return
