"""Live events, in order with the stored ones; and what idle streams cost. With every engine."""

from __future__ import annotations

import asyncio
from typing import Any

from bridle.errors import (
    JournalError,
    WrongSequence,
)
from bridle.journal import Event, Journal, Live, NewEvent
from bridle.journal.events import (
    MAX_BODY,
)
from bridle.journal.tails import MAX_TOLD_BYTES

from .engines import Engine
from .helpers import (
    AT,
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
