"""What an event log and its feeds promise, with every engine."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, cast

import pytest

from bridle.errors import (
    BlobLost,
    InvalidEntry,
    JournalClosed,
    JournalError,
    WrongSequence,
)
from bridle.journal import BlobRef, Durability, Event, Journal, Live, NewEvent, StreamInfo
from bridle.journal.contract import Feed
from bridle.journal.events import (
    HEAD_SIZE,
    MAX_BATCH_BYTES,
    MAX_BATCH_EVENTS,
    MAX_BODY,
    MAX_NAME,
)
from bridle.journal.log import Log
from bridle.journal.tails import MAX_TOLD_BYTES, OVERHEAD, PAGE

from .engines import Engine
from .helpers import (
    AT,
    LIMIT,
    all_of,
    fill,
    fill_up,
    go_live,
    large,
    new,
    next_of,
    numbered,
    said,
    seqs,
    stored,
    until,
    until_quiet,
)

BAD_NAMES = ["", "x" * 257, "two\nlines", "nul\0", "half\ud800", "turned\u202eround"]
ODD_NAMES = ["x" * 256, "a b", "%_*?[a]'\"\\;--", "ä/ß/漢字/😀", ".."]


# --- append and read


async def test_a_batch_is_numbered_from_one_and_read_back_as_it_was(journal: Journal) -> None:
    last = await journal.log.append("a", new("one", "two", "three"), 0)
    assert last == 3
    assert await journal.log.read("a") == [
        Event(1, AT, "said", b"one"),
        Event(2, AT, "said", b"two"),
        Event(3, AT, "said", b"three"),
    ]


async def test_numbers_go_on_without_gaps_and_each_stream_has_its_own(journal: Journal) -> None:
    assert await journal.log.append("a", new("1", "2"), 0) == 2
    assert await journal.log.append("b", new("1"), 0) == 1
    assert await journal.log.append("a", new("3"), 2) == 3
    assert said(await journal.log.read("a")) == ["1", "2", "3"]
    assert seqs(await journal.log.read("a")) == [1, 2, 3]
    assert seqs(await journal.log.read("b")) == [1]


@pytest.mark.parametrize("expected", [0, 1, 3, 1_000])
async def test_a_wrong_expectation_is_refused_and_nothing_is_stored(
    journal: Journal, expected: int
) -> None:
    await journal.log.append("a", new("1", "2"), 0)
    with pytest.raises(WrongSequence) as caught:
        await journal.log.append("a", new("x", "y"), expected)
    assert (caught.value.stream, caught.value.expected, caught.value.actual) == ("a", expected, 2)
    assert said(await journal.log.read("a")) == ["1", "2"]
    assert await journal.log.append("a", new("3"), 2) == 3


async def test_a_refused_first_batch_makes_no_stream(journal: Journal) -> None:
    with pytest.raises(WrongSequence):
        await journal.log.append("a", new("x"), 1)
    assert await journal.log.info("a") == StreamInfo("a", 1, 0)
    assert await journal.log.streams() == []


async def test_of_many_who_append_after_the_same_event_one_succeeds(journal: Journal) -> None:
    tries = [journal.log.append("a", new(str(number)), 0) for number in range(20)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert results[0] == 1
    assert all(isinstance(result, WrongSequence) for result in results[1:])
    assert said(await journal.log.read("a")) == ["0"]


async def test_appends_that_nobody_waited_for_keep_their_order(journal: Journal) -> None:
    order: list[int] = []
    futures = []
    for seq in range(1, 301):
        durability = Durability.POWER if seq % 50 == 0 else Durability.PROCESS
        future = journal.log.append("a", numbered(seq, seq), seq - 1, durability)
        future.add_done_callback(lambda done: order.append(done.result()))
        futures.append(future)
    assert await asyncio.gather(*futures) == list(range(1, 301))
    assert order == list(range(1, 301))
    assert said(await all_of(journal, "a")) == [str(seq) for seq in range(1, 301)]


async def test_when_one_append_fails_those_that_build_on_it_fail_in_a_row(
    journal: Journal,
) -> None:
    await journal.log.append("a", new("1"), 0)
    futures = [journal.log.append("a", new("x"), expected) for expected in (5, 6, 7, 8)]
    results = await asyncio.gather(*futures, return_exceptions=True)
    assert [(type(e), getattr(e, "actual", None)) for e in results] == [(WrongSequence, 1)] * 4
    assert said(await journal.log.read("a")) == ["1"]


async def test_an_append_behind_a_failed_one_succeeds_if_it_does_not_build_on_it(
    journal: Journal,
) -> None:
    results = await asyncio.gather(
        journal.log.append("a", new("1"), 0),
        journal.log.append("a", [], 1),
        journal.log.append("a", new("x"), 9),
        journal.log.append("a", new("2"), 1),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [int, InvalidEntry, WrongSequence, int]
    assert said(await journal.log.read("a")) == ["1", "2"]


async def test_a_batch_is_seen_whole_or_not_at_all(journal: Journal) -> None:
    async def look(is_over: asyncio.Event) -> set[int]:
        seen = set()
        while not is_over.is_set():
            seen.add(len(await journal.log.read("a", 0, 100_000)) % 7)
            await asyncio.sleep(0)
        return seen

    is_over = asyncio.Event()
    async with asyncio.timeout(LIMIT):
        looking = [asyncio.create_task(look(is_over)) for _ in range(2)]
        for start in range(0, 700, 7):
            await journal.log.append("a", numbered(start + 1, start + 7), start)
        is_over.set()
        assert await asyncio.gather(*looking) == [{0}, {0}]


async def test_who_follows_is_told_of_a_batch_only_when_its_append_has_a_result(
    journal: Journal,
) -> None:
    feed = journal.log.follow("a")
    await go_live(journal, feed, "a")
    future = journal.log.append("a", new("1"), 0)
    assert said((await next_of(feed)).events) == ["1"]
    assert future.done()


@pytest.mark.parametrize("durability", list(Durability))
async def test_what_was_acknowledged_is_there_when_the_engine_is_opened_again(
    engine: Engine, durability: Durability
) -> None:
    async with engine.open() as journal:
        await journal.log.append("a", new("1", "2"), 0, durability)
        await journal.log.append("b", new("1"), 0, durability)
        before = await journal.log.read("a")
    async with engine.open() as journal:
        assert await journal.log.read("a") == before
        assert [info.name for info in await journal.log.streams()] == ["a", "b"]
        with pytest.raises(WrongSequence):
            await journal.log.append("a", new("x"), 0, durability)
        assert await journal.log.append("a", new("3"), 2, durability) == 3


async def test_what_nobody_waited_for_is_stored_before_the_journal_is_closed(
    engine: Engine,
) -> None:
    async with engine.open() as journal:
        futures = [
            journal.log.append("a", [NewEvent("said", large(), AT)], 0),
            *(journal.log.append("a", numbered(seq, seq), seq - 1) for seq in range(2, 100)),
        ]
    assert [future.result() for future in futures] == list(range(1, 100))
    async with engine.open() as journal:
        assert seqs(await all_of(journal, "a")) == list(range(1, 100))


@pytest.mark.parametrize("at", [1_700_000_000.123456, 0.0, -1.5, 5, 1e15])
async def test_the_time_of_an_event_is_kept(engine: Engine, at: float) -> None:
    async with engine.open() as journal:
        await journal.log.append("a", [NewEvent("said", b"", at)], 0)
        assert (await journal.log.read("a"))[0].at == at
    async with engine.open() as journal:
        assert (await journal.log.read("a"))[0].at == at


async def test_any_bytes_and_any_printable_kind_can_be_stored(journal: Journal) -> None:
    events = [
        NewEvent("", b"", AT),
        NewEvent("tool use: läuft 😀", bytes(range(256)), AT),
        NewEvent("k" * MAX_NAME, b"\0" * MAX_BODY, AT),
    ]
    await journal.log.append("a", events, 0)
    found = await journal.log.read("a")
    assert [(event.kind, event.body) for event in found] == [(e.kind, e.body) for e in events]
    assert all(event.blob is None for event in found)


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_a_stream_may_have_any_printable_name(journal: Journal, name: str) -> None:
    await journal.log.append(name, new("1"), 0)
    await journal.log.append(name.upper() + "!" if len(name) < 200 else "other", new("2"), 0)
    assert said(await journal.log.read(name)) == ["1"]
    assert name in [info.name for info in await journal.log.streams()]


# --- what can't be appended


def _batches() -> dict[str, list[NewEvent]]:
    return {
        "nothing": [],
        "too many": numbered(1, MAX_BATCH_EVENTS + 1),
        "too large": [NewEvent("k", bytes(MAX_BODY))] * (MAX_BATCH_BYTES // MAX_BODY)
        + [NewEvent("k", b"!")],
        "text": [NewEvent("k", cast(Any, "text"))],
        "bytearray": [NewEvent("k", cast(Any, bytearray(b"x")))],
        "no body": [NewEvent("k", cast(Any, None))],
        "kind with two lines": [NewEvent("k\nk", b"x")],
        "kind with nul": [NewEvent("\0", b"x")],
        "half a character": [NewEvent("\ud800", b"x")],
        "time that is no number": [NewEvent("k", b"x", float("nan"))],
        "time without end": [NewEvent("k", b"x", float("inf"))],
        "time beyond all numbers": [NewEvent("k", b"x", 10**400)],
        "kind too long": [NewEvent("k" * (MAX_NAME + 1), b"")],
    }


@pytest.mark.parametrize("what", _batches())
async def test_a_batch_that_breaks_a_rule_is_refused_and_nothing_of_it_is_stored(
    journal: Journal, what: str
) -> None:
    await journal.log.append("a", new("1"), 0)
    batch = _batches()[what]
    with pytest.raises(InvalidEntry):
        await journal.log.append("a", batch, 1)
    with pytest.raises(InvalidEntry):
        await journal.log.append("a", [*new("good"), *batch] if batch else [], 1)
    assert said(await journal.log.read("a")) == ["1"]
    assert await journal.log.append("a", new("2"), 1) == 2


async def test_the_largest_batches_are_stored(journal: Journal) -> None:
    assert await journal.log.append("many", numbered(1, MAX_BATCH_EVENTS), 0) == MAX_BATCH_EVENTS
    bodies = [NewEvent("k", bytes(MAX_BODY), AT)] * (MAX_BATCH_BYTES // MAX_BODY)
    assert await journal.log.append("large", bodies, 0) == len(bodies)
    assert seqs(await all_of(journal, "many")) == list(range(1, MAX_BATCH_EVENTS + 1))
    assert {len(event.body) for event in await all_of(journal, "large")} == {MAX_BODY}


async def test_payloads_that_go_to_blobs_do_not_count_for_the_size_of_a_batch(
    journal: Journal,
) -> None:
    bodies = [NewEvent("k", bytes(MAX_BODY), AT)] * (MAX_BATCH_BYTES // MAX_BODY)
    batch = [*bodies, NewEvent("k", large(), AT)]
    assert await journal.log.append("a", batch, 0) == len(batch)


@pytest.mark.parametrize("name", BAD_NAMES)
async def test_a_name_that_is_none_is_refused(journal: Journal, name: str) -> None:
    with pytest.raises(InvalidEntry):
        await journal.log.append(name, new("1"), 0)
    assert await journal.log.streams() == []


@pytest.mark.parametrize("name", [*BAD_NAMES, "unknown"])
async def test_a_stream_that_does_not_exist_is_empty_whatever_its_name(
    journal: Journal, name: str
) -> None:
    assert await journal.log.read(name) == []
    assert await journal.log.info(name) == StreamInfo(name, 1, 0)
    await journal.log.delete(name, 0)
    with pytest.raises(WrongSequence):
        await journal.log.delete(name, 1)


@pytest.mark.parametrize("expected", [-1, 1 << 40, 1 << 80])
async def test_a_number_that_no_stream_can_have_is_refused(journal: Journal, expected: int) -> None:
    with pytest.raises(InvalidEntry):
        await journal.log.append("a", new("1"), expected)


async def test_an_append_that_is_refused_says_so_in_its_future_and_not_at_the_call(
    journal: Journal,
) -> None:
    futures = [journal.log.append("", new("1"), 0), journal.log.append("a", [], 0)]
    assert all(isinstance(future.exception(), InvalidEntry) for future in futures)


async def test_a_batch_is_what_it_was_at_the_call_whatever_becomes_of_the_list(
    journal: Journal,
) -> None:
    batch = [*new("1"), NewEvent("said", large(), AT)]
    future = journal.log.append("a", batch, 0)
    batch.clear()
    assert await future == 2
    assert seqs(await journal.log.read("a")) == [1, 2]


# --- pages, info and streams


async def test_a_page_has_at_most_as_many_events_as_asked_for(journal: Journal) -> None:
    await fill(journal, "a", 250)
    assert seqs(await journal.log.read("a")) == list(range(1, 101))
    assert seqs(await journal.log.read("a", after=248)) == [249, 250]
    assert seqs(await journal.log.read("a", after=10, limit=3)) == [11, 12, 13]
    assert await journal.log.read("a", after=250) == []
    assert await journal.log.read("a", after=10_000) == []


async def test_pages_of_large_events_may_be_short_but_only_the_end_is_empty(
    journal: Journal,
) -> None:
    for start in range(0, 48, 16):
        batch = [NewEvent("k", bytes(MAX_BODY), AT)] * 16
        await journal.log.append("a", batch, start)
    assert seqs(await all_of(journal, "a", page=100)) == list(range(1, 49))


@pytest.mark.parametrize(("after", "limit"), [(-1, 1), (0, 0), (0, -1)])
async def test_a_page_that_can_not_be_is_refused(journal: Journal, after: int, limit: int) -> None:
    with pytest.raises(InvalidEntry):
        await journal.log.read("a", after, limit)


@pytest.mark.parametrize("beyond", [1 << 40, 1 << 63, 1 << 80])
async def test_to_read_after_or_up_to_a_number_beyond_all_is_no_error(
    journal: Journal, beyond: int
) -> None:
    await journal.log.append("a", new("1"), 0)
    await journal.log.append("b", new("1"), 0)
    assert await journal.log.read("a", after=beyond) == []
    assert await journal.log.read("b", after=beyond) == []
    assert said(await journal.log.read("a", limit=beyond)) == ["1"]


async def test_info_gives_the_first_and_last_numbers(journal: Journal) -> None:
    assert await journal.log.info("a") == StreamInfo("a", 1, 0)
    await journal.log.append("a", new("1", "2"), 0)
    assert await journal.log.info("a") == StreamInfo("a", 1, 2)


async def test_streams_are_listed_by_name_and_by_how_it_starts(journal: Journal) -> None:
    names = ["run/2", "run/10", "run", "ru", "Run/1", "run/ä", "run/😀", "run%", "z", "_un"]
    for name in names:
        await journal.log.append(name, new("1"), 0)

    async def listed(prefix: str) -> list[str]:
        return [info.name for info in await journal.log.streams(prefix)]

    assert await listed("") == sorted(names)
    assert await listed("run/") == ["run/10", "run/2", "run/ä", "run/😀"]
    assert await listed("run%") == ["run%"]
    assert await listed("_un") == ["_un"]
    assert await listed("run/😀") == ["run/😀"]
    assert await listed("nobody") == []
    assert (await journal.log.streams("z")) == [StreamInfo("z", 1, 1)]


# --- large payloads


async def test_a_body_over_the_limit_becomes_a_blob_with_hash_size_and_head(
    engine: Engine,
) -> None:
    payload = large()
    async with engine.open() as journal:
        await journal.log.append("a", [*new("1"), NewEvent("said", payload, AT), *new("3")], 0)
        one, two, three = await journal.log.read("a")
        assert two == Event(
            2,
            AT,
            "said",
            payload[:HEAD_SIZE],
            BlobRef(sha256(payload).hexdigest(), len(payload)),
        )
        assert await journal.payload(two) == payload
        assert await journal.payload(one) == b"1"
        assert (one.blob, three.blob) == (None, None)
    async with engine.open() as journal:
        assert await journal.log.read("a") == [one, two, three]
        assert await journal.payload(two) == payload


async def test_a_blob_by_hand_is_stored_once_and_read_back(journal: Journal) -> None:
    ref = await journal.blobs.put(b"payload")
    assert ref == BlobRef(sha256(b"payload").hexdigest(), 7)
    assert await journal.blobs.put(b"payload") == ref
    assert await journal.blobs.get(ref) == b"payload"
    with pytest.raises(BlobLost) as caught:
        await journal.blobs.get(BlobRef("0" * 64, 7))
    assert caught.value.digest == "0" * 64


async def test_other_streams_do_not_wait_for_a_blob(journal: Journal) -> None:
    order: list[str] = []

    def noted(name: str, future: asyncio.Future[int]) -> asyncio.Future[int]:
        future.add_done_callback(lambda _: order.append(name))
        return future

    async with asyncio.timeout(LIMIT):
        await asyncio.gather(
            noted("large", journal.log.append("a", [NewEvent("k", large(size=16 << 20))], 0)),
            noted("behind it", journal.log.append("a", new("2"), 1)),
            noted("elsewhere", journal.log.append("b", new("1"), 0)),
        )
    assert order == ["elsewhere", "large", "behind it"]


async def test_later_events_of_a_stream_do_not_overtake_its_blobs(journal: Journal) -> None:
    feed = journal.log.follow("a")
    await go_live(journal, feed, "a")
    slow, quick = large("slow", 8 << 20), large("quick")
    futures = [
        journal.log.append("a", new("1"), 0),
        journal.log.append("a", [NewEvent("k", slow, AT)], 1),
        journal.log.append("a", new("3"), 2),
        journal.log.append("a", [NewEvent("k", quick, AT), NewEvent("k", slow, AT)], 3),
        journal.log.append("a", new("6"), 5),
    ]
    assert await asyncio.gather(*futures) == [1, 2, 3, 5, 6]
    told = await until(feed, 6)
    assert told == await journal.log.read("a")
    assert [await journal.payload(event) for event in told] == [
        b"1", slow, b"3", quick, slow, b"6",
    ]  # fmt: skip


async def test_a_refused_append_with_a_blob_takes_those_behind_it_along(journal: Journal) -> None:
    results = await asyncio.gather(
        journal.log.append("a", [NewEvent("k", large())], 7),
        journal.log.append("a", new("x"), 8),
        journal.log.append("a", new("1"), 0),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [WrongSequence, WrongSequence, int]
    assert said(await journal.log.read("a")) == ["1"]


# --- delete


async def test_a_deleted_stream_is_empty_and_its_numbers_go_on(engine: Engine) -> None:
    async with engine.open() as journal:
        await fill(journal, "a", 1200)
        await journal.log.append("b", new("1"), 0)
        await journal.log.delete("a", 1200)
        assert await journal.log.read("a") == []
        assert await journal.log.info("a") == StreamInfo("a", 1201, 1200)
        assert [info.name for info in await journal.log.streams()] == ["b"]
    async with engine.open() as journal:
        assert await journal.log.info("a") == StreamInfo("a", 1201, 1200)
        with pytest.raises(WrongSequence) as caught:
            await journal.log.append("a", new("x"), 0)
        assert caught.value.actual == 1200
        assert await journal.log.append("a", new("1201"), 1200) == 1201
        assert await journal.log.info("a") == StreamInfo("a", 1201, 1201)
        assert seqs(await journal.log.read("a")) == [1201]
        assert said(await journal.log.read("b")) == ["1"]


async def test_a_deletion_with_a_wrong_expectation_deletes_nothing(journal: Journal) -> None:
    await journal.log.append("a", new("1", "2"), 0)
    with pytest.raises(WrongSequence) as caught:
        await journal.log.delete("a", 1)
    assert (caught.value.stream, caught.value.expected, caught.value.actual) == ("a", 1, 2)
    assert said(await journal.log.read("a")) == ["1", "2"]


async def test_a_deletion_takes_the_blobs_that_nothing_else_refers_to(journal: Journal) -> None:
    shared, own = large("shared"), large("own")
    await journal.log.append("a", [NewEvent("k", shared), NewEvent("k", own)], 0)
    await journal.log.append("b", [NewEvent("k", shared)], 0)
    of_a = await journal.log.read("a")
    await journal.log.delete("a", 2)
    assert await journal.payload(of_a[0]) == shared
    with pytest.raises(BlobLost):
        await journal.payload(of_a[1])
    await journal.log.delete("b", 1)
    with pytest.raises(BlobLost):
        await journal.payload(of_a[0])


async def test_a_blob_that_was_deleted_can_be_stored_again(journal: Journal) -> None:
    await journal.log.append("a", [NewEvent("k", large())], 0)
    await journal.log.delete("a", 1)
    await journal.log.append("a", [NewEvent("k", large())], 1)
    (event,) = await journal.log.read("a")
    assert await journal.payload(event) == large()


async def test_a_blob_put_by_hand_outlives_the_events_that_share_it(journal: Journal) -> None:
    ref = await journal.blobs.put(large())
    await journal.log.append("a", [NewEvent("k", large())], 0)
    await journal.log.delete("a", 1)
    assert await journal.blobs.get(ref) == large()


# --- cancelling and closing


async def test_a_cancelled_append_is_only_not_waited_for(journal: Journal) -> None:
    feed = journal.log.follow("a")
    futures = [journal.log.append("a", numbered(seq, seq), seq - 1) for seq in (1, 2)]
    futures[0].cancel()
    assert await futures[1] == 2
    assert seqs(await journal.log.read("a")) == [1, 2]
    assert seqs(await until(feed, 2)) == [1, 2]


CALLS: dict[str, Callable[[Journal], Awaitable[object]]] = {
    "append": lambda j: j.log.append("a", new("x"), 1),
    "append a blob": lambda j: j.log.append("a", [NewEvent("k", large())], 1),
    "read": lambda j: j.log.read("a"),
    "info": lambda j: j.log.info("a"),
    "streams": lambda j: j.log.streams(),
    "delete": lambda j: j.log.delete("a", 1),
    "create": lambda j: j.records.create("b", "k", b"1"),
    "put": lambda j: j.records.put("b", "k", b"1", 0),
    "delete a record": lambda j: j.records.delete("b", "k", 1),
    "get": lambda j: j.records.get("b", "k"),
    "list": lambda j: j.records.list("b"),
    "put a blob": lambda j: j.blobs.put(b"x"),
    "get a blob": lambda j: j.blobs.get(BlobRef("0" * 64, 1)),
}


@pytest.mark.parametrize("call", CALLS)
async def test_a_closed_journal_says_so(engine: Engine, call: str) -> None:
    async with engine.open() as journal:
        await journal.log.append("a", new("1"), 0)
    with pytest.raises(JournalClosed):
        await CALLS[call](journal)


async def test_a_closed_journal_can_not_be_followed_and_may_be_closed_again(
    engine: Engine,
) -> None:
    async with engine.open() as journal:
        pass
    with pytest.raises(JournalClosed):
        journal.log.follow("a")
    with pytest.raises(JournalClosed):
        journal.records.watch("b")
    with pytest.raises(JournalClosed):
        journal.log.publish("a", [Live("k", b"nobody is there")])
    await journal.aclose()


# --- follow


async def test_a_feed_gives_history_and_then_what_comes(journal: Journal) -> None:
    await fill(journal, "a", 3)
    feed = journal.log.follow("a")
    assert said(await stored(feed, 3)) == ["1", "2", "3"]
    await fill(journal, "a", 5, after=3)
    batch = await next_of(feed)
    assert batch.stream == "a"
    assert said(batch.events) == ["4", "5"]
    assert batch.stored == batch.events


async def test_from_history_to_live_there_is_no_gap_and_no_double(journal: Journal) -> None:
    """The feeds begin at all moments of a burst of appends."""
    last = 3 * PAGE
    feeds: list[tuple[int, Feed]] = []
    futures: list[asyncio.Future[int]] = []
    readers: list[asyncio.Task[list[Event]]] = []
    for seq in range(1, last + 1):
        futures.append(journal.log.append("a", numbered(seq, seq), seq - 1))
        if seq % 97 == 0:
            await asyncio.sleep(0)
            feed = journal.log.follow("a", after=seq // 2)
            feeds.append((seq // 2, feed))
            readers.append(asyncio.create_task(until(feed, last)))
    await asyncio.gather(*futures)
    for (after, _), found in zip(feeds, await asyncio.gather(*readers), strict=True):
        assert seqs(found) == list(range(after + 1, last + 1))


async def test_a_feed_that_starts_in_the_middle_gives_only_what_is_after(
    journal: Journal,
) -> None:
    await fill(journal, "a", 10)
    assert seqs(await until(journal.log.follow("a", after=7), 10)) == [8, 9, 10]


async def test_a_feed_that_starts_in_the_middle_of_a_batch_gives_the_rest_of_it(
    journal: Journal,
) -> None:
    feed = journal.log.follow("a", after=2)
    await go_live(journal, feed, "a")
    await journal.log.append("a", numbered(1, 5), 0)
    assert seqs(await until(feed, 5)) == [3, 4, 5]


async def test_a_feed_that_starts_ahead_waits_until_the_stream_gets_there(
    journal: Journal,
) -> None:
    await fill(journal, "a", 2)
    feed = journal.log.follow("a", after=4)
    await go_live(journal, feed, "a")
    await fill(journal, "a", 4, after=2)
    await fill(journal, "a", 6, after=4)
    assert seqs(await until(feed, 6)) == [5, 6]


@pytest.mark.parametrize("beyond", [1 << 40, 1 << 63])
async def test_a_feed_that_starts_beyond_all_numbers_gives_nothing_of_the_past(
    journal: Journal, beyond: int
) -> None:
    await fill(journal, "a", 3)
    feed = journal.log.follow("a", after=beyond)
    assert await go_live(journal, feed, "a") == []


async def test_a_feed_from_before_the_first_number_is_refused(journal: Journal) -> None:
    with pytest.raises(InvalidEntry):
        journal.log.follow("a", after=-1)


async def test_a_stream_that_does_not_exist_yet_is_followed_from_its_birth(
    journal: Journal,
) -> None:
    early, live = journal.log.follow("a"), journal.log.follow("a")
    await go_live(journal, live, "a")
    await fill(journal, "a", 2)
    assert seqs(await until(early, 2)) == [1, 2]
    assert seqs(await until(live, 2)) == [1, 2]


async def test_each_of_many_feeds_has_its_own_cursor(journal: Journal) -> None:
    feeds = [journal.log.follow("a", after=after) for after in range(20)]
    await fill(journal, "a", 10)
    found = [seqs(await until(feed, 10)) for feed in feeds[:10]]
    await fill(journal, "a", 30, after=10)
    rest = [seqs(await until(feed, 30)) for feed in feeds]
    for after in range(10):
        assert found[after] + rest[after] == list(range(after + 1, 31))
    for after in range(10, 20):
        assert rest[after] == list(range(after + 1, 31))


async def test_a_slow_feed_does_not_keep_a_quick_one_back(journal: Journal) -> None:
    slow, quick = journal.log.follow("a"), journal.log.follow("a")
    await go_live(journal, slow, "a")
    for seq in range(1, 50):
        await journal.log.append("a", numbered(seq, seq), seq - 1)
        assert seqs(await until(quick, seq)) == [seq]
    assert seqs(await until(slow, 49)) == list(range(1, 50))


async def test_one_feed_follows_fifty_streams(journal: Journal) -> None:
    names = [f"s{number}" for number in range(50)]
    for name in names:
        await fill(journal, name, 3)
    feed = journal.log.follow(names[0], after=1)
    for name in names[1:]:
        feed.add(name, after=1)
    found: dict[str, list[int]] = {name: [] for name in names}

    async def take(count: int) -> None:
        while count:
            batch = await next_of(feed)
            found[batch.stream] += seqs(batch.stored)
            count -= len(batch.stored)

    await take(50 * 2)
    await asyncio.gather(*(fill(journal, name, 6, after=3) for name in names))
    await take(50 * 3)
    assert found == {name: [2, 3, 4, 5, 6] for name in names}


async def test_a_long_history_does_not_keep_back_what_happens_on_another_stream(
    journal: Journal,
) -> None:
    await fill(journal, "old", 20 * PAGE)
    feed = journal.log.follow("now")
    await go_live(journal, feed, "now")
    feed.add("old")
    await fill(journal, "now", 1)
    batches = [await next_of(feed) for _ in range(3)]
    assert "now" in [batch.stream for batch in batches]


async def test_busy_streams_do_not_keep_a_history_back(journal: Journal) -> None:
    names = ["busy", "old", "also busy"]
    await fill(journal, "old", 2 * PAGE)
    feed = journal.log.follow("busy")
    await go_live(journal, feed, "busy")
    feed.add("also busy")
    await go_live(journal, feed, "also busy")
    at = dict.fromkeys(names, 0)

    async def write(name: str) -> None:
        await fill(journal, name, at[name] + 1, after=at[name])
        at[name] += 1

    await write("busy")
    feed.add("old")
    await write("also busy")
    given: list[str] = []
    for _ in range(20):
        given.append((await next_of(feed)).stream)
        if given[-1] != "old":
            await write(given[-1])
    assert set(given) == set(names)


async def test_a_stream_that_is_added_while_the_feed_waits_wakes_it(journal: Journal) -> None:
    await fill(journal, "b", 2)
    feed = journal.log.follow("a")
    await go_live(journal, feed, "a")
    reading = asyncio.create_task(next_of(feed))
    await asyncio.sleep(0)
    feed.add("b", after=1)
    batch = await reading
    assert (batch.stream, seqs(batch.stored)) == ("b", [2])


async def test_a_removed_stream_is_not_given_any_more_not_even_what_waits(
    journal: Journal,
) -> None:
    feed = journal.log.follow("a")
    feed.add("b")
    await go_live(journal, feed, "a")
    await go_live(journal, feed, "b")
    await fill(journal, "a", 2)
    await fill(journal, "b", 1)
    feed.remove("a")
    feed.remove("never followed")
    await fill(journal, "a", 3, after=2)
    await fill(journal, "b", 2, after=1)
    batch = await next_of(feed)
    assert (batch.stream, seqs(batch.stored)) == ("b", [1, 2])


async def test_what_waits_for_a_reader_is_given_at_once_and_live_events_apart(
    journal: Journal,
) -> None:
    feed = journal.log.follow("a")
    await go_live(journal, feed, "a")
    await fill(journal, "a", 1)
    for last in range(1, 50):
        await journal.log.append("a", numbered(last + 1, last + 1), last)
    for word in ("typing", "more"):
        journal.log.publish("a", [Live("k", word.encode())])
    await journal.log.append("a", numbered(51, 51), 50)
    batches = [await next_of(feed) for _ in range(3)]
    assert seqs(batches[0].stored) == list(range(1, 51))
    assert said(batches[1].events) == ["typing", "more"]
    assert seqs(batches[2].stored) == [51]


async def test_who_reads_an_event_before_it_is_told_gets_no_older_live_event_after_it(
    journal: Journal,
) -> None:
    async def go_on(appended: asyncio.Future[int], is_over: asyncio.Event) -> None:
        await appended
        while not is_over.is_set():
            journal.log.publish("a", [Live("k", b"new")])
            await asyncio.sleep(0)

    for last in range(50):
        feed, is_over = journal.log.follow("a", last), asyncio.Event()
        journal.log.publish("a", [Live("k", b"old")])
        appended = journal.log.append("a", numbered(last + 1, last + 1), last)
        going_on = asyncio.create_task(go_on(appended, is_over))
        found: list[str] = []
        async with asyncio.timeout(LIMIT):
            while "new" not in found:
                found += said((await anext(feed)).events)
        is_over.set()
        await going_on
        assert found[: found.index("new")] in (["old", str(last + 1)], [str(last + 1)])


async def test_a_stream_that_is_removed_and_added_again_starts_at_its_new_cursor(
    journal: Journal,
) -> None:
    await fill(journal, "a", 5)
    feed = journal.log.follow("a")
    assert seqs(await until(feed, 5)) == [1, 2, 3, 4, 5]
    reading = asyncio.create_task(next_of(feed))
    await asyncio.sleep(0)
    feed.remove("a")
    feed.add("a", after=3)
    assert seqs((await reading).stored) == [4, 5]


async def test_a_closed_feed_ends_at_once_and_stays_closed(journal: Journal) -> None:
    feed = journal.log.follow("a")
    await go_live(journal, feed, "a")
    await fill(journal, "a", 3)
    feed.close()
    feed.close()
    feed.add("a")
    assert [batch async for batch in feed] == []
    with pytest.raises(StopAsyncIteration):
        await next_of(feed)


@pytest.mark.parametrize("turns", range(4))
async def test_a_feed_that_is_closed_while_it_is_read_ends(journal: Journal, turns: int) -> None:
    feed = journal.log.follow("a")

    async def read_on() -> int:
        return len([batch async for batch in feed])

    reading = asyncio.create_task(read_on())
    for _ in range(turns):
        await asyncio.sleep(0)
    feed.close()
    async with asyncio.timeout(LIMIT):
        assert await reading == 0


async def test_feeds_that_wait_end_when_the_journal_is_closed(engine: Engine) -> None:
    async def read_on(feed: Feed) -> int:
        return len([batch async for batch in feed])

    async with engine.open() as journal:
        await fill(journal, "a", 3)
        feeds = {"a": journal.log.follow("a"), "b": journal.log.follow("b")}
        for stream, feed in feeds.items():
            await go_live(journal, feed, stream)
        reading = [asyncio.create_task(read_on(feed)) for feed in feeds.values()]
    async with asyncio.timeout(LIMIT):
        assert await asyncio.gather(*reading) == [0, 0]


async def test_a_feed_in_the_middle_of_its_history_ends_when_the_journal_is_closed(
    engine: Engine,
) -> None:
    async def read_on(feed: Feed, began: asyncio.Event) -> list[Event]:
        found: list[Event] = []
        async for batch in feed:
            found += batch.stored
            began.set()
        return found

    began = asyncio.Event()
    async with engine.open() as journal:
        await fill(journal, "a", 20 * PAGE)
        reading = asyncio.create_task(read_on(journal.log.follow("a"), began))
        await began.wait()
    async with asyncio.timeout(LIMIT):
        found = seqs(await reading)
    assert found == list(range(1, len(found) + 1))


async def test_a_follower_far_behind_misses_nothing_and_appends_do_not_wait_for_it(
    journal: Journal,
) -> None:
    feed = journal.log.follow("a")
    await go_live(journal, feed, "a")
    last = await fill_up(journal, "a", MAX_TOLD_BYTES + MAX_TOLD_BYTES // 4)
    assert last > 2 * PAGE
    assert seqs(await until(feed, last)) == list(range(1, last + 1))
    assert await go_live(journal, feed, "a") == []
    await fill(journal, "a", last + 1, after=last)
    assert seqs((await next_of(feed)).stored) == [last + 1]


async def test_a_follower_behind_by_many_small_events_misses_none(journal: Journal) -> None:
    feed = journal.log.follow("a")
    await go_live(journal, feed, "a")
    last = MAX_TOLD_BYTES // OVERHEAD + PAGE
    await fill(journal, "a", last)
    assert seqs(await until(feed, last)) == list(range(1, last + 1))


async def test_a_follower_that_reads_now_and_then_misses_nothing(journal: Journal) -> None:
    """It falls behind and catches up again and again, at all distances from the end."""
    feed = journal.log.follow("a")
    await go_live(journal, feed, "a")
    found: list[int] = []
    last = 0
    for turn in range(1, 13):
        last = await fill_up(journal, "a", MAX_TOLD_BYTES // 13 * turn // 3, after=last)
        for _ in range(turn % 5):
            if len(found) < last:
                found += seqs((await next_of(feed)).stored)
    found += seqs(await until(feed, last)) if found[-1] < last else []
    assert found == list(range(1, last + 1))


async def test_a_follower_that_falls_behind_on_one_stream_keeps_its_place_on_the_others(
    journal: Journal,
) -> None:
    feed = journal.log.follow("a")
    feed.add("b")
    await go_live(journal, feed, "a")
    await go_live(journal, feed, "b")
    await fill(journal, "b", 3)
    assert seqs((await next_of(feed)).stored) == [1, 2, 3]
    await fill(journal, "b", 5, after=3)
    last = await fill_up(journal, "a", MAX_TOLD_BYTES)
    await fill(journal, "b", 6, after=5)
    found: dict[str, list[int]] = {"a": [], "b": []}
    while len(found["a"]) < last or len(found["b"]) < 3:
        batch = await next_of(feed)
        found[batch.stream] += seqs(batch.stored)
    assert found == {"a": list(range(1, last + 1)), "b": [4, 5, 6]}


async def test_a_forgotten_feed_is_dropped_while_others_go_on(journal: Journal) -> None:
    forgotten, kept = journal.log.follow("a"), journal.log.follow("a")
    await go_live(journal, forgotten, "a")
    await go_live(journal, kept, "a")
    gone = weakref.ref(forgotten)
    del forgotten
    gc.collect()
    assert gone() is None
    await fill(journal, "a", 2)
    assert seqs(await until(kept, 2)) == [1, 2]


async def test_a_feed_that_is_collected_while_others_are_told_keeps_nobody_waiting(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's collector may run at any moment: here, when the first reader is woken."""
    forgotten, *kept = (journal.log.follow("a") for _ in range(3))
    for feed in (forgotten, *kept):
        await go_live(journal, feed, "a")
    for feed in (forgotten, *kept):
        await until_quiet(feed)
    reading = [asyncio.create_task(next_of(feed)) for feed in kept]
    await asyncio.sleep(0)
    in_a_cycle: list[object] = [forgotten]
    in_a_cycle.append(in_a_cycle)
    del in_a_cycle, forgotten, feed
    loop = asyncio.get_running_loop()
    call_soon = loop.call_soon

    def collecting(callback: Callable[..., object], *args: Any, **more: Any) -> asyncio.Handle:
        if "wakeup" in repr(callback).lower():
            gc.collect()
        return call_soon(callback, *args, **more)

    monkeypatch.setattr(loop, "call_soon", collecting)
    await fill(journal, "a", 1)
    done, _ = await asyncio.wait(reading, timeout=2)
    assert [seqs(task.result().stored) for task in done] == [[1], [1]]


