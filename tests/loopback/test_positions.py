"""Where each agent is in what others did."""

from __future__ import annotations

import asyncio

import msgspec

from bridle.journal import memory_journal
from bridle.loopback.positions import MOST_SPANS, Positions, Span
from bridle.views.loopback import VERSION, LoopbackState


async def test_of_two_polls_at_a_time_the_slower_moves_nobody_back() -> None:
    async with memory_journal() as journal:
        positions = Positions(journal)
        for span in (Span("fast", 0, 5), Span("slow", 0, 3)):
            await positions.advance("child", "parent", span, LoopbackState())
        found = await positions.get("child", "parent")
        assert found.read == 5
        assert found.given("slow") == Span("slow", 0, 3)
        assert (await positions.get("child", "another")).read == 0


def states(*counts: int) -> list[LoopbackState]:
    return [LoopbackState(count=count) for count in counts]


async def test_the_state_that_is_kept_is_that_of_who_has_read_furthest() -> None:
    first, further, behind, same = states(1, 5, 3, 6)
    async with memory_journal() as journal:
        positions = Positions(journal)
        for end, state in ((1, first), (5, further), (3, behind)):
            await positions.advance("child", "parent", Span(f"to {end}", 0, end), state)
        found = await positions.get("child", "parent")
        assert (found.read, found.kept) == (5, further)
        await positions.advance("child", "parent", Span("again", 0, 5), same)
        found = await positions.get("child", "parent")
        assert (found.read, found.kept) == (5, same)
        assert msgspec.structs.replace(found, version=VERSION + 1).kept is None


async def test_each_agent_has_its_own_place_in_each_session() -> None:
    async with memory_journal() as journal:
        positions = Positions(journal)
        readers = [(s, c, n) for n, (s, c) in enumerate((s, c) for s in "ab" for c in "pq")]
        # All at a time: none of them may undo another's.
        await asyncio.gather(
            *(positions.advance(s, c, Span("k", 0, n), *states(n)) for s, c, n in readers)
        )
        for session, caller, number in readers:
            assert (await positions.get(session, caller)).read == number


async def test_what_the_latest_polls_gave_is_known_and_no_more() -> None:
    async with memory_journal() as journal:
        positions = Positions(journal)
        spans = [Span(f"k{n}", n, n + 1) for n in range(MOST_SPANS + 2)]
        for span in spans:
            await positions.advance("child", "parent", span, LoopbackState())
        found = await positions.get("child", "parent")
        assert found.spans == tuple(spans[-MOST_SPANS:])
        assert [found.given(span.key) for span in spans[:3]] == [None, None, spans[2]]
