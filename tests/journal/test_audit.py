"""The audit chain: what it covers is noticed when it is changed, and where."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest
from msgspec.structs import replace

from bridle.journal import (
    BlobRef,
    Event,
    Journal,
    Kept,
    NewEvent,
    Seal,
    StreamInfo,
    Verdict,
    verify,
)
from bridle.journal.audit import KEEP, Verifier, hash_of, seal
from bridle.journal.events import GENESIS

from .engines import Engine
from .helpers import AT, all_of, fill, large, new, next_of, numbered

Edit = Callable[[list[Event]], list[Event]]


def seals_of(events: list[Event]) -> list[Seal]:
    return [event.seal for event in events if event.seal]


def is_a_chain(events: list[Event], start: bytes = GENESIS) -> bool:
    hashes = [start, *(link.hash for link in seals_of(events))]
    return [link.previous for link in seals_of(events)] == hashes[:-1]


# --- sealing, with every engine


async def test_sealed_events_are_a_chain_across_batches_and_openings(engine: Engine) -> None:
    async with engine.open() as journal:
        await journal.log.append("a", numbered(1, 3, is_sealed=True), 0)
        await journal.log.append("a", [*new("4"), *new("5", is_sealed=True)], 3)
        await fill(journal, "a", 7, after=5)
    async with engine.open() as journal:
        await journal.log.append("a", numbered(8, 9, is_sealed=True), 7)
        events = await journal.log.read("a")
        assert [event.seq for event in events if event.seal] == [1, 2, 3, 5, 8, 9]
        assert is_a_chain(events)
        assert (await journal.log.info("a")).last_seal == seals_of(events)[-1].hash
        assert await verify(journal, "a") == Verdict("a", 6)
        assert (await verify(journal, "a")).is_intact


async def test_appends_that_nobody_waits_for_are_one_chain(journal: Journal) -> None:
    futures = []
    for seq in range(1, 101):
        futures.append(journal.log.append("a", numbered(seq, seq, is_sealed=seq % 3 == 0), seq - 1))
        futures.append(journal.log.append("a", new("refused", is_sealed=True), seq + 7))
    await asyncio.gather(*futures, return_exceptions=True)
    events = await all_of(journal, "a")
    assert len(events) == 100
    assert is_a_chain(events)
    assert await verify(journal, "a") == Verdict("a", 33)


async def test_who_follows_gets_the_seals_too(journal: Journal) -> None:
    feed = journal.log.follow("a")
    reading = asyncio.create_task(next_of(feed))
    await journal.log.append("a", new("1", is_sealed=True), 0)
    assert (await reading).stored == await journal.log.read("a")


async def test_streams_have_chains_of_their_own(journal: Journal) -> None:
    await journal.log.append("a", new("same", is_sealed=True), 0)
    await journal.log.append("b", new("same", is_sealed=True), 0)
    (of_a,), (of_b,) = seals_of(await journal.log.read("a")), seals_of(await journal.log.read("b"))
    assert of_a.previous == of_b.previous == GENESIS
    assert of_a.hash != of_b.hash


async def test_a_stream_without_sealed_events_or_without_any_is_intact(journal: Journal) -> None:
    await fill(journal, "a", 3)
    assert await verify(journal, "a") == Verdict("a", 0)
    assert await verify(journal, "nobody") == Verdict("nobody", 0)


async def test_a_long_stream_is_verified_whole(journal: Journal) -> None:
    for start in range(0, 2000, 500):
        await journal.log.append("a", numbered(start + 1, start + 500, is_sealed=True), start)
    assert await verify(journal, "a") == Verdict("a", 2000)


async def test_a_sealed_event_may_have_a_blob(journal: Journal) -> None:
    batch = [
        NewEvent("k", large("one"), AT, is_sealed=True),
        NewEvent("k", large("two"), AT),
        NewEvent("k", b"three", AT, is_sealed=True),
    ]
    await journal.log.append("a", batch, 0)
    events = await journal.log.read("a")
    assert is_a_chain(events)
    assert await verify(journal, "a") == Verdict("a", 2)
    info = await journal.log.info("a")
    first = events[0]
    assert first.blob
    other = replace(first, blob=BlobRef("0" * 64, first.blob.size))
    assert seen(info, [other, *events[1:]]) == Verdict("a", 1, 1, "it was changed", KEEP)


@pytest.mark.parametrize("at", [0, 5, -3, 2**53, -0.0, 0.1 + 0.2, 1e300, 5e-324])
async def test_a_sealed_event_of_any_time_is_intact(engine: Engine, at: float) -> None:
    async with engine.open() as journal:
        await journal.log.append("a", [NewEvent("k", b"x", at, is_sealed=True)], 0)
        assert (await verify(journal, "a")).is_intact
    async with engine.open() as journal:
        assert (await verify(journal, "a")).is_intact


async def test_any_kind_and_body_can_be_sealed(engine: Engine) -> None:
    bodies = [b"", b"\n", bytes(range(256)), "ä😀".encode(), b"\xff\xfe"]
    async with engine.open() as journal:
        batch = [NewEvent(f"ä {body[:5]!r}", body, AT, is_sealed=True) for body in bodies]
        await journal.log.append("ä/😀", batch, 0)
    async with engine.open() as journal:
        assert await verify(journal, "ä/😀") == Verdict("ä/😀", len(bodies))


async def test_the_chain_goes_on_where_it_was_after_a_deletion(engine: Engine) -> None:
    async with engine.open() as journal:
        await journal.log.append("a", numbered(1, 3, is_sealed=True), 0)
        last = seals_of(await journal.log.read("a"))[-1].hash
        await journal.log.delete("a", 3)
        assert (await journal.log.info("a")).last_seal == last
        assert await verify(journal, "a") == Verdict("a", 0)
    async with engine.open() as journal:
        await journal.log.append("a", [*new("4"), *new("5", is_sealed=True)], 3)
        assert is_a_chain(await journal.log.read("a"), last)
        assert await verify(journal, "a") == Verdict("a", 1)


async def test_a_stream_that_grows_while_it_is_verified_is_intact(journal: Journal) -> None:
    async def grow() -> None:
        for start in range(500, 2500, 50):
            await journal.log.append("a", numbered(start + 1, start + 50, is_sealed=True), start)

    await journal.log.append("a", numbered(1, 500, is_sealed=True), 0)
    growing = asyncio.create_task(grow())
    while not growing.done():
        assert (await verify(journal, "a")).is_intact
        await asyncio.sleep(0)
    await growing
    assert await verify(journal, "a") == Verdict("a", 2500)


class DeletedMeanwhile:
    """A journal whose stream is deleted when somebody has begun to verify it, and then goes on."""

    def __init__(self, journal: Journal, further: list[NewEvent]) -> None:
        self._anchors = journal.anchors
        self._further = further
        self.blobs = journal.blobs
        self.log = journal.log
        self.anchors = self

    async def of(self, stream: str) -> Kept:
        kept = await self._anchors.of(stream)
        if kept.info.first_seq == 1:
            last = kept.info.last_seq
            await self.log.delete(stream, last)
            if self._further:
                await self.log.append(stream, self._further, last)
        return kept


@pytest.mark.parametrize("further", [[], numbered(4, 5, is_sealed=True)], ids=["ends", "goes on"])
async def test_a_stream_that_is_deleted_while_it_is_verified_is_not_called_broken(
    journal: Journal, further: list[NewEvent]
) -> None:
    await journal.log.append("a", numbered(1, 3, is_sealed=True), 0)
    verdict = await verify(cast("Journal", DeletedMeanwhile(journal, further)), "a")
    assert verdict == Verdict("a", len(further))


class WithoutPayloads:
    """A journal whose stream is deleted after its events were read and before their payloads."""

    def __init__(self, journal: Journal) -> None:
        self.log = journal.log
        self.anchors = journal.anchors
        self.blobs = self
        self._journal = journal

    async def get(self, blob: BlobRef) -> bytes:
        await self.log.delete("a", (await self.log.info("a")).last_seq)
        return await self._journal.blobs.get(blob)


async def test_a_payload_that_is_deleted_while_it_is_verified_is_not_called_lost(
    journal: Journal,
) -> None:
    await journal.log.append("a", [NewEvent("k", large(), AT, is_sealed=True)], 0)
    assert (await verify(cast("Journal", WithoutPayloads(journal)), "a")).is_intact


# --- what the verifier notices, with no engine at all


def a_stream(count: int = 6, *, unsealed: tuple[int, ...] = (3,)) -> tuple[StreamInfo, list[Event]]:
    previous, events = GENESIS, []
    for seq in range(1, count + 1):
        event = Event(seq, AT + seq, "said", str(seq).encode())
        if seq not in unsealed:
            event = seal("s", event, previous)
            assert event.seal
            previous = event.seal.hash
        events.append(event)
    return StreamInfo("s", 1, count, previous), events


def seen(info: StreamInfo, events: list[Event]) -> Verdict:
    verifier = Verifier(info)
    for event in events:
        verifier.see(event)
    return verifier.verdict()


def test_a_stream_as_it_was_is_intact() -> None:
    info, events = a_stream()
    assert seen(info, events) == Verdict("s", 5)
    assert seen(info, events).is_intact


def changed(place: int, **values: object) -> Edit:
    return lambda events: [replace(e, **values) if e.seq == place else e for e in events]


def resealed(seq: int, **values: object) -> Edit:
    """As one who knows how it is done would change one event, and not those after it."""

    def edit(events: list[Event]) -> list[Event]:
        event = replace(events[seq - 1], **values)
        assert event.seal
        previous = event.seal.previous
        edited = replace(event, seal=Seal(previous, hash_of("s", event, previous)))
        return [*events[: seq - 1], edited, *events[seq:]]

    return edit


def without(*gone: int) -> Edit:
    return lambda events: [event for event in events if event.seq not in gone]


def renumbered(events: list[Event]) -> list[Event]:
    """The second is gone, and those after it have moved up."""
    kept = without(2)(events)
    return [replace(event, seq=seq) for seq, event in enumerate(kept, 1)]


def swapped(events: list[Event]) -> list[Event]:
    one, two, *rest = events
    return [replace(two, seq=1), replace(one, seq=2), *rest]


def resealed_third(events: list[Event]) -> list[Event]:
    before = events[1].seal
    assert before
    return [*events[:2], seal("s", events[2], before.hash), *events[3:]]


EDITS: dict[str, tuple[Edit, int]] = {
    "body": (changed(2, body=b"!"), 2),
    "body of the first": (changed(1, body=b"!"), 1),
    "body of the last": (changed(6, body=b"!"), 6),
    "kind": (changed(2, kind="thought"), 2),
    "time": (changed(2, at=AT), 2),
    "number": (changed(2, seq=7), 2),
    "number, twice": (changed(2, seq=1), 2),
    "a blob added": (changed(2, blob=BlobRef("0" * 64, 1)), 2),
    "hash": (changed(2, seal=Seal(GENESIS, bytes(31) + b"!")), 2),
    "link to the one before": (changed(4, seal=Seal(GENESIS, GENESIS)), 4),
    "seal removed": (changed(2, seal=None), 4),
    "seal of the last removed": (changed(6, seal=None), 6),
    "an unsealed one sealed": (resealed_third, 4),
    "one that was sealed again": (resealed(2, body=b"!"), 4),
    "the last, sealed again": (resealed(6, body=b"!"), 6),
    "one removed": (without(2), 2),
    "an unsealed one removed": (without(3), 3),
    "the first removed": (without(1), 1),
    "one removed and the others renumbered": (renumbered, 3),
    "two swapped": (swapped, 1),
    "two in the wrong order": (lambda e: [e[1], e[0], *e[2:]], 1),
    "one twice": (lambda e: [*e[:2], e[1], *e[2:]], 3),
    "the end cut off": (without(6), 6),
    "a long end cut off": (without(4, 5, 6), 4),
    "all of it": (without(1, 2, 3, 4, 5, 6), 1),
    "an event of another stream": (lambda e: [e[0], seal("t", e[1], GENESIS), *e[2:]], 2),
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edited_stream_is_broken_where_it_was_edited(what: str) -> None:
    edit, where = EDITS[what]
    info, events = a_stream()
    verdict = seen(info, edit(events))
    assert not verdict.is_intact
    assert (verdict.broken_at, verdict.stream) == (where, "s")
    assert verdict.reason


def test_one_more_event_at_the_end_is_noticed() -> None:
    info, events = a_stream()
    more = seal("s", Event(7, AT, "said", b"7"), info.last_seal)
    assert not seen(info, [*events, more]).is_intact


def test_the_count_of_sealed_events_ends_where_it_breaks() -> None:
    info, events = a_stream()
    assert seen(info, changed(4, body=b"!")(events)).sealed == 3


def test_what_is_not_sealed_is_not_covered() -> None:
    info, events = a_stream()
    assert seen(info, changed(3, body=b"!")(events)).is_intact


def test_a_chain_whose_beginning_was_deleted_is_checked_from_where_it_begins() -> None:
    info, events = a_stream()
    before = events[1].seal  # the third is not sealed
    assert before
    rest = replace(info, first_seq=4, deleted_seal=before.hash)
    assert seen(rest, events[3:]) == Verdict("s", 3)
    assert seen(replace(info, first_seq=4), events[3:]).broken_at == 4
    assert seen(rest, changed(5, body=b"!")(events)[3:]).broken_at == 5
    assert seen(rest, events[3:5]).broken_at == 6
    assert seen(rest, events[4:]).broken_at == 4


@pytest.mark.parametrize("unsealed", [(6,), (4, 5, 6)])
def test_an_end_of_unsealed_events_is_missed_too(unsealed: tuple[int, ...]) -> None:
    info, events = a_stream(unsealed=unsealed)
    assert seen(info, events).is_intact
    assert seen(info, events[:5]).broken_at == 6


def test_a_hash_tells_where_one_fact_ends_and_the_next_begins() -> None:
    def one(stream: str, kind: str, body: bytes) -> bytes:
        return hash_of(stream, Event(1, AT, kind, body), GENESIS)

    hashes = {
        one("s", "k", b"x"),
        one("sk", "", b"x"),
        one("s", "kx", b""),
        one("s", 'k"', b"x"),
        one("s", "k", b"\nx"),
        one("s", "k", b"x\n"),
    }
    assert len(hashes) == 6
