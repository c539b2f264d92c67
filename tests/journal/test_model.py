"""Any interleaving of what can be done with a log, beside a model that is too simple to be wrong.

The model knows at the call what will become of it: that is what the order of a stream promises.
"""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from bridle.errors import WrongSequence
from bridle.journal import Batch, Durability, Event, Journal, Live, NewEvent, tails, verify
from bridle.journal.contract import Feed
from bridle.journal.events import HEAD_SIZE, MAX_BODY
from tests.levels import tries

from .engines import ENGINES, Engine
from .helpers import AT, LIMIT, all_of, large, seqs

EXAMPLES = tries(30, 300, 3_000)
STREAMS = ["a", "b"]


# --- what may be done


class Append(Struct, frozen=True):
    stream: str
    count: int
    #: How far the expectation is from the truth: mostly not at all.
    error: int
    is_sealed: bool
    #: The seed of a large payload, for the last event: a few, so that streams share them.
    blob: str | None
    durability: Durability


class Publish(Struct, frozen=True):
    stream: str


class Read(Struct, frozen=True):
    stream: str
    after: int
    limit: int


class Follow(Struct, frozen=True):
    streams: list[str]
    after: int


class Take(Struct, frozen=True):
    feed: int
    count: int


class Listen(Struct, frozen=True):
    """Let a reader of it wait, for as long as other things are done."""

    feed: int
    turns: int


class Cancel(Struct, frozen=True):
    feed: int


class Remove(Struct, frozen=True):
    feed: int
    stream: str


class Close(Struct, frozen=True):
    feed: int


class Delete(Struct, frozen=True):
    stream: str
    error: int


class Turns(Struct, frozen=True):
    count: int


class Settle(Struct, frozen=True):
    pass


class Reopen(Struct, frozen=True):
    pass


WithFeed = Take | Listen | Cancel | Remove | Close
Step = Append | Publish | Read | Follow | WithFeed | Delete | Turns | Settle | Reopen

streams = st.sampled_from(STREAMS)
feeds = st.integers(0, 3)
errors = st.sampled_from([0, 0, 0, 0, 0, -1, 1, 3])
appends = st.builds(
    Append,
    streams,
    st.sampled_from([1, 1, 2, 5, 40]),
    errors,
    st.booleans(),
    st.sampled_from([None, None, None, None, None, None, "x", "y"]),
    st.sampled_from([*[Durability.PROCESS] * 5, Durability.POWER]),
)
publishes = st.builds(Publish, streams)
follows = st.builds(
    Follow,
    st.lists(streams, min_size=1, max_size=2, unique=True),
    st.sampled_from([0, 0, 0, 1, 3, 10, 50]),
)
#: How often each is done: what is told live needs followers that are left alone for a while.
weights: list[tuple[int, st.SearchStrategy[Step]]] = [
    (12, appends),
    (6, publishes),
    (4, follows),
    (5, st.builds(Take, feeds, st.integers(1, 4))),
    (8, st.builds(Listen, feeds, st.integers(0, 5))),
    (4, st.builds(Turns, st.integers(1, 6))),
    (2, st.builds(Settle)),
    (2, st.builds(Cancel, feeds)),
    (2, st.builds(Read, streams, st.integers(0, 60), st.integers(1, 60))),
    (1, st.builds(Remove, feeds, streams)),
    (1, st.builds(Close, feeds)),
    (1, st.builds(Delete, streams, errors)),
    (1, st.builds(Reopen)),
]
# Not `one_of`: that one takes each once, however often it is given.
steps = st.sampled_from([kind for weight, kind in weights for _ in range(weight)]).flatmap(
    lambda kind: kind
)
#: Hypothesis alone would make most of them short, and a long one that fails becomes short anyway.
plays = st.one_of(st.lists(steps, max_size=12), st.lists(steps, min_size=40, max_size=80))
#: A page, and what is kept for those who follow: as they are, and so small that all fall behind.
bounds = st.sampled_from([(tails.PAGE, tails.MAX_TOLD_BYTES), (7, 12 * tails.OVERHEAD)])


# --- the model


class Stream:
    """What a stream has, or will have when all that was asked for is done."""

    def __init__(self) -> None:
        self.events: list[tuple[NewEvent, int]] = []  # with the number of the last before its batch
        self.floor = 0
        self.published = 0

    @property
    def last(self) -> int:
        return len(self.events)

    def check(self, event: Event) -> None:
        new, _ = self.events[event.seq - 1]
        assert (event.at, event.kind) == (new.at, new.kind)
        assert (event.seal is not None) == new.is_sealed
        if len(new.body) > MAX_BODY:
            assert event.blob
            assert event.blob.size == len(new.body)
            assert event.body == new.body[:HEAD_SIZE]
        else:
            assert (event.blob, event.body) == (None, new.body)