async def test_a_forgotten_feed_leaves_nothing_behind(journal: Journal) -> None:
    assert isinstance(journal.log, Log)
    feeds = [journal.log.follow(f"s{number}") for number in range(20)]
    for number, feed in enumerate(feeds):
        await go_live(journal, feed, f"s{number}")
    feed = feeds.pop()
    feeds.clear()
    gc.collect()
    await asyncio.sleep(0)  # it may be tidied up in the loop's own time
    assert list(journal.log._tails._tails) == ["s19"]
    feed.close()
    assert list(journal.log._tails._tails) == []


@pytest.mark.parametrize("last", [3, 4 * PAGE])
async def test_to_cancel_a_reader_loses_nothing(journal: Journal, last: int) -> None:
    feed = journal.log.follow("a")
    appending = asyncio.create_task(fill(journal, "a", last))
    found: list[Event] = []
    turns = 0
    async with asyncio.timeout(LIMIT):
        while not found or found[-1].seq < last:
            reading = asyncio.create_task(next_of(feed))
            for _ in range(turns % 40):
                await asyncio.sleep(0)
            turns += 1
            reading.cancel()
            (result,) = await asyncio.gather(reading, return_exceptions=True)
            if not isinstance(result, BaseException):
                found += result.stored
    await appending
    assert seqs(found) == list(range(1, last + 1))


