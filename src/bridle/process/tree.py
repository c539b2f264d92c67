"""The processes of a launch, wherever they went: found by parentage and by a marker.

A CLI runs its tools in sessions of their own, and `nohup` or a dead parent leaves orphans; but what
is started inherits the environment, and with it the marker.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable

from .census import Look, Seen, look

#: How often to look for a process that is another one each time, or not yet to be known.
LOOKS = 20
#: A tree that still grows after so many rounds is not caught in this way.
FREEZES = 100


class Tree:
    """Remembers what it has found, so that nothing can hide from it later."""

    def __init__(self, pid: int, launch: str) -> None:
        self._pid = pid
        self._launch = launch
        self._known: list[Seen] = []

    def look(self, since: float | None = None) -> list[Seen]:
        """All that is alive now, or not before `since`; empty only where there is nothing."""
        self.alive()
        found: list[Seen] = []
        for _ in range(LOOKS):
            at = look(time.monotonic() if since is None else since)
            self._find(at)
            found = self._known
            # One that was seen and is gone may have forked: then what it has become is looked for.
            if self.alive() or not (found or at.is_unsure):
                return self._known
            since = None
        return found

    def alive(self) -> list[Seen]:
        """What is alive of that which is known: much cheaper than a look."""
        self._known = [seen for seen in self._known if seen.is_alive()]
        return self._known

    def is_gone(self) -> bool:
        return not self.alive() and not self.look()

    def signal(self, number: int) -> None:
        """To all of them at once: what can't fork can't leave a child that nobody finds."""
        at_once = Look()
        frozen = 0
        for _ in range(FREEZES):
            at_once.again()
            self._find(at_once)
            if len(self._known) == frozen:
                break
            _signal(self._known[frozen:], signal.SIGSTOP)
            frozen = len(self._known)
        _signal(self._known, number)
        if number != signal.SIGKILL:
            _signal(self._known, signal.SIGCONT)

    def _find(self, at: Look) -> None:
        """Add what was not known yet."""
        known = {(seen.pid, seen.born) for seen in self._known}
        found = _tree(at.rows, self._pid, self._launch, self._known)
        self._known += [seen for seen in found if (seen.pid, seen.born) not in known]


def find_tree(pid: int, launch: str) -> list[Seen]:
    """What is alive of a launch: its root, all that carry its marker, and all below them."""
    return Tree(pid, launch).look()


def _tree(rows: list[Seen], pid: int, launch: str, known: list[Seen]) -> list[Seen]:
    births = {seen.pid: seen.born for seen in known}
    # The root is ours until it is reaped: after that the number may be anybody's.
    found = {
        row.pid: row
        for row in rows
        if launch in (row.launches or ())
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
