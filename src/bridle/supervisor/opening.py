"""Opening a home: its journal, its approvals, the watch on its spools, and then its agents."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from ..approvals import open_approvals
from ..errors import HomeInUse, JournalInUse
from ..home.private import private_folder
from ..journal import Journal, open_journal
from ..journal.owner import Owners
from ..process.transport import StopLimits
from ..process.wake import Wakes, open_wakes
from .lineage import LineageLimits
from .means import HooksOf, LaunchTools, Means, ToolsOf
from .supervisor import Supervisor

#: How many agents run at a time.
SIZE = 20
#: With less than this on the disk, agents are paused.
FREE_BYTES = 256 * 1024 * 1024
#: So many seconds an agent is asked about those below it, before the next is.
ESCALATE_AFTER = 120.0


def default_home() -> Path:
    """$BRIDLE_HOME, or ~/.bridle."""
    return Path(os.environ.get("BRIDLE_HOME") or Path.home() / ".bridle")


@asynccontextmanager
async def open_supervisor(
    home: str | os.PathLike[str] | None = None,
    *,
    size: int = SIZE,
    hooks: HooksOf | None = None,
    tools: ToolsOf | None = None,
    loopback: Callable[[Supervisor], LaunchTools] | None = None,
    lineage: LineageLimits | None = None,
    expires_in: float | None = None,
    escalate_after: float = ESCALATE_AFTER,
    free_bytes: int = FREE_BYTES,
    anchor_command: str | None = None,
    stop_limits: StopLimits | None = None,
    environ: Mapping[str, str] | None = None,
    addresses: tuple[str, ...] = (),
    now: Callable[[], float] = time.time,
    is_asleep: bool = False,
) -> AsyncIterator[Supervisor]:
    """Look after the agents of a home. Those that run are found again, and run on afterwards.

    At most `size` run at a time. `hooks` and `tools` give each session its own: the same ones after
    a restart; `loopback` gives those by which agents run others. Below `free_bytes` on the disk
    agents are paused; `anchor_command` keeps anchors elsewhere. For `escalate_after` seconds an
    agent decides for those below it (0: people do). A person is asked before an agent speaks to one
    of the `addresses`, our own. HomeInUse if another has the home, HomeNotPrivate if not our own.

    One that is asleep only reads what is stored; what would need more raises Asleep.
    """
    folder = private_folder(Path(home) if home is not None else default_home())
    async with _opened(folder, anchor_command) as journal:
        owners = Owners(journal.log)
        (folder / "spool").mkdir(mode=0o700, exist_ok=True)
        opening = open_approvals(journal, owners=owners, expires_in=expires_in, is_asleep=is_asleep)
        async with opening as approvals, _wakes(folder / "spool") as wakes:
            means = Means(folder, journal, owners, approvals, wakes, now, addresses, escalate_after)
            _give(means, hooks=hooks, tools=tools, stop=stop_limits, environ=environ)
            supervisor = Supervisor(means, size, lineage or LineageLimits(), free_bytes)
            means.loopback = loopback(supervisor) if loopback else means.loopback
            async with contextlib.aclosing(supervisor):
                await (supervisor.look() if is_asleep else supervisor.open())
                yield supervisor


def _give(means: Means, **given: object) -> None:
    """What was given takes the place of what is had in any case."""
    for name, value in given.items():
        if value is not None:
            setattr(means, name, dict(value) if isinstance(value, Mapping) else value)
    means.secret_values.inherit(means.environ)


@asynccontextmanager
async def _opened(folder: Path, anchor_command: str | None) -> AsyncIterator[Journal]:
    opening = open_journal(folder, anchor_command=anchor_command)
    try:
        journal = await opening.__aenter__()
    except JournalInUse as error:
        raise HomeInUse(str(folder), error.pid) from None
    try:
        yield journal
    finally:
        await opening.__aexit__(None, None, None)


@asynccontextmanager
async def _wakes(folder: Path) -> AsyncIterator[Wakes]:
    wakes = await open_wakes(folder)
    try:
        yield wakes
    finally:
        wakes.close()