async def test_a_second_reader_of_a_waiting_feed_is_an_error_and_the_first_goes_on(
    journal: Journal,
) -> None:
    feed = journal.log.follow("a")
    await go_live(journal, feed, "a")
    reading = asyncio.create_task(next_of(feed))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError):
        await next_of(feed)
    await fill(journal, "a", 1)
    assert seqs((await reading).stored) == [1]


async def test_a_second_reader_of_a_feed_that_begins_is_an_error_and_the_first_goes_on(
    journal: Journal,
) -> None:
    feed = journal.log.follow("a")
    readers = [asyncio.create_task(next_of(feed)) for _ in range(2)]
    done, waiting = await asyncio.wait(readers, timeout=LIMIT, return_when=asyncio.FIRST_COMPLETED)
    assert [type(task.exception()) for task in done] == [RuntimeError]
    await fill(journal, "a", 1)
    assert [seqs((await task).stored) for task in waiting] == [[1]]


async def test_two_readers_of_one_history_never_get_the_same_event(journal: Journal) -> None:
    await fill(journal, "a", 2 * PAGE)
    feed = journal.log.follow("a")
    results = await asyncio.gather(next_of(feed), next_of(feed), return_exceptions=True)
    found: list[int] = []
    for result in results:
        if isinstance(result, BaseException):
            assert isinstance(result, RuntimeError)
        else:
            found += seqs(result.stored)
    assert found == list(range(1, len(found) + 1))


