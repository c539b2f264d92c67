"""What a pen promises those who wait for it."""

from __future__ import annotations

from bridle.journal import NewEvent, memory_journal
from bridle.journal.owner import StreamOwner
from bridle.supervisor.pen import Pen


async def test_it_is_not_quiet_while_somebody_is_still_to_be_told() -> None:
    """What is saved when it is quiet must have in it all that is stored."""
    async with memory_journal() as journal:
        pen, seen = Pen(StreamOwner(journal.log, "s")), []
        event = NewEvent("k", b"{}")
        pen.write([event])
        for _ in range(3):  # these go together, in the next batch
            pen.write([event], lambda: seen.append((pen.last_seq, pen.is_quiet)))
        await pen.idle()
    assert seen == [(4, False), (4, False), (4, True)]
