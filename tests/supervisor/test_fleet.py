"""All are held when the service refuses: how long, where it does not say."""

from __future__ import annotations

import asyncio

from bridle.supervisor.fleet import FIRST_SECONDS, LAST_SECONDS, Fleet
from bridle.supervisor.sessions import Sessions
from bridle.views.stream import Limited


def pause_of(fleet: Fleet) -> float:
    """How long it holds all; then they may go on."""
    assert fleet.hold(Limited(at=0.0))
    assert fleet._timer
    seconds = fleet._timer.when() - asyncio.get_running_loop().time()
    fleet.release()
    return seconds


async def test_each_pause_is_twice_as_long_until_the_service_is_well() -> None:
    fleet = Fleet(Sessions.__new__(Sessions), 1, lambda: 0.0, lambda: None, lambda: False)
    fleet.open()
    pauses = [pause_of(fleet) for _ in range(8)]
    for number, pause in enumerate(pauses):
        wanted = min(FIRST_SECONDS * 2**number, LAST_SECONDS)
        assert wanted - 5 < pause <= wanted
    fleet.is_well()
    assert pause_of(fleet) <= FIRST_SECONDS
    fleet.close()