async def test_a_follower_of_a_stream_deleted_under_it_goes_on_with_what_comes(
    journal: Journal,
) -> None:
    last = 2 * PAGE
    await fill(journal, "a", last)
    reading, live = journal.log.follow("a"), journal.log.follow("a", after=last)
    begun = await next_of(reading)
    assert begun.stored[0].seq == 1
    assert await go_live(journal, live, "a") == []
    await journal.log.delete("a", last)
    assert await go_live(journal, reading, "a") == []
    await fill(journal, "a", last + 2, after=last)
    assert seqs(await until(reading, last + 2)) == [last + 1, last + 2]
    assert seqs(await until(live, last + 2)) == [last + 1, last + 2]
    await journal.log.delete("a", last + 2)
    await fill(journal, "a", last + 3, after=last + 2)
    assert seqs(await until(reading, last + 3)) == [last + 3]
    assert seqs(await until(live, last + 3)) == [last + 3]


async def test_a_follower_with_a_cursor_before_a_deleted_part_gets_what_is_left(
    journal: Journal,
) -> None:
    await fill(journal, "a", 10)
    await journal.log.delete("a", 10)
    await fill(journal, "a", 12, after=10)
    assert seqs(await until(journal.log.follow("a", after=4), 12)) == [11, 12]


# --- live events


