"""Disks that are full, write-protected, or somewhere else: real mounts, of a memory disk and of an
ext4 image, which behave differently when they are full."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from bridle.errors import (
    DiskFull,
    JournalUnusable,
    WrongSequence,
)
from bridle.journal import Durability, NewEvent, Record
from bridle.journal.events import MAX_BODY
from bridle.journal.sqlite import place
from bridle.journal.sqlite.space import BALLAST_SIZE
from bridle.journal.sqlite.store import SqliteJournal, open_journal

from .contents import append_batches, assert_whole, batch, read_all
from .disks import Disk, tmpfs

LIMIT = 60.0
SIZE = 32 * 1024
#: More than fits beside the ballast on any disk here.
MANY = 10_000


def page(number: int) -> list[NewEvent]:
    """One event that needs some space."""
    return [NewEvent("page", (f"{number};".encode() * SIZE)[:SIZE])]


async def append_until_full(
    journal: SqliteJournal, stream: str, durability: Durability = Durability.PROCESS
) -> int:
    """The last number that was acknowledged before there was no space."""
    last = (await journal.log.info(stream)).last_seq
    for _ in range(MANY):
        try:
            last = await journal.log.append(stream, page(last + 1), last, durability)
        except DiskFull:
            return last
    raise AssertionError("the disk is never full")


async def assert_pages(journal: SqliteJournal, stream: str, last: int) -> None:
    events = await read_all(journal.log, stream)
    assert [event.seq for event in events] == list(range(1, last + 1))
    assert [event.body for event in events] == [page(event.seq)[0].body for event in events]


def ballast(disk: Disk) -> Path:
    return disk.folder / place.BALLAST


def has_ballast(disk: Disk) -> bool:
    return ballast(disk).exists() and ballast(disk).stat().st_size == BALLAST_SIZE


# --- full


async def test_an_append_to_a_full_disk_says_what_to_do(disk: Disk) -> None:
    async with open_journal(disk.folder) as journal:
        disk.fill()
        await append_until_full(journal, "s")
        last = (await journal.log.info("s")).last_seq
        with pytest.raises(DiskFull, match=r"no space left .* free some, and it goes on by itself"):
            await journal.log.append("s", page(last + 1), last)


async def test_what_was_acknowledged_before_the_disk_was_full_can_be_read_and_followed(
    disk: Disk,
) -> None:
    async with open_journal(disk.folder) as journal, asyncio.timeout(LIMIT):
        for number in range(1, 11):
            await journal.log.append("s", page(number), number - 1)
        disk.fill()
        last = await append_until_full(journal, "s")
        assert last >= 10
        await assert_pages(journal, "s", last)
        followed = 0
        async for found in journal.log.follow("s"):
            followed += len(found.stored)
            if followed == last:
                break


async def test_last_words_are_stored_on_a_full_disk_while_ordinary_events_are_refused(
    disk: Disk,
) -> None:
    async with open_journal(disk.folder) as journal:
        assert has_ballast(disk)
        disk.fill()
        last = await append_until_full(journal, "s")
        for number in range(last + 1, last + 11):
            assert await journal.log.append("s", page(number), number - 1, Durability.POWER)
            with pytest.raises(DiskFull):
                await journal.log.append("s", page(number + 1), number)
        await assert_pages(journal, "s", last + 10)
    async with open_journal(disk.folder) as journal:
        await assert_pages(journal, "s", last + 10)


async def test_last_words_are_stored_when_they_are_the_first_to_find_the_disk_full(
    disk: Disk,
) -> None:
    async with open_journal(disk.folder) as journal:
        disk.fill()
        for number in range(1, 11):
            await journal.log.append("s", page(number), number - 1, Durability.POWER)
        await assert_pages(journal, "s", 10)
        with pytest.raises(DiskFull):
            await journal.log.append("s", page(11), 10)


async def test_last_words_are_refused_when_the_ballast_is_used_up(disk: Disk) -> None:
    async with open_journal(disk.folder) as journal:
        disk.fill()
        before = await append_until_full(journal, "s")
        last = await append_until_full(journal, "s", Durability.POWER)
        # Most of the ballast was there for them, and all of them are.
        assert BALLAST_SIZE / 2 < (last - before) * SIZE < BALLAST_SIZE * 1.2
        with pytest.raises(DiskFull, match="free some"):
            await journal.log.append("s", page(last + 1), last, Durability.POWER)
        await assert_pages(journal, "s", last)


async def test_service_goes_on_by_itself_when_there_is_space_again(disk: Disk) -> None:
    async with open_journal(disk.folder) as journal, asyncio.timeout(LIMIT):
        feed = journal.log.follow("s")
        disk.fill()
        await append_until_full(journal, "s")
        last = await append_until_full(journal, "s", Durability.POWER)
        assert not ballast(disk).exists()
        disk.free()
        for number in range(last + 1, last + 21):
            await journal.log.append("s", page(number), number - 1)
        assert has_ballast(disk)
        await assert_pages(journal, "s", last + 20)
        followed: list[int] = []
        async for found in feed:
            followed += [event.seq for event in found.stored]
            if len(followed) >= last + 20:
                break
        assert followed == list(range(1, last + 21))


async def test_a_disk_may_be_full_again_and_again(disk: Disk) -> None:
    async with open_journal(disk.folder) as journal:
        for _ in range(3):
            assert has_ballast(disk)
            disk.fill()
            last = await append_until_full(journal, "s")
            assert not ballast(disk).exists()
            await journal.log.append("s", page(last + 1), last, Durability.POWER)
            disk.free()
            assert await journal.log.append("s", page(last + 2), last + 1) == last + 2
            await journal.log.delete("s", last + 2)
            await journal.vacuum()
        assert (await journal.check()).problems == []


async def test_records_are_refused_stored_as_last_words_and_go_on_like_events(disk: Disk) -> None:
    value = bytes(SIZE)
    async with open_journal(disk.folder) as journal, asyncio.timeout(LIMIT):
        records, watch = journal.records, journal.records.watch("b")
        assert await anext(watch) == []
        revision = await records.create("b", "k", value)
        disk.fill()
        await append_until_full(journal, "s")
        with pytest.raises(DiskFull, match="free some"):
            await records.put("b", "k", b"refused" + value, revision)
        assert await records.get("b", "k") == Record("k", revision, value)
        revision = await records.put("b", "k", b"last words" + value, revision, Durability.POWER)
        with pytest.raises(DiskFull):
            await records.delete("b", "k", revision)
        disk.free()
        revision = await records.put("b", "k", b"on" + value, revision)
        newest = Record("k", revision, b"on" + value)
        assert await records.list("b") == [newest]
        assert revision == 3
        assert await anext(watch) == [newest]


async def test_a_payload_that_does_not_fit_fails_alone(disk: Disk) -> None:
    async with open_journal(disk.folder) as journal:
        await journal.log.append("large", page(1), 0)
        disk.fill(leave=3 << 20)
        large = journal.log.append("large", [NewEvent("k", bytes(6 << 20))], 1)
        behind = journal.log.append("large", page(3), 2)
        others = [journal.log.append("s", page(n), n - 1) for n in range(1, 11)]
        assert [await other for other in others] == list(range(1, 11))
        with pytest.raises(DiskFull, match="free some"):
            await large
        with pytest.raises(WrongSequence):
            await behind
        assert [file for file in disk.folder.rglob("*") if file.suffix == ".part"] == []
        assert await journal.log.append("large", page(2), 1) == 2
        await assert_pages(journal, "large", 2)
        await assert_pages(journal, "s", 10)


async def test_a_payload_that_does_not_fit_takes_no_space_meanwhile(disk: Disk) -> None:
    async with open_journal(disk.folder) as journal:
        disk.fill(leave=3 << 20)
        blobs = disk.folder / place.BLOBS
        before = blobs.stat().st_mtime_ns
        with pytest.raises(DiskFull, match="free some"):
            await journal.log.append("large", [NewEvent("k", bytes(6 << 20))], 0)
        # No file was begun in it.
        assert blobs.stat().st_mtime_ns == before


async def test_a_batch_of_which_a_payload_does_not_fit_leaves_none_of_its_payloads(
    disk: Disk,
) -> None:
    async with open_journal(disk.folder) as journal:
        disk.fill(leave=3 << 20)
        events = [NewEvent("k", bytes(MAX_BODY + 1)), NewEvent("k", bytes(6 << 20))]
        with pytest.raises(DiskFull):
            await journal.log.append("s", events, 0)
        disk.free()
        await journal.vacuum()
        assert list(disk.folder.glob("blobs/??/*")) == []


async def test_a_stream_can_be_deleted_from_a_full_disk_to_make_space(disk: Disk) -> None:
    async with open_journal(disk.folder) as journal:
        await journal.log.append("old", [NewEvent("k", os.urandom(9 << 20))], 0)
        disk.fill()
        last = await append_until_full(journal, "s")
        await journal.log.delete("old", 1)
        assert await journal.log.append("s", page(last + 1), last) == last + 1


@pytest.mark.slow
async def test_events_can_be_deleted_and_vacuumed_from_a_full_disk_to_make_space(
    disk: Disk,
) -> None:
    async with open_journal(disk.folder) as journal:
        old = 0
        while old * len(page(1)[0].body) < 10 << 20:
            old = await journal.log.append("old", page(old + 1), old)
        disk.fill()
        last = await append_until_full(journal, "s")
        await journal.log.delete("old", old)
        # The way out is not at the price of last words.
        last = await journal.log.append("s", page(last + 1), last, Durability.POWER)
        async with asyncio.timeout(LIMIT):
            await journal.vacuum()
        assert await journal.log.append("s", page(last + 1), last) == last + 1
        await assert_pages(journal, "s", last + 1)
        assert (await journal.check()).problems == []


async def test_a_large_payload_is_refused_while_the_disk_is_full(disk: Disk) -> None:
    async with open_journal(disk.folder) as journal:
        disk.fill()
        last = await append_until_full(journal, "s")
        with pytest.raises(DiskFull):
            await journal.log.append("large", [NewEvent("k", bytes(300_000))], 0)
        last = await journal.log.append("s", page(last + 1), last, Durability.POWER)
        disk.free()
        assert await journal.log.append("large", [NewEvent("k", bytes(300_000))], 0) == 1


async def test_exactly_what_was_acknowledged_is_stored_through_many_full_disks(
    disk: Disk,
) -> None:
    luck = random.Random(7)
    streams = ("a", "b", "c")
    last = dict.fromkeys(streams, 0)
    refused = 0
    async with open_journal(disk.folder) as journal:
        for _ in range(8):
            disk.fill(leave=luck.choice((0, 100_000, 300_000)))
            for _ in range(4):
                refused += await _append_some(journal, streams, last, luck)
            disk.free()
            refused_now = await _append_some(journal, streams, last, luck)
            assert not refused_now
    assert refused > 20
    async with open_journal(disk.folder) as journal:
        for stream in streams:
            assert await assert_whole(journal, stream) == last[stream]
        assert (await journal.check()).problems == []


async def _append_some(
    journal: SqliteJournal, streams: Sequence[str], last: dict[str, int], luck: random.Random
) -> int:
    """Pipeline batches on all streams and keep their last numbers. How many were refused."""
    futures = []
    expected = dict(last)
    for _ in range(30):
        stream = luck.choice(streams)
        events = batch(stream, expected[stream] + 1)
        durability = luck.choice((Durability.PROCESS,) * 5 + (Durability.POWER,))
        future = journal.log.append(stream, events, expected[stream], durability)
        expected[stream] += len(events)
        futures.append((stream, future))
    refused = 0
    for stream, future in futures:
        try:
            last[stream] = await future
        except (DiskFull, WrongSequence):
            refused += 1
    return refused


# --- opening and closing on a full disk


async def test_a_journal_on_a_full_disk_opens_for_reading_and_last_words(disk: Disk) -> None:
    async with open_journal(disk.folder) as journal:
        for number in range(1, 11):
            await journal.log.append("s", page(number), number - 1)
    disk.fill()
    async with open_journal(disk.folder) as journal:
        await assert_pages(journal, "s", 10)
        last = await append_until_full(journal, "s")
        await journal.log.append("s", page(last + 1), last, Durability.POWER)
        await assert_pages(journal, "s", last + 1)
        disk.free()
        await journal.log.append("s", page(last + 2), last + 1)
        assert has_ballast(disk)
        await assert_pages(journal, "s", last + 2)


async def test_what_a_crash_left_is_recovered_on_a_full_disk(tmp_path: Path, disk: Disk) -> None:
    async with open_journal(tmp_path / "elsewhere") as journal:
        for number in range(1, 101):
            await journal.log.append("s", page(number), number - 1)
        shutil.copytree(tmp_path / "elsewhere", disk.folder, dirs_exist_ok=True)
    assert (disk.folder / "journal.db-wal").stat().st_size > 100 * SIZE
    (disk.folder / "journal.db-shm").unlink()
    disk.fill()
    async with open_journal(disk.folder) as journal:
        await assert_pages(journal, "s", 100)
        await journal.log.append("s", page(101), 100, Durability.POWER)
        disk.free()
        await journal.log.append("s", page(102), 101)
        await assert_pages(journal, "s", 102)


async def test_a_journal_closed_on_a_full_disk_is_whole_when_it_is_opened_again(
    disk: Disk,
) -> None:
    async with open_journal(disk.folder) as journal:
        disk.fill(leave=1 << 20)
        await append_until_full(journal, "s")
        last = await append_until_full(journal, "s", Durability.POWER)
    disk.free()
    async with open_journal(disk.folder) as journal:
        await assert_pages(journal, "s", last)
        assert await journal.log.append("s", page(last + 1), last) == last + 1
        assert (await journal.check()).problems == []


async def test_a_new_journal_that_found_no_space_opens_when_there_is_some(disk: Disk) -> None:
    disk.fill()
    home = disk.folder / "home"
    with pytest.raises(DiskFull, match="free some"):
        async with open_journal(home):
            pass
    disk.free()
    async with open_journal(home) as journal:
        assert await append_batches(journal, "s", 1) > 0


# --- write-protected


async def test_a_journal_on_a_write_protected_disk_is_refused_with_what_to_do(disk: Disk) -> None:
    async with open_journal(disk.folder) as journal:
        await append_batches(journal, "s", 1)
    disk.protect()
    with pytest.raises(JournalUnusable, match=r"can't be written .*Read-only.*: make it writable"):
        async with open_journal(disk.folder):
            pass


async def test_a_new_journal_on_a_write_protected_disk_is_refused_with_what_to_do(
    disk: Disk,
) -> None:
    disk.protect()
    with pytest.raises(JournalUnusable, match=r"can't be written .*Read-only.*: make it writable"):
        async with open_journal(disk.folder / "home"):
            pass


# --- somewhere else


async def test_a_network_file_system_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tmpfs(tmp_path / "disk") as disk:
        monkeypatch.setattr(place, "NETWORK_FILE_SYSTEMS", {"tmpfs"})
        with pytest.raises(JournalUnusable, match=r"network file system \(tmpfs\).*choose a home"):
            async with open_journal(disk.folder / "home"):
                pass
        assert list(disk.folder.rglob("journal.*")) == []


def test_the_type_of_a_file_system_is_that_of_the_nearest_mount(disk: Disk) -> None:
    inside = disk.folder / "some" / "where"
    inside.mkdir(parents=True)
    kind = place.file_system_of(disk.folder)
    assert kind in ("ext4", "tmpfs")
    assert place.file_system_of(inside) == kind
    with tmpfs(inside / "deeper") as deeper:
        assert place.file_system_of(deeper.folder) == "tmpfs"
        assert place.file_system_of(inside) == kind


@pytest.mark.parametrize(
    "name",
    [
        "with a space",
        "with\ttab",
        "with\\backslash",
        "Büro",
        "a\u00a0b",
        "a\u2028b",
        "a\rb",
        "\udcff",
    ],
    ids=["space", "tab", "backslash", "umlaut", "no-break space", "line separator", "cr", "bytes"],
)
def test_a_mount_point_is_found_whatever_its_name(tmp_path: Path, name: str) -> None:
    # The disk that holds the temporary files is no tmpfs, or this would show nothing.
    with tmpfs(tmp_path / name) as disk:
        (disk.folder / "home").mkdir()
        assert place.file_system_of(disk.folder / "home") == "tmpfs"
