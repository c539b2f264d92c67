"""A stream as a file of its own, and that nothing is deleted before it is there."""

from __future__ import annotations

import asyncio
import base64
import gzip
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import cast

import pytest
import pytest_asyncio

from bridle.errors import BlobLost, InvalidArchive, InvalidEntry, WrongSequence
from bridle.journal import (
    Event,
    Journal,
    NewEvent,
    Verdict,
    archive,
    read_archive,
    verify,
    verify_archive,
)

from .helpers import AT, LIMIT, all_of, fill, large, new, numbered, seqs

#: All of this may be in a file's name.
NAME = "ä stream.jsonl.gz"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / NAME


def files_beside(file: Path) -> list[str]:
    return sorted(found.name for found in file.parent.iterdir() if found.name != "home")


def texts_in(file: Path) -> list[str]:
    return [payload.decode() for _, payload in read_archive(file)] if file.exists() else []


def rights_of(file: Path) -> int:
    return file.stat().st_mode & 0o777


async def write_some(journal: Journal, stream: str = "a") -> list[tuple[Event, bytes]]:
    """Sealed, unsealed and large events; gives them with their payloads."""
    batch = [
        *new("1", is_sealed=True),
        *new("2"),
        NewEvent("said", large("sealed"), AT, is_sealed=True),
        NewEvent("said", large("plain", 700_000), AT),
        NewEvent("ä", bytes(range(256)), -1.5, is_sealed=True),
        NewEvent("", b"", 5),
    ]
    await journal.log.append(stream, batch, 0)
    return [(event, await journal.payload(event)) for event in await journal.log.read(stream)]


async def test_an_archive_has_all_that_the_stream_had_and_the_stream_is_deleted(
    journal: Journal, file: Path
) -> None:
    before = await write_some(journal)
    await fill(journal, "b", 2)
    assert await archive(journal, "a", file) == Verdict("a", 3)
    assert list(read_archive(file)) == before
    assert verify_archive(file) == Verdict("a", 3)
    assert await journal.log.read("a") == []
    info = await journal.log.info("a")
    assert (info.first_seq, info.last_seq) == (7, 6)
    assert seqs(await journal.log.read("b")) == [1, 2]
    assert files_beside(file) == [NAME]


async def test_the_payloads_of_an_archived_stream_leave_the_journal(
    journal: Journal, file: Path
) -> None:
    before = await write_some(journal)
    await archive(journal, "a", file)
    large_one = before[2][0]
    with pytest.raises(BlobLost):
        await journal.payload(large_one)


async def test_a_long_stream_is_archived_whole(journal: Journal, file: Path) -> None:
    await fill(journal, "a", 1234)
    await archive(journal, "a", file)
    assert seqs([event for event, _ in read_archive(file)]) == list(range(1, 1235))


async def test_an_archive_is_for_us_alone(journal: Journal, file: Path) -> None:
    await fill(journal, "a", 1)
    await archive(journal, "a", file)
    assert rights_of(file) == 0o600


async def test_a_stream_that_goes_on_is_archived_again_and_its_chain_is_whole(
    journal: Journal, file: Path
) -> None:
    await journal.log.append("a", numbered(1, 3, is_sealed=True), 0)
    await archive(journal, "a", file)
    await journal.log.append("a", numbered(4, 6, is_sealed=True), 3)
    assert await verify(journal, "a") == Verdict("a", 3)
    second = file.with_name("second")
    assert await archive(journal, "a", second) == Verdict("a", 3)
    events = [event for part in (file, second) for event, _ in read_archive(part)]
    assert seqs(events) == [1, 2, 3, 4, 5, 6]
    seals = [event.seal for event in events if event.seal]
    assert [seal.previous for seal in seals[1:]] == [seal.hash for seal in seals[:-1]]


async def test_a_stream_without_events_is_not_archived(journal: Journal, file: Path) -> None:
    with pytest.raises(InvalidEntry):
        await archive(journal, "nobody", file)
    await fill(journal, "a", 1)
    await journal.log.delete("a", 1)
    with pytest.raises(InvalidEntry):
        await archive(journal, "a", file)
    assert files_beside(file) == []


