"""A channel and its followers, in any order of appending, passing by, joining and taking."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.journal import Journal, Live, NewEvent, memory_journal
from bridle.journal.bell import Bell
from bridle.server.streams.channel import Channel, Sizes
from bridle.server.streams.follower import Follower
from bridle.server.streams.wants import Kinds, Want
from tests.levels import tries

SEQ = re.compile(rb"id: (\d+)\nevent: (.*)\ndata: .*\n\n")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 6)),
        st.tuples(st.just("pass by"), st.integers(1, 3)),
        st.tuples(st.just("join"), st.integers(0, 30)),
        st.tuples(st.just("take"), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.just(0)),
    ),
    max_size=40,
)


class Walk:
    """One stream, and all who follow it."""

    def __init__(self, journal: Journal, frames: int) -> None:
        self.log = journal.log
        self.channel = Channel(journal.log, "s", 0, Sizes(frames=frames))
        self.last = 0
        self.followers: list[tuple[Follower, int, list[bytes]]] = []

    async def step(self, what: str, number: int) -> None:
        match what:
            case "append":
                events = [NewEvent("x" if at % 2 else "y", b"{}") for at in range(number)]
                self.last = await self.log.append("s", events, self.last)
            case "pass by":
                body = b'{"after":%d}' % self.last
                self.log.publish("s", [Live("live", body)] * number)
            case "join":
                cursor = min(number, self.last)
                self.followers.append((Follower(self.channel, cursor, Want()), cursor, []))
            case "take" if self.followers:
                follower, _, taken = self.followers[number % len(self.followers)]
                taken.append(await follower.more())
            case _:
                await asyncio.sleep(0)

    async def drain(self) -> None:
        bell = Bell()
        self.channel.crowd.join(bell)
        while self.channel.ring.last < self.last:
            await bell.wait()
        for follower, _, taken in self.followers:
            while data := await follower.more():
                taken.append(data)

    def check(self) -> None:
        for _, cursor, taken in self.followers:
            at = cursor
            for block in b"".join(taken).split(b"\n\n")[:-1]:
                if found := re.match(rb"id: (\d+)\n", block):
                    assert int(found[1]) == at + 1
                    at += 1
                else:
                    passed = re.search(rb'"after":(\d+)', block)
                    assert passed
                    assert int(passed[1]) == at
            assert at == self.last


@given(STEPS, st.integers(1, 12))
@settings(max_examples=tries(30, 300), deadline=None)
def test_every_follower_gets_all_after_its_cursor_once_and_pieces_in_their_place(
    steps: list[tuple[str, int]], frames: int
) -> None:
    async def walk() -> None:
        async with memory_journal() as journal:
            walking = Walk(journal, frames)
            for what, number in steps:
                await walking.step(what, number)
            await walking.drain()
            walking.check()
            await walking.channel.aclose()

    asyncio.run(walk())


@given(STEPS, st.integers(1, 12), st.integers(1, 20))
@settings(max_examples=tries(20, 200), deadline=None)
def test_a_filter_and_a_limit_give_the_first_of_what_would_be_given(
    steps: list[tuple[str, int]], frames: int, most: int
) -> None:
    want = Want(Kinds(frozenset({"y"})))

    async def walk() -> Any:
        async with memory_journal() as journal:
            walking = Walk(journal, frames)
            for what, number in steps:
                await walking.step(what, number)
            await walking.drain()
            follower = Follower(walking.channel, 0, want, most)
            taken = []
            while data := await follower.more():
                taken.append(data)
            events = await journal.log.read("s", 0, 1000)
            await walking.channel.aclose()
            return b"".join(taken), [event.seq for event in events if event.kind == "y"]

    data, wanted = asyncio.run(walk())
    assert [int(seq) for seq, _ in SEQ.findall(data)] == wanted[:most]
