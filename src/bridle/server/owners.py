"""Which processes of this machine hold the other ends of TCP connections: by /proc, else by psutil.

Owns the look, which serves all who have connected meanwhile; what follows from the answer is for
`peers`. It takes milliseconds, and belongs into a thread.
"""

from __future__ import annotations

import ctypes
import errno
import ipaddress
import os
import socket
import struct
import sys
import time
from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

from msgspec import Struct

ON_LINUX = sys.platform == "linux"
#: How often to look before nobody is said to hold it, and how long to wait between: a table that
#: changes while it is read may leave something out, and the end of a connection takes its time.
LOOKS = 3
PAUSE_SECONDS = 0.01
#: The connections of this machine, of the old family and of the new.
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
#: Which processes can be seen at all, and what it says where that is all of them.
VIEW = "/proc/self/ns/pid"
ALL = "pid:[4026531836]"

#: So many files of threads are looked at: who has more of them keeps others waiting, and is not
#: let in for it.
MOST_OF_THREADS = 20_000

_ESTABLISHED = b"01"
#: The system call that compares what two threads have, by the kind of processor.
_KCMP = {"x86_64": 312, "aarch64": 272}.get(os.uname().machine) if ON_LINUX else None
_KCMP_FILES = 2
#: Those who hide their files on most machines, and call nobody; the first process does not, either.
_QUIET = frozenset((b"(sd-pam)", b"ssh-agent", b"gpg-agent", b"gnome-keyring-d", b"fusermount3"))

#: A host and a port.
End: TypeAlias = tuple[str, int]
#: The end of a client, and ours.
Connection: TypeAlias = tuple[End, End]


class Held(Struct, frozen=True):
    """These processes hold it."""

    pids: tuple[int, ...]


class Hidden(Struct, frozen=True):
    """None of those that can be looked into holds it; it may be one of these. `uid` is whose it is,
    where that is known."""

    pids: tuple[int, ...]
    uid: int | None = None


class Outside(Struct, frozen=True):
    """Our end is alive, and theirs is with none of the processes that can be seen. `uid` is whose
    it is: somebody's outside of the container that we are in. None, where this system does not know
    their end: it is outside of our network; or the system has given it up and ours has not heard of
    that, which who sends what is not read can have done within a second."""

    uid: int | None = None


class Nowhere(Struct, frozen=True):
    """It is closed already, or nobody has it."""


Owner: TypeAlias = Held | Hidden | Outside | Nowhere


class _Row(Struct, frozen=True):
    """One end of a connection, as the kernel lists it. A closed one has no inode."""

    state: bytes
    uid: int
    inode: str


def is_here(host: str) -> bool:
    """Whether this is an address of this machine: only such a one can be taken by a socket."""
    if _address(host).is_loopback:
        return True
    [(family, kind, _, _, name), *_] = socket.getaddrinfo(
        host, 0, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST
    )
    with socket.socket(family, kind) as probe:
        try:
            probe.bind(name)
        except OSError as error:
            return error.errno != errno.EADDRNOTAVAIL
    return True


def owners_of(connections: Sequence[Connection]) -> list[Owner]:
    """Who holds the sockets that go from a client to a server."""
    found: dict[Connection, list[Owner]] = {one: [] for one in connections}
    for look in range(LOOKS):
        # What was found is so; of what was not, it may have been missed.
        missing = [one for one, owners in found.items() if not _is_found(owners)]
        if not missing:
            break
        if look:
            time.sleep(PAUSE_SECONDS)
        owners = _owners(missing) if ON_LINUX else _owners_elsewhere(missing)
        for one, owner in zip(missing, owners, strict=True):
            found[one].append(owner)
    return [_most_careful(found[one]) for one in connections]


def _is_found(owners: list[Owner]) -> bool:
    return bool(owners) and isinstance(owners[-1], Held | Hidden)


def _most_careful(owners: list[Owner]) -> Owner:
    if _is_found(owners) or Nowhere() not in owners:
        return owners[-1]
    return Nowhere()


# --- Linux


def _owners(connections: Sequence[Connection]) -> list[Owner]:
    rows = _Rows()
    theirs = [rows.find(client, server) for client, server in connections]
    wanted = {f"socket:[{row.inode}]" for row in theirs if row and row.inode != "0"}
    holders, hidden = _look(wanted)
    owners: list[Owner] = []
    for row, (client, server) in zip(theirs, connections, strict=True):
        if row is None:
            ours = rows.find(server, client)
            # If theirs was here and was closed, ours has heard of it by now.
            owners.append(Outside() if ours and ours.state == _ESTABLISHED else Nowhere())
        elif row.inode == "0":
            owners.append(Nowhere())
        elif pids := holders.get(f"socket:[{row.inode}]"):
            owners.append(Held(tuple(pids)))
        elif likely := tuple(pid for pid in hidden if _may_be(pid, row.uid)):
            owners.append(Hidden(likely, row.uid))
        else:
            all_seen = os.readlink(VIEW) == ALL  # noqa: PTH115
            owners.append(Nowhere() if all_seen else Outside(row.uid))
    return owners


