"""Folds of sessions that are looked at: quick to go on with, bounded, and let go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from bridle.journal import Event, Journal, NewEvent, memory_journal
from bridle.loopback import folds
from bridle.loopback.folds import Fold, Folds
from bridle.views import stream
from bridle.views.happenings import Happening
from bridle.views.loopback import LoopbackState, fold
from tests.levels import tries

SESSION = "s"
MANY = 100_000


def said(text: str, number: int) -> NewEvent:
    block = {"type": "text", "text": text}
    inner = {"id": "m", "model": "x", "content": [block]}
    line = {"type": "assistant", "uuid": f"u{number}", "message": inner}
    body = stream.Line(
        launch="l", end=number, type="assistant", line=Raw(msgspec.json.encode(line))
    )
    return NewEvent(stream.SAID, msgspec.json.encode(body), 1.0)


def silent(number: int) -> NewEvent:
    body = stream.Begun(launch="l", request_id=f"{number}")
    return NewEvent(stream.BEGUN, msgspec.json.encode(body), 1.0)


async def grown(journal: Journal, events: Sequence[NewEvent]) -> int:
    last = (await journal.log.info(SESSION)).last_seq
    for start in range(0, len(events), 1_000):
        last = await journal.log.append(SESSION, events[start : start + 1_000], last)
    return last


class Counting:
    """A journal that counts what is read of it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.read_events = 0

    @property
    def log(self) -> Any:
        return self

    async def read(self, name: str, after: int, limit: int) -> list[Event]:
        found = await self._journal.log.read(name, after, limit)
        self.read_events += len(found)
        return found

    async def payload(self, event: Event) -> bytes:
        return await self._journal.payload(event)


@pytest.fixture
async def journal() -> AsyncIterator[Journal]:
    async with memory_journal() as journal:
        yield journal


@pytest.mark.slow
async def test_polls_of_a_long_stream_read_only_what_is_new(journal: Journal) -> None:
    last = await grown(journal, [said(f"{n}", n) for n in range(MANY)])
    counting: Any = Counting(journal)
    one = Fold(counting, SESSION)
    await one.catch_up(last)
    assert counting.read_events == MANY
    for number in range(20):
        last = await grown(journal, [said("new", MANY + number)])
        await one.catch_up(last)
        page = await one.read(one.tail.count - 1, 100, "normal")
        assert len(page.found) == 1
    assert counting.read_events == MANY + 20
    # What is long past costs the way from the mark before it, not from the beginning.
    counting.read_events = 0
    for start in (0, 50_000, 99_000):
        page = await one.read(start, 100, "normal")
        assert [getattr(found, "text", "") for found in page.found] == [
            f"{n}" for n in range(start, start + 100)
        ]
    assert counting.read_events < 3 * (folds.MARK_EVERY + 100 + folds.PAGE)


async def test_who_was_there_before_a_restart_need_not_begin_again(journal: Journal) -> None:
    last = await grown(journal, [said(f"{n}", n) for n in range(5_000)])
    before = Fold(journal, SESSION)
    await before.catch_up(last)
    kept = msgspec.json.decode(
        msgspec.json.encode(before.kept(before.tail.count)), type=LoopbackState
    )
    last = await grown(journal, [said("new", 5_001)])
    counting: Any = Counting(journal)
    after = Fold(counting, SESSION)
    await after.catch_up(last, kept)
    assert counting.read_events == 1
    assert after.tail.count == 5_001
    page = await after.read(5_000, 10, "normal")
    assert [getattr(found, "text", "") for found in page.found] == ["new"]
    early = await after.read(10, 2, "normal")
    assert [getattr(found, "text", "") for found in early.found] == ["10", "11"]


async def test_marks_and_what_is_recent_stay_bounded(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folds, "MARK_EVERY", 5)
    monkeypatch.setattr(folds, "MOST_MARKS", 20)
    last = await grown(journal, [said("x" * 500, n) for n in range(3_000)])
    one = Fold(journal, SESSION)
    await one.catch_up(last)
    assert len(one._marks) <= 21
    assert one._weight <= folds.RECENT_BYTES
    assert one._weight == sum(size for _, size in one._recent)
    page = await one.read(1_234, 3, "normal")
    assert page.end == 1_237


async def test_the_fold_that_nobody_looks_at_is_let_go(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folds, "MOST_FOLDS", 3)
    held = Folds(journal)
    first = held.of("a")
    for name in ("b", "c"):
        held.of(name)
    assert held.of("a") is first
    held.of("d")
    assert len(held) == 3
    assert held.of("a") is first


async def test_a_payload_that_is_in_a_blob_is_read_whole(journal: Journal) -> None:
    text = "é" * 300_000
    last = await grown(journal, [said(text, 1), said("after", 2)])
    one = Fold(journal, SESSION)
    await one.catch_up(last)
    page = await one.read(0, 5, "full")
    first = page.found[0]
    assert getattr(first, "text", "") + "é" * first.cut == text


async def test_many_who_look_at_the_same_time_see_the_same(journal: Journal) -> None:
    last = await grown(journal, [said(f"{n}", n) for n in range(2_000)])
    one = Fold(journal, SESSION)

    async def look(start: int) -> list[Happening]:
        await one.catch_up(last)
        return (await one.read(start, 5, "normal")).found

    seen = await asyncio.gather(*(look(700) for _ in range(10)))
    assert all(found == seen[0] for found in seen)
    assert one.tail.count == 2_000


KINDS = st.lists(st.sampled_from(["said", "silent"]), min_size=1, max_size=60)


@settings(max_examples=tries(50, 500), deadline=None)
@given(kinds=KINDS, data=st.data())
async def test_pages_are_the_same_however_the_stream_grew_and_was_read(
    kinds: list[str], data: st.DataObject
) -> None:
    events = [said(f"{n}", n) if kind == "said" else silent(n) for n, kind in enumerate(kinds)]
    state = LoopbackState()
    expected = [
        found
        for seq, event in enumerate(events, 1)
        for found in fold(state, stream.Entry(seq, event.at, event.kind, event.body))
    ]
    async with memory_journal() as journal:
        one = Fold(journal, SESSION)
        one._mark_every = data.draw(st.integers(1, 10))
        at = 0
        while at < len(events):
            size = data.draw(st.integers(1, len(events) - at))
            last = await grown(journal, events[at : at + size])
            at += size
            await one.catch_up(data.draw(st.integers(1, last)))
            if data.draw(st.booleans()):  # a restart: what was kept is all there is
                kept = one.kept(data.draw(st.integers(0, one.tail.count)))
                one = Fold(journal, SESSION)
                await one.catch_up(last, kept)
            start = data.draw(st.integers(0, one.tail.count))
            page = await one.read(start, data.draw(st.integers(1, 20)), "normal")
            assert page.found == expected[start : page.end]
        await one.catch_up(len(events))
        assert one.tail.count == len(expected)
