"""The processes of a launch, wherever they went: found by parentage and by a marker.

A CLI runs its tools in sessions of their own, and `nohup` or a dead parent leaves orphans; but what
is started inherits the environment, and with it the marker. Looking at every process of the machine
costs some 10 ms, so stops that run at the same time share one look.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING

from msgspec import Struct

from .arguments import MARKER

if TYPE_CHECKING:
    import psutil


class _Seen(Struct, frozen=True):
    process: psutil.Process
    parent: int
    marker: str | None


class _Census(Struct, frozen=True):
    """All processes that we may look at, as they were from `taken` on."""

    taken: float
    rows: tuple[_Seen, ...]


_newest = _Census(float("-inf"), ())


def find_tree(pid: int, marker: str, since: float) -> list[psutil.Process]:
    """What is alive of a launch: its root, all that carry its marker, and all below them.

    `since`: how old a look at the machine may be (`time.monotonic`).
    """
    rows = _census(since).rows
    # The root is ours until it is reaped: after that the number may be anybody's.
    found = {
        row.process.pid: row.process
        for row in rows
        if row.marker == marker or (row.process.pid == pid and row.parent == os.getpid())
    }
    children: dict[int, list[psutil.Process]] = {}
    for row in rows:
        children.setdefault(row.parent, []).append(row.process)
    waiting = list(found)
    while waiting:
        for process in children.get(waiting.pop(), ()):
            if process.pid not in found:
                found[process.pid] = process
                waiting.append(process.pid)
    return list(found.values())


def signal_all(tree: list[psutil.Process], number: int) -> None:
    """psutil looks at the start time first, so that a reused pid is left alone."""
    import psutil

    for process in tree:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)


def is_alive(process: psutil.Process) -> bool:
    """A zombie is dead: it only waits to be reaped."""
    import psutil

    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _census(since: float) -> _Census:
    global _newest  # noqa: PLW0603 - one look at the machine serves every session of the process
    if _newest.taken < since:
        # Imported here: it takes longer than to start a session.
        import psutil

        taken = time.monotonic()
        rows = (_look(process) for process in psutil.process_iter())
        _newest = _Census(taken, tuple(row for row in rows if row))
    return _newest


def _look(process: psutil.Process) -> _Seen | None:
    import psutil

    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        parent = process.ppid()
    except psutil.Error:
        return None
    try:
        return _Seen(process, parent, process.environ().get(MARKER))
    except psutil.Error:
        return _Seen(process, parent, None)
