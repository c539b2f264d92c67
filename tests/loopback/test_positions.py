"""Where each agent is in what others did."""

from __future__ import annotations

from bridle.journal import memory_journal
from bridle.loopback.positions import Positions, Span
from bridle.views.loopback import LoopbackState


async def test_of_two_polls_at_a_time_the_slower_moves_nobody_back() -> None:
    async with memory_journal() as journal:
        positions = Positions(journal)
        for span in (Span("fast", 0, 5), Span("slow", 0, 3)):
            await positions.advance("child", "parent", span, LoopbackState())
        found = await positions.get("child", "parent")
        assert found.read == 5
        assert found.given("slow") == Span("slow", 0, 3)
        assert (await positions.get("child", "another")).read == 0