async def test_live_events_reach_who_follows_now_and_are_not_stored(engine: Engine) -> None:
    async with engine.open() as journal:
        feed = journal.log.follow("a")
        await go_live(journal, feed, "a")
        journal.log.publish("a", [Live("delta", b"x", AT), Live("delta", b"y", AT)])
        journal.log.publish("a", [])
        journal.log.publish("nobody", [Live("delta", b"z", AT)])
        await fill(journal, "a", 1)
        batch = await next_of(feed)
        assert (batch.stream, batch.stored) == ("a", [])
        assert list(batch.events) == [Live("delta", b"x", AT), Live("delta", b"y", AT)]
        assert seqs((await next_of(feed)).stored) == [1]
        assert seqs(await journal.log.read("a")) == [1]
        assert seqs((await next_of(journal.log.follow("a"))).stored) == [1]
    async with engine.open() as journal:
        assert seqs(await journal.log.read("a")) == [1]


async def test_live_events_come_after_what_was_appended_before_them(journal: Journal) -> None:
    feed = journal.log.follow("a")
    await go_live(journal, feed, "a")
    for seq in range(1, 100):
        if seq % 40 == 0:
            journal.log.append("a", [NewEvent("said", large(str(seq)), AT)], seq - 1)
        else:
            journal.log.append("a", numbered(seq, seq), seq - 1)
        journal.log.publish("a", [Live("after", str(seq).encode())])
        if seq % 10 == 0:
            await asyncio.sleep(0)
    order: list[int] = []
    while len(order) < 2 * 99:
        events = (await next_of(feed)).events
        order += [e.seq if isinstance(e, Event) else -int(e.body) for e in events]
    assert order == [number for seq in range(1, 100) for number in (seq, -seq)]


