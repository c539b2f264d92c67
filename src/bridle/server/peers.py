"""Who sits at the other end of a connection: whether it is a process of an agent.

An agent can read what its user can, a person's token too. But it can't choose its ancestors: every
process that it starts is below its shim, and most carry the marker of its launch. So one who comes
as a person is looked at as a process first. Owns that look; the `door` refuses.

What can't be told is told so (`Untold`), and is refused as well.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from select import POLLIN, poll
from typing import Protocol, TypeAlias

from msgspec import Struct

from ..process.arguments import MARKER
from ..process.census import Seen, see
from .owners import Connection, Held, Hidden, Nowhere, Outside, Owner, is_here, owners_of

#: How long to wait before a process that was just becoming another is looked at again.
PAUSES = (0.0, 0.001, 0.005, 0.02, 0.05)
#: How often an agent's process must be seen with a connection. What we start for an agent holds for
#: a moment what we hold, and is not the agent's before that is over.
SIGHTS = 3

#: Its own: the door never waits for files that are slow elsewhere.
_LOOKING = ThreadPoolExecutor(1, "bridle-peers")

_SO_PEERPIDFD = 77
_SOL_LOCAL, _LOCAL_PEERCRED, _LOCAL_PEERPID = 0, 1, 2


class Clear(Struct, frozen=True):
    """It is no agent's, as far as that can be seen from here."""


class OfAgent(Struct, frozen=True):
    """It descends from an agent, or is one: all launches that are seen on the way up, the nearest
    first. What a process says of itself does not hide what is above it."""

    launches: tuple[str, ...]


class Untold(Struct, frozen=True):
    """Nobody can say."""

    why: str


class Unseen(Struct, frozen=True):
    """It is of this machine, and no process that can be seen has it: it may come through `ssh -L`
    or from outside of our container, or an agent hides it, or has had the system give it up. What
    it shows must be what no agent can have."""


Standing: TypeAlias = Clear | OfAgent | Untold | Unseen


class Peer(Protocol):
    """The other end of one connection."""

    #: Whether it came over the socket in the home, and so has its owner's rights.
    is_local: bool

    async def standing(self) -> Standing: ...


class SocketPeer:
    """Over the unix socket: the process that connected, as the kernel knows it.

    Looked at for each request, which takes some 0.2 ms.
    """

    is_local = True

    def __init__(self, process: Seen | None, uid: int) -> None:
        self._process = process
        self.uid = uid

    async def standing(self) -> Standing:
        if self.uid not in (os.geteuid(), 0):
            return Untold(f"it belongs to another user ({self.uid})")
        if self._process is None or not self._process.is_alive():
            return Untold("the process that connected has ended")
        return await standing_of(self._process.pid)


class TcpPeer:
    """Over TCP: whoever of this machine holds the other end; others are on another machine.

    Looked at once: a connection is not handed to an agent by one who is none.
    """

    is_local = False

    def __init__(self, connection: Connection, lookout: Lookout) -> None:
        self._connection = connection
        self._lookout = lookout
        self._is_clear = False

    async def standing(self) -> Standing:
        if self._is_clear:
            return Clear()
        found: Standing = Clear()
        if is_here(self._connection[0][0]):
            for _ in range(SIGHTS):
                found = await self._lookout.standing(self._connection)
                if not isinstance(found, OfAgent):
                    break
        self._is_clear = isinstance(found, Clear)
        return found


class Lookout:
    """Looks who has connected over TCP: one look for all who came while the last one was taken.

    `allow_unseen`: whether one of this machine whose process can't be seen is let in.
    """

    def __init__(self, *, allow_unseen: bool = False) -> None:
        self._allow_unseen = allow_unseen
        self._waiting: list[tuple[Connection, asyncio.Future[Owner]]] = []
        self._looking: asyncio.Task[None] | None = None

    async def standing(self, connection: Connection) -> Standing:
        """Of whoever holds it."""
        owner: asyncio.Future[Owner] = asyncio.get_running_loop().create_future()
        self._waiting.append((connection, owner))
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._look())
        return await self._standing_of(await owner)

    async def _look(self) -> None:
        try:
            await self._look_for_all()
        finally:
            self._looking = None
            for _, waiting in self._waiting:
                waiting.cancel()

    async def _look_for_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            taken, self._waiting = self._waiting, []
            connections = [connection for connection, _ in taken]
            try:
                owners = await loop.run_in_executor(_LOOKING, owners_of, connections)
            except Exception as error:  # noqa: BLE001 - for those who wait to be let in
                for _, waiting in taken:
                    if not waiting.done():
                        waiting.set_exception(error)
            else:
                for (_, waiting), owner in zip(taken, owners, strict=True):
                    if not waiting.done():
                        waiting.set_result(owner)

    async def _standing_of(self, owner: Owner) -> Standing:
        match owner:
            case Held(pids):
                return await _strictest(pids)
            case Outside(uid):
                return self._unseen(uid)
            case Nowhere():
                return Untold("no process of this machine has its connection")
            case Hidden(pids, uid):
                found = await _strictest(pids)
                if isinstance(found, OfAgent):
                    return Untold("an agent's process does not show its connections")
                return self._unseen(uid) if isinstance(found, Clear) else found

    def _unseen(self, uid: int | None) -> Standing:
        """Agents run as we do; root's may become any other user."""
        is_anothers = uid is not None and os.geteuid() not in (0, uid)
        return Clear() if self._allow_unseen or is_anothers else Unseen()