async def test_a_file_that_exists_is_not_overwritten_and_nothing_is_deleted(
    journal: Journal, file: Path
) -> None:
    await fill(journal, "b", 1)
    await archive(journal, "b", file)
    await fill(journal, "a", 3)
    with pytest.raises(InvalidArchive):
        await archive(journal, "a", file)
    assert texts_in(file) == ["1"]
    assert verify_archive(file).stream == "b"
    assert seqs(await journal.log.read("a")) == [1, 2, 3]
    assert files_beside(file) == [NAME]


async def test_a_file_that_can_not_be_written_deletes_nothing(
    journal: Journal, tmp_path: Path
) -> None:
    await fill(journal, "a", 3)
    with pytest.raises(InvalidArchive):
        await archive(journal, "a", tmp_path / "no folder" / "file")
    assert seqs(await journal.log.read("a")) == [1, 2, 3]


class Meanwhile:
    """A journal to which somebody appends while its payloads are read."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.log = journal.log
        self.blobs = journal.blobs
        self.anchors = journal.anchors

    async def payload(self, event: Event) -> bytes:
        if event.seq == 2:
            last = (await self.log.info("a")).last_seq
            await self.log.append("a", new("meanwhile"), last)
        return await self._journal.payload(event)


async def test_a_stream_that_is_written_meanwhile_is_not_deleted(
    journal: Journal, file: Path
) -> None:
    await write_some(journal)
    with pytest.raises(WrongSequence) as caught:
        await archive(cast("Journal", Meanwhile(journal)), "a", file)
    assert (caught.value.expected, caught.value.actual) == (6, 7)
    events = await all_of(journal, "a")
    assert seqs(events) == [1, 2, 3, 4, 5, 6, 7]
    assert await journal.payload(events[2]) == large("sealed")
    # It is not all of the stream: it is not kept, and the next try needs no other name.
    assert files_beside(file) == []
    assert (await archive(journal, "a", file)).is_intact
    assert await journal.log.read("a") == []


class Torn:
    """A journal that has lost a payload."""

    def __init__(self, journal: Journal) -> None:
        self.log = journal.log

    async def payload(self, event: Event) -> bytes:
        raise BlobLost(event.blob.digest if event.blob else "", "is not there")


async def test_a_stream_whose_payloads_are_lost_is_not_deleted_and_leaves_no_file(
    journal: Journal, file: Path
) -> None:
    await write_some(journal)
    with pytest.raises(BlobLost):
        await archive(cast("Journal", Torn(journal)), "a", file)
    assert len(await journal.log.read("a")) == 6
    assert files_beside(file) == []


async def test_an_archive_that_is_cancelled_deletes_nothing_and_leaves_no_file(
    journal: Journal, file: Path
) -> None:
    class Hanging:
        def __init__(self) -> None:
            self.log = journal.log

        async def payload(self, _: Event) -> bytes:
            is_reading.set()
            await asyncio.Event().wait()
            return b""

    await write_some(journal)
    is_reading = asyncio.Event()
    archiving = asyncio.create_task(archive(cast("Journal", Hanging()), "a", file))
    async with asyncio.timeout(LIMIT):
        await is_reading.wait()
    archiving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await archiving
    assert len(await journal.log.read("a")) == 6
    assert files_beside(file) == []


@pytest.mark.parametrize("turns", range(4))
async def test_of_two_archives_to_one_file_no_event_is_lost(
    journal: Journal, file: Path, turns: int
) -> None:
    streams = {"a": "of a", "b": "of b"}
    for stream, body in streams.items():
        await journal.log.append(stream, new(body), 0)
    first = asyncio.create_task(archive(journal, "a", file))
    for _ in range(turns):
        await asyncio.sleep(0)
    results = await asyncio.gather(first, archive(journal, "b", file), return_exceptions=True)
    assert any(isinstance(result, InvalidArchive) for result in results)
    for stream, body in streams.items():
        is_kept = bool(await journal.log.read(stream))
        assert is_kept or texts_in(file) == [body], "it is neither here nor there"


# --- damaged files


@pytest_asyncio.fixture
async def archived(journal: Journal, file: Path) -> Path:
    batch = [*new("one", is_sealed=True), *new("two"), *new("three", is_sealed=True), *new("four")]
    await journal.log.append("a", batch, 0)
    await archive(journal, "a", file)
    return file


def is_refused(file: Path) -> bool:
    """By who reads it; and by who verifies it as well."""
    refusals = 0
    for look in (lambda: list(read_archive(file)), lambda: verify_archive(file)):
        try:
            look()
        except InvalidArchive:
            refusals += 1
    assert refusals in (0, 2)
    return refusals == 2


def test_an_archive_with_what_is_no_text_is_refused(archived: Path) -> None:
    with gzip.open(archived) as lines:
        data = lines.read()
    with gzip.open(archived, "wb") as changed:
        changed.write(data.replace(b'"kind":"said"', b'"kind":"\xef\xef"', 1))
    assert is_refused(archived)


def test_an_archive_that_was_cut_anywhere_is_refused(archived: Path) -> None:
    whole = archived.read_bytes()
    accepted = []
    for size in range(len(whole)):
        archived.write_bytes(whole[:size])
        if not is_refused(archived):
            accepted.append(size - len(whole))
    assert accepted == []


@pytest.mark.slow
def test_an_archive_with_a_changed_bit_is_refused_or_says_the_same(archived: Path) -> None:
    before, whole = list(read_archive(archived)), archived.read_bytes()
    unnoticed = []
    for place in range(len(whole) * 8):
        edited = bytearray(whole)
        edited[place // 8] ^= 1 << place % 8
        archived.write_bytes(edited)
        with suppress(InvalidArchive):
            if list(read_archive(archived)) != before:
                unnoticed.append(place)
    assert unnoticed == []


def lines_of(file: Path) -> list[bytes]:
    return gzip.decompress(file.read_bytes()).splitlines(keepends=True)


def write_lines(file: Path, lines: list[bytes]) -> None:
    file.write_bytes(gzip.compress(b"".join(lines)))


def rewrite(file: Path, old: bytes, other: bytes) -> None:
    lines = lines_of(file)
    assert old in b"".join(lines)
    write_lines(file, [line.replace(old, other) for line in lines])


def test_an_edited_sealed_event_breaks_the_chain_in_the_file(archived: Path) -> None:
    rewrite(archived, base64.b64encode(b"three"), base64.b64encode(b"eerht"))
    verdict = verify_archive(archived)
    assert (verdict.is_intact, verdict.broken_at) == (False, 3)


async def test_an_edited_large_payload_is_refused(journal: Journal, file: Path) -> None:
    payload = large()
    await journal.log.append("a", [NewEvent("k", payload, AT)], 0)
    await archive(journal, "a", file)
    rewrite(file, base64.b64encode(payload), base64.b64encode(payload[:-1] + b"!"))
    with pytest.raises(InvalidArchive):
        verify_archive(file)


@pytest.mark.parametrize("gone", range(6))
def test_a_file_without_one_of_its_lines_is_refused(archived: Path, gone: int) -> None:
    lines = lines_of(archived)
    assert len(lines) == 6
    write_lines(archived, lines[:gone] + lines[gone + 1 :])
    assert is_refused(archived)


def test_a_file_with_something_behind_its_end_is_refused(archived: Path) -> None:
    lines = lines_of(archived)
    write_lines(archived, [*lines, lines[1]])
    assert is_refused(archived)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not compressed at all",
        gzip.compress(b""),
        gzip.compress(b"no json\n"),
        gzip.compress(b'{"format":"bridle-archive-1"}\n'),
        gzip.compress(b'{"format":"other","info":{"name":"a","first_seq":1,"last_seq":0}}\n'),
        gzip.compress(b'{"format":"bridle-archive-1","info":{"name":"a","first_seq":1,"last_seq":0}}\n'),
        gzip.compress(b"\xff\xfe\n"),
    ],
    ids=range(8),
)  # fmt: skip
def test_a_file_that_is_no_archive_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert is_refused(file)


def test_a_file_that_is_not_there_is_refused(file: Path) -> None:
    assert is_refused(file)


async def test_an_archive_says_of_which_stream_it_is(journal: Journal, file: Path) -> None:
    await fill(journal, "ä/😀", 2)
    assert (await archive(journal, "ä/😀", file)).stream == "ä/😀"
    assert verify_archive(file).stream == "ä/😀"


async def test_a_stream_of_many_pages_is_in_the_archive_once(
    journal: Journal, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("bridle.journal.archive"), "MAX_PAGE_BYTES", 300)
    before = await write_some(journal)
    await archive(journal, "a", file)
    assert list(read_archive(file)) == before
