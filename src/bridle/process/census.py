"""Every process of the machine, seen at one moment: by /proc on Linux, else by psutil.

Owns what one process is (a pid and its birth, so that a pid that is used again is another) and the
look at all of them. It takes some 30 µs for each, so stops that run at the same time share it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time

from msgspec import Struct

from .arguments import MARKER

ON_LINUX = sys.platform == "linux"
#: How often to look for what was forked during the look.
ROUNDS = 5

_MARK = f"\0{MARKER}=".encode()


class Seen(Struct, frozen=True):
    """One process. `born` is in ticks since the boot, which a change of the clock does not move.

    `launches` is None while it becomes another program: for a moment it has no environment.
    """

    pid: int
    born: float
    parent: int
    launches: tuple[str, ...] | None = ()

    def is_alive(self) -> bool:
        now = see(self.pid)
        return now is not None and now.born == self.born

    def is_still(self) -> bool:
        """Whether none of its threads can do anything now: stopped, or gone."""
        return not self.is_alive() or _is_stopped(self.pid)

    def signal(self, number: int) -> None:
        """Nothing where it is gone, or where we may not."""
        if self.is_alive():
            with contextlib.suppress(OSError):
                os.kill(self.pid, number)


class Look:
    """One look at the machine. `rows` are all that were alive when they were seen."""

    def __init__(self) -> None:
        self.taken = time.monotonic()
        self.rows: list[Seen] = []
        self._looked_at: set[int] = set()

    def again(self) -> bool:
        """See what has come since: whether that was anything. The first time it is everything."""
        new = set(_pids()) - self._looked_at
        self._looked_at |= new
        # The newest have the least time left.
        seen = (see(pid, marks=True) for pid in sorted(new, reverse=True))
        self.rows += filter(None, seen)
        return bool(new)

    @property
    def is_unsure(self) -> bool:
        """Whether it saw a process of which nobody could tell to whom it belongs."""
        return any(row.launches is None for row in self.rows)


_newest: Look | None = None


def look(since: float) -> Look:
    """A look that was taken now, or not before `since` (`time.monotonic`)."""
    global _newest  # noqa: PLW0603 - one look at the machine serves every session of the process
    if _newest is not None and _newest.taken >= since:
        return _newest
    now = Look()
    # A process that forks and ends while we look is found as what it has become.
    for _ in range(ROUNDS):
        if not now.again():
            break
    _newest = now
    return now


def see(pid: int, *, marks: bool = False) -> Seen | None:
    """This process, if it is alive; with the launches that it belongs to only where asked."""
    return _see(pid, marks) if ON_LINUX else _see_elsewhere(pid, marks)


def _see(pid: int, marks: bool) -> Seen | None:
    try:
        fields = _stat(pid)
    except (FileNotFoundError, ProcessLookupError):
        return None
    # A zombie is dead: it only waits to be reaped. Unless just its first thread has ended.
    if fields[0] in b"ZX" and int(fields[17]) <= 1:
        return None
    return Seen(pid, int(fields[19]), int(fields[1]), _marks(pid) if marks else ())


def _marks(pid: int) -> tuple[str, ...] | None:
    is_empty = True
    # Twice, because a new program's environment is empty just before it is filled.
    for _ in range(2):
        try:
            environ = _read(f"/proc/{pid}/environ")
            if environ:
                mark = (b"\0" + environ).partition(_MARK)[2].partition(b"\0")[0]
                return _launches(mark.decode("utf-8", "replace"))
            fields = _stat(pid)
        except OSError:
            return ()
        memory, start, end = int(fields[20]), int(fields[47]), int(fields[48])
        if not memory:  # it is ending, or of the kernel
            return ()
        # While its environment is being filled it is empty as well; its code is told after that.
        is_empty = is_empty and start == end != 0 and int(fields[24]) != 0
    return () if is_empty else None


def _stat(pid: int | str) -> list[bytes]:
    """What comes after the name, which may hold anything: state, parent, …"""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def environment_of(pid: int, launch: str) -> dict[str, str]:
    """What a process of this launch was started with; nothing if it is another one, or does not
    show it."""
    found: dict[str, str] = {}
    if ON_LINUX:
        with contextlib.suppress(OSError):
            data = _read(f"/proc/{pid}/environ").decode("utf-8", "surrogateescape")
            found = dict(line.split("=", 1) for line in data.split("\0") if "=" in line)
    else:
        import psutil

        with contextlib.suppress(psutil.Error, OSError):
            found = psutil.Process(pid).environ()
    return found if launch in _launches(found.get(MARKER, "")) else {}


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


def _is_stopped(pid: int) -> bool:
    if not ON_LINUX:
        import psutil

        with contextlib.suppress(psutil.Error):
            return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
        return True
    with contextlib.suppress(OSError):
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
        return all(_stat(f"{pid}/task/{thread}")[0] in b"TtZX" for thread in threads)
    return True


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
