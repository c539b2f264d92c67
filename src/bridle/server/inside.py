"""Whether we ourselves run inside of an agent of the home that we are to open for a person.

An agent that starts the server of its own home, or opens the home without one, would have a
person's rights there. Owns that refusal, for those who open a home. An agent of another home is
none of its business: whoever tries Bridle out inside of an agent has a home of their own.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ..supervisor import Supervisor, open_supervisor
from .errors import InsideAgent
from .peers import Untold, launches_above


async def launches_outside(home: Path) -> frozenset[str]:
    """The launches that we belong to, none of which has a spool in this home. To be asked before
    the home is opened. InsideAgent, also where that can't be told."""
    found = await launches_above()
    if isinstance(found, Untold):
        raise InsideAgent(f"it can't be told whether this is an agent's process: {found.why}")
    _refuse(home, found & _spools(home))
    return found


async def check_stored(home: Path, launches: frozenset[str]) -> None:
    """`check_unknown` of a home that nobody has opened yet. One that takes up agents must not be
    one of theirs: it would end itself with them."""
    if launches:
        async with open_supervisor(home, is_asleep=True) as supervisor:
            check_unknown(home, launches, supervisor)


def check_unknown(home: Path, launches: frozenset[str], supervisor: Supervisor) -> None:
    """The same by what is stored: a spool can be taken away."""
    known = {one.launch.id for one in supervisor.list() if one.launch}
    _refuse(home, launches & known)


def _refuse(home: Path, launches: frozenset[str]) -> None:
    if launches:
        raise InsideAgent(f"this is an agent's process (launch {min(launches)} of {home})")


def _spools(home: Path) -> frozenset[str]:
    with suppress(OSError):  # what can't be read can't be opened either, and that says why
        return frozenset(os.listdir(home / "spool"))  # noqa: PTH208 - names are all it takes
    return frozenset()
