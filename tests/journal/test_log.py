"""What an event log promises, with every engine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, cast

import pytest

from bridle.errors import (
    BlobLost,
    InvalidEntry,
    JournalClosed,
    WrongSequence,
)
from bridle.journal import BlobRef, Durability, Event, Journal, Live, NewEvent, StreamInfo
from bridle.journal.events import (
    HEAD_SIZE,
    MAX_BATCH_BYTES,
    MAX_BATCH_EVENTS,
    MAX_BODY,
    MAX_NAME,
)

from .engines import Engine
from .helpers import (
    AT,
    LIMIT,
    all_of,
    fill,
    go_live,
    large,
    new,
    next_of,
    numbered,
    said,
    seqs,
    until,
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
