"""Which process of this machine holds the other end of a TCP connection: by /proc, else by psutil.

Owns the look; what follows from the answer is for `peers`. It takes milliseconds, and belongs into
a thread.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import struct
import sys
from typing import TypeAlias

from msgspec import Struct

ON_LINUX = sys.platform == "linux"
#: How often to look again: tables that change while they are read may leave something out.
LOOKS = 3

#: A host and a port.
End: TypeAlias = tuple[str, int]


class Held(Struct, frozen=True):
    """This process holds it; others may, too."""

    pid: int


class Hidden(Struct, frozen=True):
    """None of those that can be looked into holds it; it may be one of these."""

    pids: tuple[int, ...]


class Nowhere(Struct, frozen=True):
    """There is no such socket on this machine, or nobody has it."""


Owner: TypeAlias = Held | Hidden | Nowhere


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


def owner_of(client: End, server: End) -> Owner:
    """Who holds the socket that goes from `client` to `server`."""
    for _ in range(LOOKS):
        owner = _owner(client, server) if ON_LINUX else _owner_elsewhere(client, server)
        if not isinstance(owner, Nowhere):
            return owner
    return Nowhere()


# --- Linux


def _owner(client: End, server: End) -> Owner:
    found = _inode(client, server)
    if found is None:
        return Nowhere()
    inode, uid = found
    wanted = f"socket:[{inode}]"
    hidden = []
    # The newest first: most who come were started for it. But ourselves before all others: what we
    # start holds for a moment what we hold, and is an agent's by then.
    for pid in sorted(_pids(), key=lambda pid: (pid == os.getpid(), pid), reverse=True):
        holds = _holds(pid, wanted)
        if holds:
            return Held(pid)
        if holds is None:
            hidden.append(pid)
    # What can't be seen of a process is its files, not its user, whose the socket is as well. The
    # first process of all starts others, and speaks to nobody.
    likely = tuple(pid for pid in hidden if pid != 1 and uid in _uids(pid))
    return Hidden(likely) if likely else Nowhere()


def _inode(client: End, server: End) -> tuple[str, int] | None:
    """Of the client's socket, with the user who made it; None if it is closed already."""
    for table, wide in (("/proc/net/tcp", False), ("/proc/net/tcp6", True)):
        ends = _row(client, server, wide)
        if ends is None:
            continue
        with open(table, "rb", buffering=0) as file:  # noqa: PTH123 - as in `census`
            rows = file.readall()
        at = rows.find(ends)
        if at >= 0:
            fields = rows[at : rows.index(b"\n", at)].split()
            uid, inode = int(fields[6]), fields[8].decode()
            return (inode, uid) if inode != "0" else None
    return None


def _row(client: End, server: End, wide: bool) -> bytes | None:
    """How the two ends stand in a row of the kernel's table, as seen by the client."""
    ends = [_hexadecimal(host, port, wide) for host, port in (client, server)]
    return None if None in ends else f" {ends[0]} {ends[1]} ".encode()


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


def _holds(pid: int, wanted: str) -> bool | None:
    """Whether it has this file open; None if that is not for us to see."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except PermissionError:
        return None
    except OSError:
        return False  # it has ended
    for name in names:
        try:
            if os.readlink(f"{folder}/{name}") == wanted:  # noqa: PTH115
                return True
        except PermissionError:
            return None
        except OSError:
            continue
    return False


def _uids(pid: int) -> set[int]:
    """The users that a process has been and is."""
    try:
        with open(f"/proc/{pid}/status", "rb", buffering=0) as file:  # noqa: PTH123
            status = file.readall()
    except OSError:
        return set()
    line = status.partition(b"\nUid:")[2].partition(b"\n")[0]
    return {int(word) for word in line.split()}


# --- elsewhere


def _owner_elsewhere(client: End, server: End) -> Owner:
    import psutil  # here, because it takes longer than to start a session

    hidden = []
    for process in psutil.process_iter():
        try:
            connections = process.net_connections("tcp")
        except psutil.AccessDenied:
            hidden.append(process.pid)
            continue
        except psutil.Error:
            continue
        if any((one.laddr, one.raddr) == (client, server) for one in connections):
            return Held(process.pid)
    return Hidden(tuple(hidden)) if hidden else Nowhere()