async def _strictest(pids: tuple[int, ...]) -> Standing:
    """That of an agent if any of them is one's; else what can't be told."""
    found: Standing = Clear()
    for pid in pids:
        standing = await standing_of(pid)
        if isinstance(standing, OfAgent):
            return standing
        if isinstance(standing, Untold):
            found = standing
    return found


class UnknownPeer:
    """A connection of which the system tells nothing."""

    is_local = False

    async def standing(self) -> Standing:
        return Untold("the system does not tell who it is")


def peer_of(connection: socket.socket, lookout: Lookout) -> Peer:
    """Who has just connected. To be asked at once: a number is used again when its process ends."""
    if connection.family == socket.AF_UNIX:
        try:
            return _local_peer(connection)
        except (OSError, struct.error):
            return UnknownPeer()
    try:
        client, server = connection.getpeername()[:2], connection.getsockname()[:2]
    except OSError:  # it has gone already
        return UnknownPeer()
    return TcpPeer((client, server), lookout)


def _local_peer(connection: socket.socket) -> SocketPeer:
    if sys.platform != "linux":
        # struct xucred: a version, then the user.
        uid = struct.unpack("II", connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 8))[1]
        pid = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID)
        return SocketPeer(see(pid), uid)
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", raw)
    process = see(pid) if pid > 0 else None
    return SocketPeer(process if process and _is_the_same(connection) else None, uid)


def _is_the_same(connection: socket.socket) -> bool:
    """Whether the one that connected is alive, so that its number is no other's yet."""
    try:
        pidfd = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as error:
        # Before Linux 6.5 nobody can say; to be another's, all numbers had to be used up by now.
        return error.errno == errno.ENOPROTOOPT
    try:
        ended = poll()
        ended.register(pidfd, POLLIN)
        return not ended.poll(0)
    finally:
        os.close(pidfd)


async def standing_of(pid: int) -> Standing:
    """Whether this process, or any above it, is an agent's.

    The agent that we ourselves were started by, if we were, does not count: what it starts beside
    us is as much its as we are. It is another home's: `inside` refuses to serve an agent's own.
    """
    return await _standing(pid, _launches_of_ours(), os.getpid())


async def launches_above() -> frozenset[str] | Untold:
    """All launches that we ourselves belong to, by our own marks and by those of whoever is above
    us: for a program that acts for a person without a door."""
    for pause in PAUSES:
        await asyncio.sleep(pause)
        line = list(_upward(os.getpid(), 0))
        if None not in line:
            marks = (process.launches or () for process in line if process)
            return _launches_of_ours().union(*marks)
    return Untold("the processes above this one change all the time, or are hidden")


async def _standing(pid: int, own: frozenset[str], last: int) -> Standing:
    for pause in PAUSES:
        await asyncio.sleep(pause)
        if see(pid) is None:
            return Untold(f"process {pid} has ended")
        found = _looked_up(pid, own, last)
        if found is not None:
            return found
    return Untold(f"process {pid} changes all the time")


def _looked_up(pid: int, own: frozenset[str], last: int) -> Standing | None:
    """None if they changed meanwhile."""
    found: dict[str, None] = {}
    for process in _upward(pid, last):
        if process is None:
            return None
        marks = reversed(process.launches or ())
        found.update(dict.fromkeys(launch for launch in marks if launch not in own))
    return OfAgent(tuple(found)) if found else Clear()


def _upward(pid: int, last: int) -> Iterator[Seen | None]:
    """From the process up to the last, or to the first of all; None where they just changed."""
    process = see(pid, marks=True)
    while process is not None and process.launches is not None:
        yield process
        if last == process.pid or process.parent == 0:
            return
        parent = see(process.parent, marks=True)
        # One that is younger than its child has only the number of its parent.
        process = parent if parent and parent.born <= process.born else None
    yield None


def _launches_of_ours() -> frozenset[str]:
    mark = os.environ.get(MARKER, "")
    return frozenset(mark.split("/")) if mark else frozenset()