class Follower:
    """A feed with one reader, and what it has given."""

    def __init__(self, feed: Feed, known: dict[str, Stream], places: list[str], after: int) -> None:
        self._feed = feed
        self._known = known
        self._after = after
        self._taken = dict.fromkeys(places, after)
        self._heard = dict.fromkeys(places, 0)
        self._reading: asyncio.Task[Batch | None] | None = None

    def is_due(self) -> bool:
        """Whether there is, or will be, something stored that it must give."""
        return any(
            self._known[name].last > max(taken, self._known[name].floor)
            for name, taken in self._taken.items()
        )

    def listen(self) -> None:
        if self._reading is None:
            self._reading = asyncio.create_task(self._next())

    async def take(self) -> None:
        self.listen()
        assert self._reading
        async with asyncio.timeout(LIMIT):
            await asyncio.wait([self._reading])
        self._check_what_came()

    async def cancel(self) -> None:
        self._check_what_came()
        if self._reading:
            self._reading.cancel()
            await asyncio.wait([self._reading])
            self._reading = None

    def remove(self, stream: str) -> None:
        self._check_what_came()
        self._feed.remove(stream)
        self._taken.pop(stream, None)

    async def close(self) -> None:
        self._check_what_came()
        self._feed.close()
        await self.has_ended()

    async def has_ended(self) -> None:
        self._check_what_came()
        self.listen()
        assert self._reading
        async with asyncio.timeout(LIMIT):
            assert await self._reading is None

    async def _next(self) -> Batch | None:
        return await anext(aiter(self._feed), None)

    def _check_what_came(self) -> None:
        if self._reading is None or not self._reading.done():
            return
        batch, self._reading = self._reading.result(), None
        if batch is None:
            return
        assert batch.stream in self._taken, "it is not followed, or not any more"
        assert batch.events
        if batch.stored:
            assert batch.stored == batch.events, "stored and live ones in one batch"
            self._check_stored(batch)
        else:
            self._check_live(batch)

    def _check_stored(self, batch: Batch) -> None:
        stream = self._known[batch.stream]
        for event in batch.stored:
            self._check_gap(batch.stream, event.seq - 1)
            assert event.seq > self._taken[batch.stream], "given twice, or never asked for"
            stream.check(event)
            self._taken[batch.stream] = event.seq

    def _check_live(self, batch: Batch) -> None:
        for event in batch.events:
            assert isinstance(event, Live)
            number, last = map(int, event.body.split())
            assert number > self._heard[batch.stream], "twice or out of order"
            self._heard[batch.stream] = number
            self._check_gap(batch.stream, last)
            assert self._taken[batch.stream] <= max(last, self._after), "older than what was given"

    def _check_gap(self, name: str, upto: int) -> None:
        """All up to there was given, or is deleted."""
        assert upto <= max(self._taken[name], self._known[name].floor), "an event was left out"