async def test_live_events_come_after_an_append_that_was_refused_too(journal: Journal) -> None:
    feed = journal.log.follow("a")
    await go_live(journal, feed, "a")
    refused = journal.log.append("a", [NewEvent("said", large())], 9)
    journal.log.publish("a", [Live("k", b"x")])
    assert said((await next_of(feed)).events) == ["x"]
    assert isinstance(refused.exception(), WrongSequence)


async def test_what_was_published_is_what_it_was_at_the_call(journal: Journal) -> None:
    feed = journal.log.follow("a")
    await go_live(journal, feed, "a")
    reused = [Live("k", b"x"), Live("k", b"y")]
    journal.log.publish("a", reused)
    reused.clear()
    assert said((await next_of(feed)).events) == ["x", "y"]


async def test_who_has_fallen_behind_loses_live_events_and_no_stored_one(
    journal: Journal,
) -> None:
    feed = journal.log.follow("a")
    await go_live(journal, feed, "a")
    await fill(journal, "a", 2)
    body = bytes(MAX_BODY)
    for _ in range(MAX_TOLD_BYTES // len(body) + 1):
        journal.log.publish("a", [Live("many", body)])
    await fill(journal, "a", 4, after=2)
    assert seqs(await until(feed, 4)) == [1, 2, 3, 4]
    assert await go_live(journal, feed, "a") == []
    journal.log.publish("a", [Live("k", b"heard")])
    assert said((await next_of(feed)).events) == ["heard"]


async def test_live_events_larger_than_all_that_is_kept_harm_nobody(journal: Journal) -> None:
    feed = journal.log.follow("a")
    await go_live(journal, feed, "a")
    journal.log.publish("a", [Live("k", bytes(MAX_TOLD_BYTES))])
    await fill(journal, "a", 1)
    assert seqs(await until(feed, 1)) == [1]


async def test_who_comes_later_does_not_hear_what_passed_before(journal: Journal) -> None:
    early = journal.log.follow("a")
    await go_live(journal, early, "a")
    journal.log.publish("a", [Live("k", b"before")])
    late = journal.log.follow("a")
    await fill(journal, "a", 1)
    assert said((await next_of(late)).events) == ["1"]
    assert said((await next_of(early)).events) == ["before"]


async def test_a_feed_on_many_streams_hears_live_events_of_each(journal: Journal) -> None:
    feed = journal.log.follow("a")
    feed.add("b")
    await go_live(journal, feed, "a")
    await go_live(journal, feed, "b")
    journal.log.publish("b", [Live("k", b"x")])
    journal.log.publish("a", [Live("k", b"y")])
    journal.log.publish("c", [Live("k", b"z")])
    batches = [await next_of(feed), await next_of(feed)]
    assert [(batch.stream, said(batch.events)) for batch in batches] == [
        ("b", ["x"]),
        ("a", ["y"]),
    ]


# --- what it costs


async def test_streams_that_are_followed_and_idle_have_no_task_and_no_timer(
    journal: Journal,
) -> None:
    before = asyncio.all_tasks()
    feeds = [journal.log.follow(f"s{number}") for number in range(30)]
    for number, feed in enumerate(feeds):
        await fill(journal, f"s{number}", 1)
        await until(feed, 1)
        await go_live(journal, feed, f"s{number}")
    assert asyncio.all_tasks() == before
    loop: Any = asyncio.get_running_loop()
    assert [timer for timer in loop._scheduled if not timer.cancelled()] == []
    assert len(feeds) == 30


async def test_every_error_of_the_log_is_a_journal_error(journal: Journal) -> None:
    tries = [
        journal.log.append("", new("1"), 0),
        journal.log.append("a", new("1"), 3),
        journal.log.append("a", [], 0),
    ]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert all(isinstance(result, JournalError) for result in results)
