"""Files that were cut, flipped, torn or edited: what is noticed, and what is still there."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from bridle.errors import (
    BlobLost,
    JournalCorrupt,
    JournalError,
)
from bridle.journal import Event, NewEvent, Verdict, verify
from bridle.journal.events import MAX_BODY
from bridle.journal.sqlite.schema import SEQ_BITS
from bridle.journal.sqlite.store import SqliteJournal, open_journal
from tests.levels import tries

from .contents import (
    LARGE,
    LARGE_EVENT,
    SEALED,
    append_batches,
    assert_whole,
    assert_writable,
    is_end_of_batch,
    read_all,
)
from .files import content, database, files_in, flip, log_of, raw, size_of
from .gates import LIMIT
from .tampering import anchor_file

TEARS = tries(20, 200, 2_000)


# --- damage


async def make_journal(home: Path) -> dict[str, list[Event]]:
    """A closed journal with some hundred pages, and all events that are in it."""
    streams = ("plain-0", f"{SEALED}-0", f"{SEALED}-1")
    async with open_journal(home) as journal:
        for _ in range(4):
            for stream in streams:
                await append_batches(journal, stream, 60)
        return {stream: await read_all(journal.log, stream) for stream in streams}


class Look:
    """What somebody sees who opens a damaged journal and reads all of it."""

    def __init__(self) -> None:
        self.refusal: JournalError | None = None
        self.problems: list[str] = []
        self.events: dict[str, list[Event]] = {}
        self.verdicts: dict[str, Verdict] = {}

    @property
    def is_noticed(self) -> bool:
        return bool(self.refusal or self.problems)


async def look_at(home: Path, streams: list[str]) -> Look:
    look = Look()
    try:
        async with open_journal(home) as journal:
            look.problems = (await journal.check()).problems
            for stream in streams:
                look.events[stream] = await read_all(journal.log, stream)
                look.verdicts[stream] = await verify(journal, stream)
    except JournalError as error:
        look.refusal = error
    return look


@pytest.mark.parametrize("share", [0.002, 0.1, 0.5, 0.9, 0.999])
async def test_a_file_that_was_cut_is_noticed(home: Path, share: float) -> None:
    events = await make_journal(home)
    os.truncate(database(home), int(size_of(database(home)) * share))
    look = await look_at(home, list(events))
    assert look.is_noticed
    assert look.refusal is None or isinstance(look.refusal, JournalCorrupt)


async def test_a_damaged_page_is_noticed_and_never_read_as_events(home: Path) -> None:
    events = await make_journal(home)
    intact = content(database(home))
    pages = len(intact) // 4096
    assert pages > 50
    luck = random.Random(2)
    for page in luck.sample(range(1, pages), 30):
        database(home).write_bytes(intact)
        with database(home).open("r+b") as file:
            file.seek(page * 4096)
            file.write(luck.randbytes(64))  # where the page says what it is
        look = await look_at(home, list(events))
        assert look.is_noticed, f"page {page}"
        assert look.refusal is None or isinstance(look.refusal, JournalCorrupt)


@pytest.mark.slow
async def test_a_flipped_byte_is_noticed_or_is_in_the_contents_of_one_event_and_found_if_sealed(
    home: Path,
) -> None:
    """SQLite has no checksums: what is said of an event may change without notice, unless it is
    sealed. Which events there are may not."""
    events = await make_journal(home)
    intact = content(database(home))
    luck = random.Random(3)
    seen_in_seals = 0
    for _ in range(150):
        database(home).write_bytes(intact)
        offset = luck.randrange(100, len(intact))
        flip(database(home), offset, 1 << luck.randrange(8))
        look = await look_at(home, list(events))
        if look.is_noticed:
            assert look.refusal is None or isinstance(look.refusal, JournalCorrupt), f"at {offset}"
            continue
        changed = []
        for stream, expected in events.items():
            found = look.events[stream]
            assert [e.seq for e in found] == [e.seq for e in expected], f"at {offset}"
            changed += [(stream, a, b) for a, b in zip(expected, found, strict=True) if a != b]
        assert len(changed) <= 1, f"at {offset}"
        for stream, before, after in changed:
            assert (type(after.body), type(after.kind), type(after.at)) == (bytes, str, float)
            if before.seal:
                assert look.verdicts[stream].broken_at == before.seq, f"at {offset}"
                seen_in_seals += 1
    assert seen_in_seals > 0


@pytest.mark.slow
@pytest.mark.deeper
async def test_a_torn_log_opens_with_whole_batches_up_to_where_it_is_torn(
    home: Path, tmp_path: Path
) -> None:
    commits = await make_crashed(home, tmp_path / "crashed")
    intact = content(log_of(tmp_path / "crashed"))
    luck = random.Random(4)
    found: set[int] = set()
    torn = tmp_path / "torn"
    shutil.copytree(tmp_path / "crashed", torn)
    for number in range(TEARS):
        shutil.copy(database(tmp_path / "crashed"), database(torn))
        anchor_file(torn).unlink(missing_ok=True)
        offset = luck.randrange(len(intact))
        log_of(torn).write_bytes(intact[:offset] if number % 2 else intact)
        if not number % 2:
            flip(log_of(torn), offset, 1 << luck.randrange(8))
        async with open_journal(torn) as journal:
            found.add(await assert_prefix(journal, commits))
            await assert_writable(journal, luck.choice(commits)[0])
    assert len(found) > TEARS / 10
    assert min(found) < len(commits) / 5
    assert max(found) > len(commits) * 4 / 5


async def make_crashed(home: Path, crashed: Path) -> list[tuple[str, int]]:
    """A journal whose log was not moved into its file, as a crash leaves it; and its commits."""
    async with open_journal(home):
        pass  # the tables are in the file; the log starts anew
    commits = []
    async with open_journal(home) as journal:
        for number in range(80):
            stream = ("a", "b", f"{SEALED}-0")[number % 3]
            commits.append((stream, await append_batches(journal, stream, 1)))
        copy_live(home, crashed)
    return commits


def copy_live(home: Path, crashed: Path) -> None:
    crashed.mkdir()
    for file in (database(home), log_of(home)):
        shutil.copy(file, crashed)


async def assert_prefix(journal: SqliteJournal, commits: list[tuple[str, int]]) -> int:
    """The journal is as it was after one of the commits; after how many of them."""
    lasts = {stream: await assert_whole(journal, stream) for stream, _ in commits}
    state: dict[str, int] = dict.fromkeys(lasts, 0)
    states = [dict(state)]
    for stream, last in commits:
        state[stream] = last
        states.append(dict(state))
    assert lasts in states
    for stream, last in lasts.items():
        assert is_end_of_batch(stream, last)
        assert (await verify(journal, stream)).is_intact
    return states.index(lasts)


# --- checking


async def test_a_healthy_journal_is_sound_and_counted_right(home: Path) -> None:
    async with open_journal(home) as journal:
        plain = await append_batches(journal, "plain", 30)
        large = await append_batches(journal, f"{LARGE}-0", 10)
        deleted = await append_batches(journal, "deleted", 3)
        await journal.log.delete("deleted", deleted)
        events = await read_all(journal.log, f"{LARGE}-0")
        blobs = {event.blob for event in events if event.blob}
        health = await journal.check()
        assert health.is_sound
        assert health.problems == []
        assert (health.events, health.blobs) == (plain + large, len(blobs))
        assert len(blobs) > 0
        assert health.streams == len(await journal.log.streams())


async def test_a_check_finds_a_payload_that_is_lost(home: Path) -> None:
    async with open_journal(home) as journal:
        await journal.log.append("s", [LARGE_EVENT], 0)
        (file,) = files_in(home, "blobs/??/*")
        file.unlink()
        (problem,) = (await journal.check()).problems
        assert "is not there" in problem
        assert file.name[:12] in problem
        with pytest.raises(BlobLost):
            await journal.payload((await journal.log.read("s"))[0])


async def test_a_check_finds_a_payload_that_is_damaged_and_storing_it_again_mends_it(
    home: Path,
) -> None:
    async with open_journal(home) as journal:
        await journal.log.append("s", [LARGE_EVENT], 0)
        (file,) = files_in(home, "blobs/??/*")
        flip(file, 100_000)
        (problem,) = (await journal.check()).problems
        assert "was changed or damaged" in problem
        with pytest.raises(BlobLost):
            await journal.payload((await journal.log.read("s"))[0])
        await journal.log.append("s", [LARGE_EVENT], 1)
        assert (await journal.check()).is_sound


@pytest.mark.slow
async def test_a_check_finds_nothing_wrong_with_streams_that_are_being_deleted(home: Path) -> None:
    streams = [f"s-{number}" for number in range(60)]
    async with open_journal(home) as journal, asyncio.timeout(LIMIT):
        for stream in streams:
            events = [NewEvent("k", os.urandom(MAX_BODY + 1)) for _ in range(6)]
            await journal.log.append(stream, events, 0)

        async def delete_all() -> None:
            for stream in streams:
                await journal.log.delete(stream, 6)

        deleting = asyncio.create_task(delete_all())
        checks = [(await journal.check()).problems]
        while not deleting.done():
            checks.append((await journal.check()).problems)
        await deleting
    assert len(checks) > 2
    assert [problems for problems in checks if problems] == []


@pytest.mark.parametrize("missing", [1, 7])
async def test_a_check_finds_a_missing_event(home: Path, missing: int) -> None:
    async with open_journal(home) as journal:
        last = await append_batches(journal, "s", 10)
        await append_batches(journal, "t", 10)
    with raw(home) as connection:
        key = f"(SELECT id FROM stream WHERE name = 's') << {SEQ_BITS} | {missing}"
        assert connection.execute(f"DELETE FROM event WHERE key = {key}").rowcount == 1
    async with open_journal(home) as journal:
        (problem,) = (await journal.check()).problems
        assert problem == "stream 's' lacks 1 of its events"
        assert (await verify(journal, "s")).broken_at == missing
        assert (await journal.log.info("s")).last_seq == last


@pytest.mark.parametrize(
    ("edit", "is_chain_cut"),
    [
        ("UPDATE event SET body = x'00' WHERE key & 0xff = 50 AND seal IS NOT NULL", False),
        ("UPDATE event SET kind = 'other' WHERE key & 0xff = 50", False),
        ("UPDATE event SET at = at + 1 WHERE key & 0xff = 50", False),
        ("UPDATE event SET seal = NULL WHERE key & 0xff = 50", True),
        ("UPDATE event SET seal = zeroblob(64) WHERE key & 0xff = 50", False),
        ("UPDATE event SET blob = zeroblob(40) WHERE key & 0xff = 50", False),
    ],
)
async def test_an_edit_of_a_sealed_event_is_found_where_it_is(
    home: Path, edit: str, is_chain_cut: bool
) -> None:
    async with open_journal(home) as journal:
        await append_batches(journal, f"{SEALED}-0", 50)
        assert (await verify(journal, f"{SEALED}-0")).is_intact
    with raw(home) as connection:
        assert connection.execute(edit).rowcount == 1
    async with open_journal(home) as journal:
        verdict = await verify(journal, f"{SEALED}-0")
        # Where the seal itself was removed, the next sealed event is the first that shows it.
        assert verdict.broken_at == (52 if is_chain_cut else 50)
        assert verdict.reason


async def test_an_edit_that_leaves_text_where_bytes_were_is_found_or_not_possible(
    home: Path,
) -> None:
    async with open_journal(home) as journal:
        await append_batches(journal, f"{SEALED}-0", 50)
    try:
        with raw(home) as connection:  # as it happens to who edits by hand
            connection.execute("UPDATE event SET body = 'edited' WHERE key & 0xff = 50")
    except sqlite3.IntegrityError:
        return
    async with open_journal(home) as journal:
        assert (await verify(journal, f"{SEALED}-0")).broken_at == 50
        assert all(type(event.body) is bytes for event in await journal.log.read(f"{SEALED}-0"))


async def test_a_removed_end_of_a_sealed_stream_is_found(home: Path) -> None:
    async with open_journal(home) as journal:
        await append_batches(journal, f"{SEALED}-0", 50)
    with raw(home) as connection:
        connection.execute("DELETE FROM event WHERE key & 0xff > 50")
    async with open_journal(home) as journal:
        verdict = await verify(journal, f"{SEALED}-0")
        assert verdict.broken_at == 51
        assert verdict.reason.startswith("events 51 to ")


async def test_a_removed_last_sealed_event_behind_deleted_ones_is_found(home: Path) -> None:
    async with open_journal(home) as journal:
        await journal.log.append("s", [NewEvent("k", b"1", is_sealed=True)] * 5, 0)
        await journal.log.delete("s", 5)
        assert (await verify(journal, "s")).is_intact
        await journal.log.append("s", [NewEvent("k", b"6", is_sealed=True)], 5)
    with raw(home) as connection:
        connection.execute("DELETE FROM event WHERE body = x'36'")
    async with open_journal(home) as journal:
        verdict = await verify(journal, "s")
        assert verdict.broken_at == 6
        assert verdict.reason.startswith("event 6 is missing")


async def test_a_changed_payload_of_a_sealed_event_is_found(home: Path) -> None:
    async with open_journal(home) as journal:
        await journal.log.append("s", [NewEvent("k", b"x" * 300_000, is_sealed=True)], 0)
    (blob,) = files_in(home, "blobs/??/*")
    flip(blob, 299_000)
    async with open_journal(home) as journal:
        verdict = await verify(journal, "s")
        assert (verdict.broken_at, verdict.reason) == (1, "its payload was changed or damaged")


async def test_the_first_sealed_event_behind_deleted_ones_is_protected_too(home: Path) -> None:
    async with open_journal(home) as journal:
        await journal.log.append("s", [NewEvent("k", b"1", is_sealed=True)] * 5, 0)
        await journal.log.delete("s", 5)
        await journal.log.append("s", [NewEvent("k", b"deny", is_sealed=True)] * 2, 5)
    with raw(home) as connection:
        connection.execute("UPDATE event SET body = x'61', seal = NULL WHERE key & 0xff = 6")
    async with open_journal(home) as journal:
        assert (await verify(journal, "s")).broken_at == 7


async def test_a_sealed_event_is_intact_whatever_number_its_time_was(home: Path) -> None:
    async with open_journal(home) as journal:
        times = (1_700_000_000, 0, -1.5, 1e300, 0.1)
        events = [NewEvent("k", b"body", at, is_sealed=True) for at in times]
        await journal.log.append("s", events, 0)
        assert await verify(journal, "s") == Verdict("s", len(times))
