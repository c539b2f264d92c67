"""The processes of a launch, wherever they went: found by parentage and by a marker.

A CLI runs its tools in sessions of their own, and `nohup` or a dead parent leaves orphans; but what
is started inherits the environment, and with it the marker. What has cleared its environment and
lost its parent before we look is found only below a subreaper, which a shim is.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterable

from .census import Look, Seen, look

#: How often to look for a process that is another one each time, or not yet to be known.
LOOKS = 20
#: How long a tree may take to stand still, and how long to wait before it is asked again.
FREEZE_SECONDS = 1.0
PAUSE_SECONDS = 0.001


class Tree:
    """Remembers what it has found, so that nothing can hide from it later.

    `born` is given for a root that is not our child but a shim: it keeps all the others and tells
    how the CLI ended, so it is signalled when nothing else is left.
    """

    def __init__(self, pid: int, launch: str, born: float | None = None) -> None:
        self._pid = pid
        self._born = born
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

    async def signal(self, number: int) -> None:
        """To all of them at once: what can't fork can't leave a child that nobody finds."""
        await self.freeze()
        self._send(number)

    async def freeze(self) -> None:
        """Stop them where they are."""
        end = time.monotonic() + FREEZE_SECONDS
        at = Look()
        while self._freeze(at) and time.monotonic() < end:
            # A fork that was under way comes to its end before its process stands still.
            while not self._is_still() and time.monotonic() < end:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(PAUSE_SECONDS)

    def thaw(self) -> None:
        """Let them go on, also those that somebody else has stopped."""
        self.look()
        _signal(self._others(self._known), signal.SIGCONT)

    def kill(self) -> None:
        """All that can be found now, without waiting for anything."""
        at = Look()
        for _ in range(LOOKS):
            if not self._freeze(at):
                break
        self._send(signal.SIGKILL)

    def _is_still(self) -> bool:
        return all(seen.is_still() for seen in self._others(self._known))

    def _others(self, processes: list[Seen]) -> list[Seen]:
        """All but the shim, which never forks and which the others need."""
        return [seen for seen in processes if (seen.pid, seen.born) != (self._pid, self._born)]

    def _freeze(self, at: Look) -> bool:
        """Stop what was not known when it was looked at last: whether that was anything."""
        is_first = not at.rows
        known = 0 if is_first else len(self._known)
        at.again()
        self._find(at)
        _signal(self._others(self._known[known:]), signal.SIGSTOP)
        return len(self._known) > known

    def _send(self, number: int) -> None:
        processes = self._others(self._known) or self._known
        _signal(processes, number)
        if number != signal.SIGKILL:
            _signal(processes, signal.SIGCONT)

    def _find(self, at: Look) -> None:
        """Add what was not known yet."""
        known = {(seen.pid, seen.born) for seen in self._known}
        roots = {(seen.pid, seen.born) for seen in at.rows if self._is_root(seen)}
        found = _tree(at.rows, self._launch, known | roots)
        self._known += [seen for seen in found if (seen.pid, seen.born) not in known]

    def _is_root(self, seen: Seen) -> bool:
        # Our child is ours until it is reaped: after that the number may be anybody's.
        is_it = seen.parent == os.getpid() if self._born is None else seen.born == self._born
        return seen.pid == self._pid and is_it


def find_tree(pid: int, launch: str) -> list[Seen]:
    """What is alive of a launch: its root, all that carry its marker, and all below them."""
    return Tree(pid, launch).look()


def _tree(rows: list[Seen], launch: str, known: set[tuple[int, float]]) -> list[Seen]:
    found = {
        row.pid: row
        for row in rows
        if launch in (row.launches or ()) or (row.pid, row.born) in known
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
