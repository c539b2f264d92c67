"""What a feed promises: history, then live, for any number of readers; with every engine."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from bridle.errors import (
    InvalidEntry,
)
from bridle.journal import Event, Journal, Live
from bridle.journal.contract import Feed
from bridle.journal.log import Log
from bridle.journal.tails import MAX_TOLD_BYTES, OVERHEAD, PAGE

from .engines import Engine
from .helpers import (
    LIMIT,
    fill,
    fill_up,
    go_live,
    next_of,
    numbered,
    said,
    seqs,
    stored,
    until,
    until_quiet,
)

BAD_NAMES = ["", "x" * 257, "two\nlines", "nul\0", "half\ud800", "turned\u202eround"]


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


@pytest.mark.slow
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


async def test_a_follower_that_joins_after_a_deletion_gets_nothing_of_what_was_deleted(
    journal: Journal,
) -> None:
    first = journal.log.follow("a")
    await fill(journal, "a", 2)
    assert seqs(await until(first, 2)) == [1, 2]
    await journal.log.delete("a", 2)
    late = journal.log.follow("a")
    assert await go_live(journal, late, "a") == []
    await fill(journal, "a", 3, after=2)
    assert seqs(await until(late, 3)) == [3]
    assert seqs(await until(first, 3)) == [3]


async def test_a_follower_with_a_cursor_before_a_deleted_part_gets_what_is_left(
    journal: Journal,
) -> None:
    await fill(journal, "a", 10)
    await journal.log.delete("a", 10)
    await fill(journal, "a", 12, after=10)
    assert seqs(await until(journal.log.follow("a", after=4), 12)) == [11, 12]
