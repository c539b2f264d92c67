"""States that are derived from streams: always those of the log, whatever the record says."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec
import pytest
from msgspec import Struct

from bridle.journal import Event, Journal, NewEvent, Projection, Stamped
from bridle.journal.contract import Records
from bridle.journal.events import MAX_BODY, MAX_NAME

from .engines import Engine
from .helpers import AT, fill, large

NAME = "sums"


class Sum(Struct, frozen=True):
    total: int = 0
    folded: list[int] = []


def add(state: Sum, event: Event) -> Sum:
    return Sum(state.total + int(event.body), [*state.folded[-4:], event.seq])


def sums(journal: Journal, version: int = 1) -> Projection[Sum]:
    return Projection(
        journal.log,
        journal.records,
        NAME,
        Sum,
        start=lambda _: Sum(),
        fold=add,
        version=version,
    )


def after(last: int, version: int = 1) -> Stamped[Sum]:
    """What the state must be after the numbered events up to this one."""
    folded = list(range(max(1, last - 4), last + 1))
    return Stamped(version, last, Sum(last * (last + 1) // 2, folded))


async def kept(journal: Journal, stream: str = "a") -> Stamped[Sum] | None:
    record = await journal.records.get(NAME, stream)
    return msgspec.json.decode(record.value, type=Stamped[Sum]) if record else None


async def keep(journal: Journal, value: bytes, stream: str = "a") -> None:
    """Put something else where the projection keeps its state."""
    record = await journal.records.get(NAME, stream)
    await journal.records.put(NAME, stream, value, record.revision if record else 0)


async def test_a_state_is_stamped_with_the_number_that_it_reflects(journal: Journal) -> None:
    await fill(journal, "a", 3)
    assert await sums(journal).get("a") == after(3)
    assert await kept(journal) == after(3)


async def test_a_stream_without_events_has_the_state_at_the_start(journal: Journal) -> None:
    assert await sums(journal).get("a") == Stamped(1, 0, Sum())
    await fill(journal, "a", 2)
    assert await sums(journal).get("a") == after(2)


async def test_each_stream_has_its_own_state_and_start(journal: Journal) -> None:
    names: Projection[list[str]] = Projection(
        journal.log,
        journal.records,
        "names",
        list[str],
        start=lambda stream: [stream],
        fold=lambda state, event: [*state, event.body.decode()],
    )
    await fill(journal, "a", 2)
    await fill(journal, "b", 1)
    assert (await names.get("a")).state == ["a", "1", "2"]
    assert (await names.get("b")).state == ["b", "1"]


async def test_a_state_catches_up_with_only_what_is_new(journal: Journal) -> None:
    folded: list[int] = []

    def noting(state: Sum, event: Event) -> Sum:
        folded.append(event.seq)
        return add(state, event)

    projection = Projection(
        journal.log, journal.records, NAME, Sum, start=lambda _: Sum(), fold=noting
    )
    await fill(journal, "a", 2)
    await projection.get("a")
    await fill(journal, "a", 4, after=2)
    assert await projection.get("a") == after(4)
    assert await projection.get("a") == after(4)
    assert folded == [1, 2, 3, 4]


async def test_a_state_that_is_up_to_date_is_not_written_again(journal: Journal) -> None:
    await fill(journal, "a", 2)
    await sums(journal).get("a")
    before = await journal.records.get(NAME, "a")
    await sums(journal).get("a")
    assert await journal.records.get(NAME, "a") == before


async def test_a_long_stream_is_folded_whole(journal: Journal) -> None:
    await fill(journal, "a", 2345)
    assert await sums(journal).get("a") == after(2345)


async def test_after_a_crash_between_append_and_projection_the_state_is_right(
    engine: Engine,
) -> None:
    async with engine.open() as journal:
        await fill(journal, "a", 3)
        await sums(journal).get("a")
        await fill(journal, "a", 5, after=3)
        assert await kept(journal) == after(3)
    async with engine.open() as journal:
        assert await kept(journal) == after(3)
        assert await sums(journal).get("a") == after(5)
        assert await kept(journal) == after(5)


async def test_a_state_outlives_the_events_it_was_made_of(journal: Journal) -> None:
    await fill(journal, "a", 3)
    await sums(journal).get("a")
    await journal.log.delete("a", 3)
    assert await sums(journal).get("a") == after(3)
    await fill(journal, "a", 5, after=3)
    assert await sums(journal).get("a") == after(5)


async def test_a_rebuild_makes_the_state_again_whatever_the_record_says(
    journal: Journal,
) -> None:
    await fill(journal, "a", 3)
    wrong = Stamped(1, 3, Sum(-99))
    await keep(journal, msgspec.json.encode(wrong))
    assert await sums(journal).get("a") == wrong
    assert await sums(journal).rebuild("a") == after(3)
    assert await kept(journal) == after(3)
    assert await sums(journal).get("a") == after(3)


class Overtaken:
    """Records where somebody else is quicker: `first` is run before the first put."""

    def __init__(self, records: Records, first: Callable[[], Awaitable[Any]]) -> None:
        self._records = records
        self._first = [first]
        self.get = records.get

    async def put(self, bucket: str, key: str, value: bytes, expected_revision: int) -> int:
        while self._first:
            await self._first.pop()()
        return await self._records.put(bucket, key, value, expected_revision)


def overtaken(journal: Journal, first: Callable[[], Awaitable[Any]]) -> Projection[Sum]:
    records = cast("Records", Overtaken(journal.records, first))
    return Projection(journal.log, records, NAME, Sum, start=lambda _: Sum(), fold=add)


async def test_who_is_overtaken_while_catching_up_answers_and_keeps_what_the_other_kept(
    journal: Journal,
) -> None:
    async def go_on() -> None:
        await fill(journal, "a", 5, after=3)
        await sums(journal).get("a")

    await fill(journal, "a", 3)
    assert await overtaken(journal, go_on).get("a") == after(3)
    assert await kept(journal) == after(5)


async def test_a_rebuild_is_not_undone_by_somebody_who_catches_up_meanwhile(
    journal: Journal,
) -> None:
    await fill(journal, "a", 3)
    await keep(journal, msgspec.json.encode(Stamped(1, 2, Sum(-99))))
    assert await overtaken(journal, lambda: sums(journal).get("a")).rebuild("a") == after(3)
    assert await sums(journal).get("a") == after(3)


@pytest.mark.parametrize("version", [0, 2])
async def test_a_state_of_another_version_of_the_fold_is_made_again(
    journal: Journal, version: int
) -> None:
    await fill(journal, "a", 3)
    await keep(journal, msgspec.json.encode(Stamped(1, 3, Sum(-99))))
    assert await sums(journal, version).get("a") == after(3, version)
    assert await kept(journal) == after(3, version)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"null",
        b"\xff",
        b'{"version":1,"seq":3}',
        b'{"version":1,"seq":3,"state":{"total":"many"}}',
        b'{"version":1,"seq":3,"state":{"total":',
    ],
)
async def test_an_unreadable_record_is_made_again(journal: Journal, value: bytes) -> None:
    await fill(journal, "a", 3)
    await keep(journal, value)
    assert await sums(journal).get("a") == after(3)
    assert await kept(journal) == after(3)


async def test_a_record_ahead_of_the_log_is_made_again(journal: Journal) -> None:
    await fill(journal, "a", 3)
    await keep(journal, msgspec.json.encode(Stamped(1, 4, Sum(-99))))
    assert await sums(journal).get("a") == after(3)
    assert await kept(journal) == after(3)


async def test_a_record_from_before_all_numbers_is_made_again(journal: Journal) -> None:
    await fill(journal, "a", 3)
    await keep(journal, msgspec.json.encode(Stamped(1, -1, Sum(-99))))
    assert await sums(journal).get("a") == after(3)


async def test_two_who_catch_up_at_once_both_get_the_state(journal: Journal) -> None:
    await fill(journal, "a", 1200)
    results = await asyncio.gather(*(sums(journal).get("a") for _ in range(5)))
    assert results == [after(1200)] * 5
    assert await kept(journal) == after(1200)


async def test_who_catches_up_while_events_come_gets_a_state_that_fits_its_stamp(
    journal: Journal,
) -> None:
    async def write() -> None:
        for seq in range(100):
            await fill(journal, "a", seq + 1, after=seq)

    writing = asyncio.create_task(write())
    while not writing.done():
        stamped = await sums(journal).get("a")
        assert stamped.state.total == stamped.seq * (stamped.seq + 1) // 2
        await asyncio.sleep(0)
    await writing
    assert await sums(journal).get("a") == after(100)


async def test_a_state_too_large_to_keep_still_answers(
    journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    texts: Projection[str] = Projection(
        journal.log,
        journal.records,
        "texts",
        str,
        start=lambda _: "",
        fold=lambda state, _: state + "x" * MAX_BODY,
    )
    await fill(journal, "a", 2)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert await texts.get("a") == Stamped(1, 2, "x" * MAX_BODY * 2)
    assert await journal.records.get("texts", "a") is None
    assert len(caplog.records) == 2


async def test_a_fold_that_fails_says_so_and_keeps_nothing(journal: Journal) -> None:
    await fill(journal, "a", 2)
    await journal.log.append("a", [NewEvent("k", b"no number")], 2)
    with pytest.raises(ValueError, match="no number"):
        await sums(journal).get("a")
    assert await kept(journal) is None


async def test_of_a_large_payload_the_fold_sees_the_head(journal: Journal) -> None:
    sizes: Projection[list[Any]] = Projection(
        journal.log,
        journal.records,
        "sizes",
        list[Any],
        start=lambda _: [],
        fold=lambda state, event: [*state, len(event.body), event.blob.size if event.blob else 0],
    )
    payload = large()
    await journal.log.append("a", [NewEvent("k", payload, AT)], 0)
    (event,) = await journal.log.read("a")
    assert (await sizes.get("a")).state == [len(event.body), len(payload)]


async def test_a_stream_with_the_longest_name_has_a_state(journal: Journal) -> None:
    name = "x" * MAX_NAME
    await fill(journal, name, 2)
    assert await sums(journal).get(name) == after(2)
    assert await kept(journal, name) == after(2)
