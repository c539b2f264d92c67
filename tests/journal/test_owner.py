"""The one writer of a stream: order without waiting, and the truth after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from bridle.errors import InvalidEntry, JournalClosed, JournalUnwritable, WrongSequence
from bridle.journal import Journal, NewEvent, StreamInfo
from bridle.journal.owner import Owners, StreamOwner

from ..approvals.helpers import FailingLog
from .engines import Engine
from .helpers import new


class AskedLog(FailingLog):
    """Calls `asked` right behind the step that hears where a stream ends."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal)
        self.asked: Callable[[], object] = lambda: None

    async def info(self, stream: str) -> StreamInfo:
        found = await self._log.info(stream)
        asyncio.get_running_loop().call_soon(self.asked)
        return found


async def bodies(journal: Journal, stream: str = "a") -> list[str]:
    return [event.body.decode() for event in await journal.log.read(stream)]


async def test_appends_keep_their_order_and_need_not_be_awaited(journal: Journal) -> None:
    await journal.log.append("a", new("1", "2"), 0)
    owner = StreamOwner(journal.log, "a")
    futures = [owner.append(new(str(number))) for number in range(3, 60)]
    assert await asyncio.gather(*futures) == list(range(3, 60))
    assert await owner.append(new("60", "61")) == 61
    assert await bodies(journal) == [str(number) for number in range(1, 62)]


async def test_after_a_failure_it_goes_on_where_the_stream_ends(journal: Journal) -> None:
    log = FailingLog(journal)
    owner = StreamOwner(log, "a")
    assert await owner.append(new("1")) == 1
    log.refuses = True
    failed = owner.append(new("no"))
    log.refuses = False
    with pytest.raises(JournalUnwritable):
        await failed
    assert await owner.append(new("2")) == 2
    with pytest.raises(InvalidEntry):
        await owner.append([])
    assert await owner.append(new("3")) == 3
    assert await bodies(journal) == ["1", "2", "3"]


async def test_those_sent_behind_a_failure_fail_and_those_after_it_do_not(
    journal: Journal,
) -> None:
    owner = StreamOwner(journal.log, "a")
    await owner.append(new("1"))
    bad = owner.append([NewEvent("k", b"", at=float("nan"))])
    behind = owner.append(new("behind"))
    results = await asyncio.gather(bad, behind, return_exceptions=True)
    assert [type(result) for result in results] == [InvalidEntry, WrongSequence]
    assert await owner.append(new("2")) == 2
    assert await bodies(journal) == ["1", "2"]


async def test_what_was_stored_is_told_so_whatever_the_store_said(journal: Journal) -> None:
    log = FailingLog(journal)
    owner = StreamOwner(log, "a")
    await owner.append(new("1"))
    log.refuses = log.lies = True
    stored = owner.append(new("2", "3"))
    log.refuses = log.lies = False
    assert await stored == 3
    assert await owner.append(new("4")) == 4
    assert await bodies(journal) == ["1", "2", "3", "4"]


async def test_what_was_refused_is_not_taken_for_what_is_appended_when_the_end_is_known(
    journal: Journal,
) -> None:
    log = AskedLog(journal)
    owner = StreamOwner(log, "a")
    await owner.append(new("1"))
    log.refuses = True
    refused = owner.append(new("refused"))
    log.refuses = False
    behind: list[asyncio.Future[int]] = []
    log.asked = lambda: behind.append(owner.append(new("2")))
    with pytest.raises(JournalUnwritable):
        await refused
    assert [await one for one in behind] == [2]
    assert await bodies(journal) == ["1", "2"]


async def test_somebody_else_who_writes_is_noticed(journal: Journal) -> None:
    owner = StreamOwner(journal.log, "a")
    await owner.append(new("1"))
    await journal.log.append("a", new("foreign"), 1)
    with pytest.raises(WrongSequence):
        await owner.append(new("2"))
    assert await owner.append(new("2")) == 3


async def test_who_stops_waiting_stops_nothing(journal: Journal) -> None:
    owner = StreamOwner(journal.log, "a")
    owner.append(new("1")).cancel()
    assert await owner.append(new("2")) == 2
    assert await bodies(journal) == ["1", "2"]


async def test_in_a_closed_journal_everything_fails(engine: Engine) -> None:
    async with engine.open() as journal:
        known = StreamOwner(journal.log, "a")
        await known.append(new("1"))
        unknown = StreamOwner(journal.log, "b")
    for owner in (known, unknown):
        for _ in range(2):
            with pytest.raises(JournalClosed):
                await owner.append(new("x"))


async def test_a_stream_has_one_owner(journal: Journal) -> None:
    owners = Owners(journal.log)
    assert owners.of("a") is owners.of("a")
    assert owners.of("a") is not owners.of("b")
