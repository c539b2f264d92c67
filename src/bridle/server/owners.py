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
import time
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

_ESTABLISHED = b"01"
#: Those who hide their files on most machines, and call nobody; the first process does not, either.
_QUIET = frozenset((b"(sd-pam)", b"ssh-agent", b"gpg-agent", b"gnome-keyring-d", b"fusermount3"))

#: A host and a port.
End: TypeAlias = tuple[str, int]


class Held(Struct, frozen=True):
    """This process holds it; others may, too."""

    pid: int


class Hidden(Struct, frozen=True):
    """None of those that can be looked into holds it; it may be one of these."""

    pids: tuple[int, ...]


class Outside(Struct, frozen=True):
    """It is alive, and none of the processes that can be seen: on another machine, or outside of
    the container that we are in."""


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


def owner_of(client: End, server: End) -> Owner:
    """Who holds the socket that goes from `client` to `server`."""
    owners = []
    for _ in range(LOOKS):
        owner = _owner(client, server) if ON_LINUX else _owner_elsewhere(client, server)
        if isinstance(owner, Held | Hidden):
            return owner
        owners.append(owner)
        time.sleep(PAUSE_SECONDS)
    return Nowhere() if Nowhere() in owners else Outside()


# --- Linux


def _owner(client: End, server: End) -> Owner:
    theirs = _row(client, server)
    if theirs is None:
        ours = _row(server, client)
        # If theirs was here and is gone, ours has heard of it by now.
        return Outside() if ours and ours.state == _ESTABLISHED else Nowhere()
    if theirs.inode == "0":
        return Nowhere()
    hidden = []
    # The newest first: most who come were started for it. But ourselves before all others: what we
    # start holds for a moment what we hold, and is an agent's by then.
    for pid in sorted(_pids(), key=lambda pid: (pid == os.getpid(), pid), reverse=True):
        holds = _holds(pid, f"socket:[{theirs.inode}]")
        if holds:
            return Held(pid)
        if holds is None:
            hidden.append(pid)
    likely = tuple(pid for pid in hidden if _may_be(pid, theirs.uid))
    if likely:
        return Hidden(likely)
    return Nowhere() if os.readlink(VIEW) == ALL else Outside()  # noqa: PTH115


def _row(local: End, remote: End) -> _Row | None:
    """The end at `local` of a connection, if it is on this machine."""
    for table, wide in zip(TABLES, (False, True), strict=True):
        ends = [_hexadecimal(host, port, wide) for host, port in (local, remote)]
        if None in ends:
            continue
        try:
            with open(table, "rb", buffering=0) as file:  # noqa: PTH123 - as in `census`
                rows = file.readall()
        except FileNotFoundError:
            continue  # a machine without the new family
        _, found, rest = rows.partition(f" {ends[0]} {ends[1]} ".encode())
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
