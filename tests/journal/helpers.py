"""Short words for what the tests of the journal say often. Nothing here waits without a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from bridle.journal import Batch, Event, Journal, Live, NewEvent
from bridle.journal.contract import Feed
from bridle.journal.events import MAX_BATCH_EVENTS, MAX_BODY

#: How long anything in these tests may take, in seconds.
LIMIT = 60
AT = 1_700_000_000.25


def new(*bodies: str, kind: str = "said", is_sealed: bool = False) -> list[NewEvent]:
    return [NewEvent(kind, body.encode(), AT, is_sealed) for body in bodies]


def numbered(first: int, last: int, *, is_sealed: bool = False) -> list[NewEvent]:
    """Events that say which number they should get."""
    return new(*(str(seq) for seq in range(first, last + 1)), is_sealed=is_sealed)


def large(seed: str = "large", size: int = MAX_BODY + 1) -> bytes:
    """A payload that goes to a blob, unlike that of any other seed."""
    return (seed.encode() + bytes(range(256)) * (size // 256 + 1))[:size]


async def fill(journal: Journal, stream: str, last: int, after: int = 0) -> None:
    """Append numbered events up to this one, without waiting in between."""
    appended = [
        journal.log.append(stream, numbered(at + 1, min(at + MAX_BATCH_EVENTS, last)), at)
        for at in range(after, last, MAX_BATCH_EVENTS)
    ]
    async with asyncio.timeout(LIMIT):
        await asyncio.gather(*appended)


async def fill_up(journal: Journal, stream: str, size: int, after: int = 0) -> int:
    """Append large events, at least so many bytes; gives the number of the last one."""
    step = [NewEvent("k", bytes(MAX_BODY // 16), AT)] * 64
    appended = [
        journal.log.append(stream, step, after + start * len(step))
        for start in range(size // (len(step) * MAX_BODY // 16) + 1)
    ]
    async with asyncio.timeout(LIMIT):
        return (await asyncio.gather(*appended))[-1]


async def all_of(journal: Journal, stream: str, after: int = 0, page: int = 1000) -> list[Event]:
    found: list[Event] = []
    while events := await journal.log.read(stream, after, page):
        found += events
        after = events[-1].seq
    return found


def seqs(events: Sequence[Event]) -> list[int]:
    return [event.seq for event in events]


def said(events: Sequence[Event | Live]) -> list[str]:
    return [event.body.decode() for event in events]


async def next_of(feed: Feed) -> Batch:
    async with asyncio.timeout(LIMIT):
        return await anext(feed)


async def stored(feed: Feed, count: int) -> list[Event]:
    """The feed's next stored events, so many or the rest of a batch more."""
    found: list[Event] = []
    while len(found) < count:
        found += (await next_of(feed)).stored
    return found


async def until(feed: Feed, seq: int) -> list[Event]:
    """The feed's stored events up to this one."""
    found: list[Event] = []
    while not found or found[-1].seq < seq:
        found += (await next_of(feed)).stored
    return found


async def go_live(journal: Journal, feed: Feed, stream: str) -> list[Event]:
    """Read on until the feed is told what happens now; gives the stored events on the way.

    Who is behind may lose live events: they are sent until one arrives, and all of them taken.
    """
    found: list[Event] = []
    sent, heard = 0, ""
    async with asyncio.timeout(LIMIT):
        reading = asyncio.create_task(next_of(feed))
        while not heard:
            sent += 1
            journal.log.publish(stream, [Live("probe", str(sent).encode())])
            await asyncio.sleep(0)
            if reading.done():
                heard = _heard(reading.result(), stream, found)
                if not heard:
                    reading = asyncio.create_task(next_of(feed))
        while heard != str(sent):
            heard = _heard(await anext(feed), stream, found) or heard
    return found


def _heard(batch: Batch, stream: str, found: list[Event]) -> str:
    found += batch.stored
    last = batch.events[-1]
    return last.body.decode() if batch.stream == stream and isinstance(last, Live) else ""


async def until_quiet(feed: Feed) -> None:
    """Take what was sent to find out whether others are live."""
    with suppress(TimeoutError):
        while True:
            async with asyncio.timeout(0):
                await anext(feed)