class Play:
    """Does each step with the journal and with the model."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known = {name: Stream() for name in STREAMS}
        self._asked: dict[str, list[tuple[asyncio.Future[int], int | None, int]]] = {}
        self._followers: list[Follower] = []
        self._opened: AbstractAsyncContextManager[Journal] | None = None

    async def open(self) -> None:
        self._opened = self._engine.open()
        self._journal = await self._opened.__aenter__()
        self._log = self._journal.log

    async def close(self) -> None:
        if self._opened is None:
            return
        opened, self._opened = self._opened, None
        await opened.__aexit__(None, None, None)

    async def run(self, steps: list[Step]) -> None:
        await self.open()
        try:
            for step in steps:
                await self._do(step)
            await self._check_everything()
            await self._reopen()
            await self._check_everything()
        finally:
            await self.close()  # and with it all that reads

    async def _do(self, step: Step) -> None:
        match step:
            case Append():
                self._append(step)
            case Publish(name):
                self._publish(name)
            case Read(name, after, limit):
                await self._read(name, after, limit)
            case Follow(names, after):
                self._follow(names, after)
            case Delete(name, error):
                await self._delete(name, error)
            case Take() | Listen() | Cancel() | Remove() | Close():
                await self._with_a_feed(step)
            case Turns(count):
                await _turns(count)
            case Settle():
                await self._settle(*STREAMS)
            case Reopen():
                await self._reopen()

    async def _with_a_feed(self, step: WithFeed) -> None:
        if not self._followers:
            return
        follower = self._followers[step.feed % len(self._followers)]
        match step:
            case Take(_, count):
                while count and follower.is_due():
                    await follower.take()
                    count -= 1
            case Listen(_, turns):
                follower.listen()
                await _turns(turns)
            case Cancel():
                await follower.cancel()
            case Remove(_, name):
                follower.remove(name)
            case Close():
                await follower.close()
                self._followers.remove(follower)

    def _append(self, step: Append) -> None:
        stream = self._known[step.stream]
        expected = max(0, stream.last + step.error)
        batch = [
            NewEvent("k", f"{step.stream} {seq}".encode(), AT + seq, step.is_sealed)
            for seq in range(expected + 1, expected + step.count + 1)
        ]
        if step.blob:
            batch[-1] = NewEvent("large", large(step.blob), AT, step.is_sealed)
        future = self._log.append(step.stream, batch, expected, step.durability)
        is_right = expected == stream.last
        result = expected + step.count if is_right else None
        self._asked.setdefault(step.stream, []).append((future, result, stream.last))
        if is_right:
            stream.events += [(event, expected) for event in batch]

    def _publish(self, name: str) -> None:
        stream = self._known[name]
        stream.published += 1
        self._log.publish(name, [Live("k", f"{stream.published} {stream.last}".encode())])

    async def _read(self, name: str, after: int, limit: int) -> None:
        is_settled = all(future.done() for future, _, _ in self._asked.get(name, []))
        found = await self._log.read(name, after, limit)
        stream = self._known[name]
        start = max(after, stream.floor)
        assert len(found) <= limit
        assert seqs(found) == list(range(start + 1, start + 1 + len(found)))
        for event in found:
            stream.check(event)
        if is_settled:
            assert found or stream.last <= start
        elif found and len(found) < limit:
            befores = [before for _, before in stream.events] + [stream.last]
            assert found[-1].seq in befores, "a part of a batch was seen"

    def _follow(self, names: list[str], after: int) -> None:
        feed = self._log.follow(names[0], after)
        for name in names[1:]:
            feed.add(name, after)
        self._followers.append(Follower(feed, self._known, names, after))

    async def _delete(self, name: str, error: int) -> None:
        await self._settle(name)
        stream = self._known[name]
        expected = max(0, stream.last + error)
        if expected == stream.last:
            await self._log.delete(name, expected)
            stream.floor = stream.last
            return
        with pytest.raises(WrongSequence) as caught:
            await self._log.delete(name, expected)
        assert (caught.value.expected, caught.value.actual) == (expected, stream.last)

    async def _settle(self, *names: str) -> None:
        for name in names:
            asked = self._asked.pop(name, [])
            async with asyncio.timeout(LIMIT):
                await asyncio.gather(*(future for future, _, _ in asked), return_exceptions=True)
            self._check_results(asked)

    def _check_results(self, asked: list[tuple[asyncio.Future[int], int | None, int]]) -> None:
        for future, result, actual in asked:
            if result is None:
                error = future.exception()
                assert isinstance(error, WrongSequence)
                assert error.actual == actual
            else:
                assert future.result() == result

    async def _reopen(self) -> None:
        await self.close()
        for asked in self._asked.values():
            self._check_results(asked)  # all of it was stored, or refused, before the end
        self._asked.clear()
        for follower in self._followers:
            await follower.has_ended()
        self._followers.clear()
        await self.open()

    async def _check_everything(self) -> None:
        await self._settle(*STREAMS)
        for follower in self._followers:
            while follower.is_due():
                await follower.take()
        for name, stream in self._known.items():
            await self._check_stream(name, stream)
        there = [name for name, stream in self._known.items() if stream.last > stream.floor]
        assert [info.name for info in await self._log.streams()] == there

    async def _check_stream(self, name: str, stream: Stream) -> None:
        info = await self._log.info(name)
        assert (info.first_seq, info.last_seq) == (stream.floor + 1, stream.last)
        found = await all_of(self._journal, name)
        assert seqs(found) == list(range(stream.floor + 1, stream.last + 1))
        for event in found:
            stream.check(event)
            assert await self._journal.payload(event) == stream.events[event.seq - 1][0].body
        verdict = await verify(self._journal, name)
        assert verdict.is_intact
        assert verdict.sealed == sum(event.seal is not None for event in found)


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("engine_name", sorted(ENGINES))
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(steps=plays, bounds=bounds)
def test_any_interleaving_does_what_the_model_does(
    engine_name: str, steps: list[Step], bounds: tuple[int, int]
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tails, "PAGE", bounds[0])
        patch.setattr(tails, "MAX_TOLD_BYTES", bounds[1])
        engine = ENGINES[engine_name](Path(folder) / "home")
        asyncio.run(Play(engine).run(steps))
