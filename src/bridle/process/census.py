"""Every process of the machine, seen at one moment: by /proc on Linux, else by psutil.

Owns what one process is (a pid and its birth, so that a pid that is used again is another) and the
look at all of them. It takes some 30 µs for each, so stops that run at the same time share it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator

from msgspec import Struct

from .arguments import MARKER

ON_LINUX = sys.platform == "linux"
#: How often to look for what was forked during the look.
ROUNDS = 5

_MARK = f"\0{MARKER}=".encode()


class Seen(Struct, frozen=True):
    """One process. `born` is in ticks since the boot, which a change of the clock does not move."""

    pid: int
    born: float
    parent: int
    launches: tuple[str, ...] = ()

    def is_alive(self) -> bool:
        now = see(self.pid)
        return now is not None and now.born == self.born

    def signal(self, number: int) -> None:
        """Nothing where it is gone, or where we may not."""
        if self.is_alive():
            with contextlib.suppress(OSError):
                os.kill(self.pid, number)


class _Census(Struct, frozen=True):
    taken: float
    rows: tuple[Seen, ...]


_newest = _Census(float("-inf"), ())


def census(since: float) -> tuple[Seen, ...]:
    """All that are alive; seen now, or not before `since` (`time.monotonic`)."""
    global _newest  # noqa: PLW0603 - one look at the machine serves every session of the process
    if _newest.taken < since:
        taken = time.monotonic()
        _newest = _Census(taken, tuple(_look()))
    return _newest.rows


def _look() -> Iterator[Seen]:
    looked_at: set[int] = set()
    for _ in range(ROUNDS):
        # A process that forks and ends while we look is found as what it has become.
        new = set(_pids()) - looked_at
        looked_at |= new
        # The newest have the least time left.
        for pid in sorted(new, reverse=True):
            seen = see(pid, marks=True)
            if seen:
                yield seen
        if not new:
            break


def see(pid: int, *, marks: bool = False) -> Seen | None:
    """This process, if it is alive; with the launches that it belongs to only where asked."""
    return _see(pid, marks) if ON_LINUX else _see_elsewhere(pid, marks)


def _see(pid: int, marks: bool) -> Seen | None:
    try:
        # After the name, which may hold anything: state, parent, …
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return None
    # A zombie is dead: it only waits to be reaped. Unless just its first thread has ended.
    if fields[0] in b"ZX" and int(fields[17]) <= 1:
        return None
    environ = b""
    if marks:
        with contextlib.suppress(OSError):
            environ = b"\0" + _read(f"/proc/{pid}/environ")
    mark = environ.partition(_MARK)[2].partition(b"\0")[0]
    return Seen(pid, int(fields[19]), int(fields[1]), _launches(mark.decode("utf-8", "replace")))


def _see_elsewhere(pid: int, marks: bool) -> Seen | None:
    import psutil  # here, because it takes longer than to start a session

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        born, parent = process.create_time(), process.ppid()
    except psutil.Error:
        return None
    mark = ""
    if marks:
        with contextlib.suppress(psutil.Error):
            mark = process.environ().get(MARKER, "")
    return Seen(pid, born, parent, _launches(mark))


def _pids() -> list[int]:
    if ON_LINUX:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    import psutil

    return psutil.pids()


def _launches(mark: str) -> tuple[str, ...]:
    return tuple(mark.split("/")) if mark else ()


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a Path takes as long as the read
        return file.readall()
