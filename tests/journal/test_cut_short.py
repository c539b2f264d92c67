"""What is cancelled or closed in the middle of something leaves nothing stuck behind."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from bridle.errors import InvalidEntry, JournalCorrupt, JournalError, WrongSequence
from bridle.journal import Journal, NewEvent, Projection, open_journal
from bridle.journal.records import StoredWatch

from .engines import Engine
from .helpers import LIMIT, large, new, next_of, said
from .sqlite.files import raw


async def test_a_close_that_is_cancelled_goes_on_and_lets_go_of_everything(engine: Engine) -> None:
    opened = engine.open()
    journal = await opened.__aenter__()
    storing = journal.log.append("a", [NewEvent("k", large(size=5_000_000))], 0)
    closing = asyncio.create_task(journal.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    assert closing.cancelled()
    async with asyncio.timeout(LIMIT):
        await opened.__aexit__(None, None, None)
        assert await storing == 1
        async with engine.open() as again:
            assert (await again.log.info("a")).last_seq == 1


async def test_an_append_whose_payload_was_cut_off_fails_and_the_stream_goes_on(
    journal: Journal,
) -> None:
    others = asyncio.all_tasks()
    cut_off = journal.log.append("a", [NewEvent("k", large())], 0)
    behind = journal.log.append("a", new("built on it"), 1)
    for task in asyncio.all_tasks() - others:  # as the end of a program does
        task.cancel()
    async with asyncio.timeout(LIMIT):
        with pytest.raises(JournalError, match="a payload was not stored"):
            await cut_off
        with pytest.raises(WrongSequence):
            await behind
        assert await journal.log.append("a", new("1"), 0) == 1
    assert said(await journal.log.read("a")) == ["1"]


async def test_a_stream_that_cant_be_read_keeps_a_feeds_others_from_nothing(tmp_path: Path) -> None:
    async with open_journal(tmp_path) as journal:
        await journal.log.append("bad", new("1"), 0)
        await journal.log.append("good", new("2"), 0)
    with raw(tmp_path) as connection:
        connection.execute("UPDATE event SET kind = CAST(x'ff' AS TEXT) WHERE body = x'31'")
    async with open_journal(tmp_path) as journal:
        feed = journal.log.follow("bad")
        feed.add("good")
        with pytest.raises(JournalCorrupt):
            await next_of(feed)
        assert said((await next_of(feed)).events) == ["2"]


async def test_a_closed_watch_collects_nothing(journal: Journal) -> None:
    watch = journal.records.watch("b")
    assert isinstance(watch, StoredWatch)
    watch.close()
    await journal.records.create("b", "k", b"x")
    assert watch._changes == {}


async def test_of_two_readers_of_a_watchs_present_state_one_is_refused(tmp_path: Path) -> None:
    async with open_journal(tmp_path) as journal, asyncio.timeout(LIMIT):
        watch = journal.records.watch("b")
        both = (watch.__anext__() for _ in range(2))
        first, second = await asyncio.gather(*both, return_exceptions=True)
        assert first == []
        assert isinstance(second, RuntimeError)


async def test_to_ask_for_the_state_of_no_stream_keeps_no_record(journal: Journal) -> None:
    sizes = Projection(
        journal.log,
        journal.records,
        "sizes",
        int,
        start=lambda _: 0,
        fold=lambda size, event: size + len(event.body),
    )
    assert (await sizes.get("nobody")).state == 0
    assert await journal.records.list("sizes") == []


async def test_what_is_no_durability_is_refused(journal: Journal) -> None:
    with pytest.raises(InvalidEntry, match="'power' is no Durability"):
        await journal.log.append("a", new("1"), 0, cast(Any, "power"))
    with pytest.raises(InvalidEntry, match="'power' is no Durability"):
        await journal.records.create("b", "k", b"x", cast(Any, "power"))
