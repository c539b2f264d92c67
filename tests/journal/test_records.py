"""What records, buckets and watches promise, with every engine."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from msgspec import Struct

from bridle.errors import InvalidEntry, UnreadableRecord, WrongRevision
from bridle.journal import Document, Durability, Gone, Journal, Record
from bridle.journal.contract import Records, Watch
from bridle.journal.events import MAX_BODY, Change

from .engines import Engine
from .helpers import LIMIT

BAD_NAMES = ["", "x" * 257, "two\nlines", "nul\0", "half\ud800"]


async def next_of(watch: Watch) -> list[Change]:
    async with asyncio.timeout(LIMIT):
        return await anext(watch)


async def changes_until(watch: Watch, revision: int) -> list[Change]:
    found: list[Change] = []
    while not found or found[-1].revision < revision:
        found += await next_of(watch)
    return found


def applied(lists: Sequence[Sequence[Change]]) -> dict[str, Record]:
    """What a watcher knows after these."""
    known: dict[str, Record] = {}
    for change in (change for changes in lists for change in changes):
        if isinstance(change, Gone):
            known.pop(change.key, None)
        else:
            known[change.key] = change
    return known


async def listed(journal: Journal, bucket: str, prefix: str = "") -> list[str]:
    return [record.key for record in await journal.records.list(bucket, prefix)]


# --- create, get, put, delete


@pytest.mark.parametrize("durability", list(Durability))
async def test_a_record_is_made_changed_and_deleted(engine: Engine, durability: Durability) -> None:
    async with engine.open() as journal:
        records = journal.records
        assert await records.get("b", "k") is None
        first = await records.create("b", "k", b"one", durability)
        assert await records.get("b", "k") == Record("k", first, b"one")
        second = await records.put("b", "k", b"two", first, durability)
        assert await records.get("b", "k") == Record("k", second, b"two")
    async with engine.open() as journal:
        records = journal.records
        assert await records.get("b", "k") == Record("k", second, b"two")
        third = await records.delete("b", "k", second, durability)
        assert await records.get("b", "k") is None
        assert await records.list("b") == []
        assert first < second < third
    async with engine.open() as journal:
        assert await journal.records.get("b", "k") is None
        assert await journal.records.create("b", "k", b"again") > third


async def test_a_record_can_be_made_by_a_put_that_expects_none(journal: Journal) -> None:
    revision = await journal.records.put("b", "k", b"", 0)
    assert await journal.records.get("b", "k") == Record("k", revision, b"")


async def test_buckets_know_nothing_of_each_other(journal: Journal) -> None:
    await journal.records.create("b", "k", b"one")
    assert await journal.records.get("c", "k") is None
    await journal.records.create("c", "k", b"two")
    assert [record.value for record in await journal.records.list("b")] == [b"one"]


REFUSED: dict[str, Callable[[Records, int], Awaitable[int]]] = {
    "create what is there": lambda records, _: records.create("b", "k", b"x"),
    "put as if it were new": lambda records, _: records.put("b", "k", b"x", 0),
    "put from an old one": lambda records, now: records.put("b", "k", b"x", now - 1),
    "put from one to come": lambda records, now: records.put("b", "k", b"x", now + 1),
    "put from below all": lambda records, _: records.put("b", "k", b"x", -1),
    "delete as if it were new": lambda records, _: records.delete("b", "k", 0),
    "delete an old one": lambda records, now: records.delete("b", "k", now - 1),
    "put what is not there": lambda records, now: records.put("b", "other", b"x", now),
    "delete what is not there": lambda records, now: records.delete("b", "other", now),
    "delete nothing": lambda records, _: records.delete("b", "other", 0),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_a_change_from_another_revision_is_refused_and_changes_nothing(
    journal: Journal, what: str
) -> None:
    await journal.records.create("b", "before", b"")
    old = await journal.records.create("b", "k", b"old")
    revision = await journal.records.put("b", "k", b"new", old)
    watch = journal.records.watch("b")
    await next_of(watch)
    with pytest.raises(WrongRevision):
        await REFUSED[what](journal.records, revision)
    assert await journal.records.get("b", "k") == Record("k", revision, b"new")
    assert await listed(journal, "b") == ["before", "k"]
    after = await journal.records.create("b", "after", b"")
    assert [change.revision for change in await next_of(watch)] == [after]


async def test_a_refusal_carries_what_was_expected_and_what_is_there(journal: Journal) -> None:
    revision = await journal.records.create("b", "k", b"x")
    with pytest.raises(WrongRevision) as caught:
        await journal.records.put("b", "k", b"y", revision + 5)
    error = caught.value
    assert (error.bucket, error.key, error.expected, error.actual) == (
        "b", "k", revision + 5, revision,
    )  # fmt: skip
    with pytest.raises(WrongRevision) as caught:
        await journal.records.delete("b", "nobody", 3)
    assert (caught.value.expected, caught.value.actual) == (3, 0)


async def test_of_many_who_change_a_record_from_one_revision_exactly_one_succeeds(
    journal: Journal,
) -> None:
    revision = await journal.records.create("b", "k", b"start")
    for round_ in range(5):
        values = [f"{round_}/{number}".encode() for number in range(30)]
        puts = [journal.records.put("b", "k", value, revision) for value in values]
        results = await asyncio.gather(*puts, return_exceptions=True)
        won = [number for number, result in enumerate(results) if isinstance(result, int)]
        assert len(won) == 1
        assert sum(isinstance(result, WrongRevision) for result in results) == 29
        found = await journal.records.get("b", "k")
        assert found
        assert (found.value, found.revision) == (values[won[0]], results[won[0]])
        revision = found.revision


async def test_of_many_who_make_a_record_exactly_one_succeeds(journal: Journal) -> None:
    creates = [journal.records.create("b", "k", str(number).encode()) for number in range(30)]
    results = await asyncio.gather(*creates, return_exceptions=True)
    assert sum(isinstance(result, int) for result in results) == 1
    assert sum(isinstance(result, WrongRevision) for result in results) == 29


async def test_revisions_grow_over_the_whole_bucket_and_never_come_again(engine: Engine) -> None:
    seen: list[int] = []
    for _ in range(3):
        async with engine.open() as journal:
            for key in ("a", "b", "a"):
                revision = await journal.records.create("bucket", key, b"x")
                changed = await journal.records.put("bucket", key, b"y", revision)
                gone = await journal.records.delete("bucket", key, changed)
                seen += [revision, changed, gone]
    assert seen == sorted(set(seen))


async def test_a_record_that_was_deleted_and_made_again_refuses_its_old_revision(
    journal: Journal,
) -> None:
    old = await journal.records.create("b", "k", b"x")
    await journal.records.delete("b", "k", old)
    again = await journal.records.create("b", "k", b"x")
    with pytest.raises(WrongRevision):
        await journal.records.put("b", "k", b"y", old)
    assert await journal.records.get("b", "k") == Record("k", again, b"x")


# --- what can't be stored, and odd names


@pytest.mark.parametrize("name", BAD_NAMES)
async def test_a_key_or_bucket_with_a_bad_name_is_refused(journal: Journal, name: str) -> None:
    with pytest.raises(InvalidEntry):
        await journal.records.create("b", name, b"x")
    with pytest.raises(InvalidEntry):
        await journal.records.create(name, "k", b"x")
    assert await journal.records.list("b") == []


@pytest.mark.parametrize("name", BAD_NAMES)
async def test_there_is_nothing_under_a_bad_name(journal: Journal, name: str) -> None:
    await journal.records.create("b", "k", b"x")
    assert await journal.records.get("b", name) is None
    assert await journal.records.get(name, "k") is None
    assert await journal.records.list(name) == []


async def test_a_document_that_is_too_large_is_refused_and_the_largest_is_not(
    journal: Journal,
) -> None:
    revision = await journal.records.create("b", "k", bytes(MAX_BODY))
    with pytest.raises(InvalidEntry):
        await journal.records.put("b", "k", bytes(MAX_BODY + 1), revision)
    with pytest.raises(InvalidEntry):
        await journal.records.create("b", "new", bytes(MAX_BODY + 1))
    assert await journal.records.get("b", "k") == Record("k", revision, bytes(MAX_BODY))
    assert await listed(journal, "b") == ["k"]


@pytest.mark.parametrize("value", ["text", bytearray(b"x"), None, 5])
async def test_a_document_that_is_not_bytes_is_refused(journal: Journal, value: Any) -> None:
    revision = await journal.records.create("b", "k", b"x")
    with pytest.raises(InvalidEntry):
        await journal.records.create("b", "new", value)
    with pytest.raises(InvalidEntry):
        await journal.records.put("b", "k", value, revision)
    assert await journal.records.list("b") == [Record("k", revision, b"x")]


KEYS = [
    "%",
    "%a",
    "_",
    "_a",
    "a",
    "a%",
    "a*",
    "a/b",
    "a_",
    "aa",
    "ab",
    "[a]",
    "ä",
    "äb",
    "ÄB",
    "😀",
]


@pytest.mark.parametrize("prefix", ["", *KEYS, "x" * 300, "nobody"])
async def test_a_prefix_is_taken_letter_by_letter(journal: Journal, prefix: str) -> None:
    for key in reversed(KEYS):
        await journal.records.create("b", key, key.encode())
    await journal.records.create("other", prefix[:9] or "k", b"x")
    expected = sorted(key for key in KEYS if key.startswith(prefix))
    assert await listed(journal, "b", prefix) == expected
    assert [change.key for change in await next_of(journal.records.watch("b", prefix))] == expected


# --- watch


async def test_a_watch_gives_the_present_state_and_then_changes(journal: Journal) -> None:
    one = await journal.records.create("b", "one", b"1")
    two = await journal.records.create("b", "two", b"2")
    watch = journal.records.watch("b")
    assert await next_of(watch) == [Record("one", one, b"1"), Record("two", two, b"2")]
    three = await journal.records.create("b", "three", b"3")
    assert await next_of(watch) == [Record("three", three, b"3")]
    gone = await journal.records.delete("b", "one", one)
    changed = await journal.records.put("b", "two", b"22", two)
    assert await changes_until(watch, changed) == [
        Gone("one", gone),
        Record("two", changed, b"22"),
    ]


async def test_the_present_state_of_an_empty_bucket_is_an_empty_list(journal: Journal) -> None:
    watch = journal.records.watch("b")
    assert await next_of(watch) == []
    revision = await journal.records.create("b", "k", b"x")
    assert await next_of(watch) == [Record("k", revision, b"x")]


async def test_a_watch_that_waits_is_woken_by_a_change(journal: Journal) -> None:
    watch = journal.records.watch("b")
    await next_of(watch)
    waiting = asyncio.create_task(next_of(watch))
    await asyncio.sleep(0)
    revision = await journal.records.create("b", "k", b"x")
    assert await waiting == [Record("k", revision, b"x")]


async def test_a_watch_sees_only_its_bucket_and_prefix(journal: Journal) -> None:
    watch = journal.records.watch("b", "a%")
    assert await next_of(watch) == []
    await journal.records.create("c", "a%1", b"x")
    await journal.records.create("b", "ab", b"x")
    revision = await journal.records.create("b", "a%1", b"x")
    await journal.records.create("b", "a", b"x")
    assert await next_of(watch) == [Record("a%1", revision, b"x")]


@pytest.mark.parametrize("turns", range(6))
async def test_writes_that_race_with_the_first_read_are_neither_missed_nor_given_twice(
    journal: Journal, turns: int
) -> None:
    async def write(key: str) -> int:
        revision = await journal.records.create("b", key, b"0")
        for value in range(1, 20):
            revision = await journal.records.put("b", key, str(value).encode(), revision)
        return await journal.records.delete("b", key, revision) if key == "gone" else revision

    writing = [asyncio.create_task(write(key)) for key in ("a", "b", "gone", "z")]
    for _ in range(turns):
        await asyncio.sleep(0)
    watch = journal.records.watch("b")
    for _ in range(turns):
        await asyncio.sleep(0)
    lists = [await next_of(watch)]
    await asyncio.gather(*writing)
    last = await journal.records.create("b", "last", b"")  # what is deleted last may never be seen
    seen = [change.revision for change in lists[0]]
    while max(seen, default=0) < last:
        lists.append(await next_of(watch))
        revisions = [change.revision for change in lists[-1]]
        assert revisions == sorted(set(revisions))
        assert not seen or revisions[0] > max(seen), "it was in a list before"
        seen += revisions
    now = {record.key: record for record in await journal.records.list("b")}
    assert applied(lists) == now
    assert sorted(now) == ["a", "b", "last", "z"]


async def test_a_slow_watcher_gets_the_latest_of_each_record_in_the_order_of_revisions(
    journal: Journal,
) -> None:
    watch = journal.records.watch("b")
    assert await next_of(watch) == []
    latest: dict[str, int] = {}
    for number in range(50):
        for key in ("a", "b", "c") if number % 2 else ("c", "a"):
            value = str(number).encode()
            latest[key] = await journal.records.put("b", key, value, latest.get(key, 0))
    gone = await journal.records.delete("b", "b", latest["b"])
    again = await journal.records.put("b", "a", b"last", latest["a"])
    assert await next_of(watch) == [
        Record("c", latest["c"], b"49"),
        Gone("b", gone),
        Record("a", again, b"last"),
    ]


async def test_to_cancel_a_watcher_loses_nothing(journal: Journal) -> None:
    watch = journal.records.watch("b")
    revision = await journal.records.create("b", "k", b"0")
    lists: list[list[Change]] = []
    for turns in range(30):
        revision = await journal.records.put("b", "k", str(turns).encode(), revision)
        reading = asyncio.create_task(next_of(watch))
        for _ in range(turns):
            await asyncio.sleep(0)
        reading.cancel()
        (result,) = await asyncio.gather(reading, return_exceptions=True)
        if not isinstance(result, BaseException):
            lists.append(result)
    known = applied(lists)
    if known.get("k", Record("k", 0, b"")).revision < revision:
        known = applied([await next_of(watch)])
    assert known == {"k": Record("k", revision, b"29")}


async def test_a_watch_that_is_closed_while_it_waits_ends(journal: Journal) -> None:
    watch = journal.records.watch("b")

    async def read_on() -> list[list[Change]]:
        return [changes async for changes in watch]

    assert await next_of(watch) == []
    reading = asyncio.create_task(read_on())
    await asyncio.sleep(0)
    watch.close()
    async with asyncio.timeout(LIMIT):
        assert await reading == []


@pytest.mark.parametrize("has_begun", [True, False])
async def test_a_closed_watch_ends_at_once_and_gives_nothing_that_waits(
    journal: Journal, has_begun: bool
) -> None:
    watch = journal.records.watch("b")
    if has_begun:
        await next_of(watch)
    await journal.records.create("b", "k", b"x")
    watch.close()
    assert [changes async for changes in watch] == []


async def test_watches_end_when_the_journal_is_closed(engine: Engine) -> None:
    async def read_on(watch: Watch, began: asyncio.Event) -> list[list[Change]]:
        found = []
        async for changes in watch:
            found.append(changes)
            began.set()
        return found

    async with engine.open() as journal:
        began = asyncio.Event()
        reading = asyncio.create_task(read_on(journal.records.watch("b"), began))
        await began.wait()
    async with asyncio.timeout(LIMIT):
        assert await reading == [[]]


@pytest.mark.parametrize("turns", range(5))
async def test_a_watch_that_begins_ends_when_the_journal_is_closed(
    engine: Engine, turns: int
) -> None:
    async def read_on(watch: Watch) -> list[list[Change]]:
        return [changes async for changes in watch]

    async with engine.open() as journal:
        await journal.records.create("b", "k", b"x")
        watches = [journal.records.watch("b") for _ in range(20)]
        closing = asyncio.create_task(journal.aclose())
        for _ in range(turns):
            await asyncio.sleep(0)
        reading = [asyncio.create_task(read_on(watch)) for watch in watches]
        async with asyncio.timeout(LIMIT):
            await closing
            results = await asyncio.gather(*reading)
    assert all(len(lists) <= 1 for lists in results)


async def test_a_forgotten_watch_is_dropped_while_others_go_on(journal: Journal) -> None:
    forgotten, kept = journal.records.watch("b"), journal.records.watch("b")
    await next_of(forgotten)
    await next_of(kept)
    gone = weakref.ref(forgotten)
    del forgotten
    gc.collect()
    assert gone() is None
    revision = await journal.records.create("b", "k", b"x")
    assert await next_of(kept) == [Record("k", revision, b"x")]


async def test_a_second_reader_of_a_watch_is_an_error(journal: Journal) -> None:
    watch = journal.records.watch("b")
    await next_of(watch)
    reading = asyncio.create_task(next_of(watch))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError):
        await next_of(watch)
    revision = await journal.records.create("b", "k", b"x")
    assert await reading == [Record("k", revision, b"x")]


# --- typed documents


class Agent(Struct, frozen=True):
    name: str
    turns: int = 0


async def test_a_bucket_gives_documents_of_its_type(engine: Engine) -> None:
    async with engine.open() as journal:
        agents = journal.bucket("agents", Agent)
        assert await agents.get("a") is None
        made = await agents.create("a", Agent("Ada"))
        assert made == Document("a", made.revision, Agent("Ada"))
        changed = await agents.put("a", Agent("Ada", 2), made.revision)
        with pytest.raises(WrongRevision):
            await agents.put("a", Agent("Bob"), made.revision)
        with pytest.raises(WrongRevision):
            await agents.create("a", Agent("Bob"))
    async with engine.open() as journal:
        agents = journal.bucket("agents", Agent)
        assert await agents.get("a") == changed
        await agents.delete("a", changed.revision)
        assert await agents.get("a") is None


async def test_a_bucket_lists_by_prefix_and_by_what_is_in_the_documents(
    journal: Journal,
) -> None:
    agents = journal.bucket("agents", Agent)
    for key, turns in (("b/1", 3), ("a/2", 1), ("a/1", 5), ("c", 9)):
        await agents.create(key, Agent(key, turns))
    assert [d.key for d in await agents.list()] == ["a/1", "a/2", "b/1", "c"]
    assert [d.key for d in await agents.list("a/")] == ["a/1", "a/2"]
    assert [d.key for d in await agents.list(where=lambda a: a.turns > 2)] == ["a/1", "b/1", "c"]
    assert [d.key for d in await agents.list("a/", lambda a: a.turns > 2)] == ["a/1"]


async def test_a_bucket_may_hold_whatever_msgspec_can_encode(journal: Journal) -> None:
    numbers = journal.bucket("numbers", dict[str, int])
    await numbers.create("k", {"ä": 1})
    found = await numbers.get("k")
    assert found
    assert found.value == {"ä": 1}


async def test_changes_by_many_are_all_made(journal: Journal) -> None:
    counts = journal.bucket("counts", int)
    changes = [counts.change("k", lambda old: (old or 0) + 1) for _ in range(20)]
    results = await asyncio.gather(*changes)
    found = await counts.get("k")
    assert found
    assert found.value == 20
    assert sorted(result.value for result in results) == list(range(1, 21))


async def test_a_change_whose_function_fails_changes_nothing(journal: Journal) -> None:
    counts = journal.bucket("counts", int)
    made = await counts.create("k", 1)
    with pytest.raises(ZeroDivisionError):
        await counts.change("k", lambda old: (old or 0) // 0)
    assert await counts.get("k") == made


async def test_a_typed_document_that_is_too_large_is_refused(journal: Journal) -> None:
    agents = journal.bucket("agents", Agent)
    with pytest.raises(InvalidEntry):
        await agents.create("k", Agent("x" * MAX_BODY))
    with pytest.raises(InvalidEntry):
        await agents.change("k", lambda _: Agent("x" * MAX_BODY))
    assert await agents.list() == []


@pytest.mark.parametrize("value", [b"", b"{", b'{"name":5}', b'{"turns":1}', b"\xff", b"null"])
async def test_an_unreadable_record_is_an_error_for_who_gets_it_and_left_out_of_lists(
    journal: Journal, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    agents = journal.bucket("agents", Agent)
    revision = await journal.records.create("agents", "bad", value)
    good = await agents.create("good", Agent("Ada"))
    with pytest.raises(UnreadableRecord) as caught:
        await agents.get("bad")
    assert (caught.value.bucket, caught.value.key) == ("agents", "bad")
    with pytest.raises(UnreadableRecord):
        await agents.change("bad", lambda _: Agent("Bob"))
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        assert await agents.list() == [good]
    assert ["agents/bad" in record.getMessage() for record in caplog.records] == [True]
    repaired = await agents.put("bad", Agent("Bob"), revision)
    assert await agents.list() == [repaired, good]


async def test_a_typed_watch_gives_documents_and_what_is_gone(
    journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    agents = journal.bucket("agents", Agent)
    ada = await agents.create("a/ada", Agent("Ada"))
    await journal.records.create("agents", "a/bad", b"{")
    await agents.create("b/bob", Agent("Bob"))
    watch = agents.watch("a/")
    async with asyncio.timeout(LIMIT):
        assert await anext(watch) == [ada]
        eve = await agents.create("a/eve", Agent("Eve"))
        await journal.records.create("agents", "a/worse", b"{")
        gone = await agents.delete("a/ada", ada.revision)
        found = await anext(watch)
        while Gone("a/ada", gone) not in found:
            found += await anext(watch)
        assert found == [eve, Gone("a/ada", gone)]
        watch.close()
        assert [changes async for changes in watch] == []
    assert {record.levelname for record in caplog.records} == {"WARNING"}
