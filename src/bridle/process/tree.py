"""The processes of a launch, wherever they went: found by parentage and by a marker.

A CLI runs its tools in sessions of their own, and `nohup` or a dead parent leaves orphans; but what
is started inherits the environment, and with it the marker.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable

from .census import Seen, census

#: A tree that still grows after so many looks is not caught by looking.
FREEZES = 20


class Tree:
    """Remembers what it has found, so that nothing can hide from it later."""

    def __init__(self, pid: int, launch: str) -> None:
        self._pid = pid
        self._launch = launch
        self._known: list[Seen] = []

    def look(self, since: float | None = None) -> list[Seen]:
        """All that is alive now, or not before `since`."""
        start = time.monotonic() if since is None else since
        found = find_tree(self._pid, self._launch, start, self._known)
        self._known = [seen for seen in found if seen.is_alive()]
        return self._known

    def alive(self) -> list[Seen]:
        """What is alive of that which is known: much cheaper than a look."""
        self._known = [seen for seen in self._known if seen.is_alive()]
        return self._known

    def is_gone(self) -> bool:
        return not self.alive() and not self.look()

    def signal(self, number: int) -> None:
        """To all of them at once: what can't fork can't leave a child that nobody finds."""
        frozen: dict[tuple[int, float], Seen] = {}
        for _ in range(FREEZES):
            found = {(seen.pid, seen.born): seen for seen in self.look()}
            new = found.keys() - frozen.keys()
            if not new:
                break
            _signal((found[key] for key in new), signal.SIGSTOP)
            frozen |= found
        _signal(frozen.values(), number)
        if number != signal.SIGKILL:
            _signal(frozen.values(), signal.SIGCONT)


def find_tree(pid: int, launch: str, since: float, known: Iterable[Seen] = ()) -> list[Seen]:
    """What is alive of a launch: its root, all that carry its marker, and all below them.

    `since`: how old a look at the machine may be (`time.monotonic`). `known` belong to it too.
    """
    rows = census(since)
    births = {seen.pid: seen.born for seen in known}
    # The root is ours until it is reaped: after that the number may be anybody's.
    found = {
        row.pid: row
        for row in rows
        if launch in row.launches
        or births.get(row.pid) == row.born
        or (row.pid == pid and row.parent == os.getpid())
    }
    children: dict[int, list[Seen]] = {}
    for row in rows:
        children.setdefault(row.parent, []).append(row)
    waiting = list(found)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child.pid not in found:
                found[child.pid] = child
                waiting.append(child.pid)
    return list(found.values())


def _signal(processes: Iterable[Seen], number: int) -> None:
    for process in processes:
        process.signal(number)