def _look(wanted: set[str]) -> tuple[dict[str, list[int]], list[int]]:
    """Who holds which of these, and who does not show what they hold."""
    holders: dict[str, list[int]] = {}
    hidden: list[int] = []
    pids = _pids() if wanted else []
    for pid in pids:
        held = _held(f"/proc/{pid}/fd", wanted)
        if held is None:
            hidden.append(pid)
        for name in held or ():
            holders.setdefault(name, []).append(pid)
    missing = wanted - holders.keys()
    # A thread may have files of its own, and its process none, or have ended before it.
    room = Room(MOST_OF_THREADS)
    for pid in pids if missing else ():
        held = _held_by_threads(pid, missing, room)
        for name in held or ():
            holders.setdefault(name, []).append(pid)
        if held is None and pid not in hidden:
            hidden.append(pid)
        elif held is not None and pid in hidden:
            hidden.remove(pid)
    return holders, hidden


class _Rows:
    """The connections of this machine, at one moment."""

    def __init__(self) -> None:
        self._tables: list[bytes] = []
        for table in TABLES:
            try:
                with open(table, "rb", buffering=0) as file:  # noqa: PTH123 - as in `census`
                    self._tables.append(file.readall())
            except FileNotFoundError:
                self._tables.append(b"")  # a machine without the new family

    def find(self, local: End, remote: End) -> _Row | None:
        """The end at `local` of a connection, if it is on this machine."""
        for table, wide in zip(self._tables, (False, True), strict=True):
            ends = [_hexadecimal(host, port, wide) for host, port in (local, remote)]
            if None in ends:
                continue
            _, found, rest = table.partition(f" {ends[0]} {ends[1]} ".encode())
            if found:
                fields = rest.partition(b"\n")[0].split()
                return _Row(fields[0], int(fields[4]), fields[6].decode())
        return None


def _hexadecimal(host: str, port: int, wide: bool) -> str | None:
    address = _address(host)
    packed = address.packed
    if wide and address.version == 4:
        # A socket for both families has it so, whichever way it was called.
        packed = bytes(10) + b"\xff\xff" + packed
    if wide != (len(packed) == 16):
        return None
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Without its zone; one of the old family as what it is."""
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208


class Room:
    """How many open files may be looked at yet."""

    def __init__(self, left: int) -> None:
        self.left = left


def _held(folder: str, wanted: set[str], room: Room | None = None) -> set[str] | None:
    """Which of these are among the open files there; None if that is not for us to see, or there
    are too many to look at."""
    found: set[str] = set()
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except PermissionError:
        return None
    except OSError:
        return found  # it has ended
    if room:
        room.left -= len(names)
        if room.left < 0:
            return None
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")  # noqa: PTH115
        except PermissionError:
            return None
        except OSError:
            continue
        if target in wanted:
            found.add(target)
    return found


def _held_by_threads(pid: int, wanted: set[str], room: Room) -> set[str] | None:
    """The same for all of its threads, as far as they are alive, and as far as there is room."""
    found: set[str] = set()
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except OSError:
        return found  # it has ended
    for thread in threads:
        if _shares_files(pid, int(thread)):
            continue  # its process was looked at
        held = _held(f"/proc/{pid}/task/{thread}/fd", wanted, room)
        if held is None and not _is_dead(pid, thread):
            return None
        found |= held or set()
    return found


def _shares_files(pid: int, thread: int) -> bool:
    """Whether it has just the files of its process, as nearly all have; False if nobody can say."""
    if pid == thread or _KCMP is None:
        return False
    return bool(_libc().syscall(_KCMP, pid, thread, _KCMP_FILES, 0, 0) == 0)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _is_dead(pid: int, thread: str) -> bool:
    """Whether it only waits to be reaped. Who is dead holds nothing, and does not show that."""
    try:
        with open(f"/proc/{pid}/task/{thread}/stat", "rb", buffering=0) as file:  # noqa: PTH123
            return file.readall().rpartition(b")")[2].split()[0] in b"ZX"
    except OSError:
        return True


def _may_be(pid: int, uid: int) -> bool:
    """Whether a process that hides its files may have made a socket of this user. What it can't
    hide is its name, and the users that it was and is."""
    try:
        with open(f"/proc/{pid}/status", "rb", buffering=0) as file:  # noqa: PTH123
            status = file.readall()
    except OSError:
        return False
    name = status.partition(b"\n")[0].partition(b"\t")[2]
    users = status.partition(b"\nUid:")[2].partition(b"\n")[0].split()
    return pid != 1 and name not in _QUIET and str(uid).encode() in users


# --- elsewhere


def _owners_elsewhere(connections: Sequence[Connection]) -> list[Owner]:
    import psutil  # here, because it takes longer than to start a session

    holders: dict[object, list[int]] = {}
    hidden = []
    for process in psutil.process_iter():
        try:
            ends = process.net_connections("tcp")
        except psutil.AccessDenied:
            hidden.append(process.pid)
            continue
        except psutil.Error:
            continue
        for end in ends:
            holders.setdefault((end.laddr, end.raddr), []).append(process.pid)
    nobody: Owner = Hidden(tuple(hidden)) if hidden else Nowhere()
    found = [holders.get(one) for one in connections]
    return [Held(tuple(pids)) if pids else nobody for pids in found]
