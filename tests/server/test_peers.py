"""Which process is at the other end, and what is above it."""

from __future__ import annotations

import asyncio
import ctypes
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from bridle.server import owners
from bridle.server.owners import Held, Hidden, Nowhere, Outside, Owner, is_here, owners_of
from bridle.server.peers import (
    Clear,
    Lookout,
    OfAgent,
    SocketPeer,
    TcpPeer,
    UnknownPeer,
    Untold,
    peer_of,
    standing_of,
)

SLEEP = "import sys; sys.stdin.read()"
#: Starts itself again for each of its words, with that for a launch; the last one says its number.
CHAIN = """
import os, sys

_, *rest = sys.argv[1:]
if not rest:
    print(os.getpid(), flush=True)
    sys.stdin.read()
elif pid := os.fork():
    os.waitpid(pid, 0)
else:
    env = {"BRIDLE_LAUNCH": rest[0]} if rest[0] else {}
    os.execve(sys.executable, [sys.executable, "-I", "-S", sys.argv[0], *rest], env)
"""


@contextmanager
def connected(family: int, host: str, to: str | None = None) -> Iterator[tuple[socket.socket, ...]]:
    """Both ends of a connection: who called, and who was called."""
    with socket.create_server((host, 0), family=family) as listener:
        caller = socket.socket(socket.AF_INET6 if ":" in (to or host) else family)
        caller.connect((to or host, listener.getsockname()[1]))
        called, _ = listener.accept()
        with caller, called:
            yield caller, called


def owner(called: socket.socket) -> Owner:
    [found] = owners_of([(called.getpeername()[:2], called.getsockname()[:2])])
    return found


@pytest.mark.parametrize(
    ("family", "host", "to"),
    [
        (socket.AF_INET, "127.0.0.1", None),
        (socket.AF_INET6, "::1", None),
        # A socket of the new family that calls by the old one is listed with the new.
        (socket.AF_INET, "127.0.0.1", "::ffff:127.0.0.1"),
    ],
)
def test_the_process_that_holds_a_connection_is_found(
    family: int, host: str, to: str | None
) -> None:
    with connected(family, host, to) as (caller, called):
        assert owner(called) == Held((os.getpid(),))
        caller.close()
        assert owner(called) == Nowhere()


def test_a_connection_that_there_is_not_is_nowhere() -> None:
    none = [(("127.0.0.1", 1), ("127.0.0.1", 2)), (("::1", 1), ("::1", 2))]
    assert owners_of(none) == [Nowhere(), Nowhere()]


def in_flight(connection: socket.socket) -> tuple[socket.socket, socket.socket]:
    """Have it be in a message that nobody has read: alive, and held by no process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    socket.send_fds(ours, [b"x"], [connection.fileno()])
    connection.close()
    return ours, theirs


@pytest.mark.usefixtures("all_is_seen")
def test_a_connection_that_nobody_holds_is_nowhere() -> None:
    with connected(socket.AF_INET, "127.0.0.1") as (caller, called):
        ours, theirs = in_flight(caller)
        with ours, theirs:
            assert is_unless_hidden(owner(called), Nowhere())


def is_unless_hidden(found: Owner, wanted: Owner) -> bool:
    """From an ordinary user another test may hide one of its processes just now."""
    return found == wanted or (os.geteuid() != 0 and isinstance(found, Hidden))


@pytest.mark.usefixtures("all_is_seen")
def test_but_in_a_container_it_may_be_held_outside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "view").symlink_to("pid:[1]")
    monkeypatch.setattr(owners, "VIEW", str(tmp_path / "view"))
    with connected(socket.AF_INET, "127.0.0.1") as (caller, called):
        assert owner(called) == Held((os.getpid(),))
        ours, theirs = in_flight(caller)
        with ours, theirs:
            assert is_unless_hidden(owner(called), Outside(os.geteuid()))


def test_an_end_that_is_not_here_while_ours_lives_is_outside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """So it is where one machine speaks to another as if to itself (WSL)."""
    with connected(socket.AF_INET, "127.0.0.1") as (_, called):
        rows = Path("/proc/net/tcp").read_text().splitlines(keepends=True)
        client, server = (f":{end[1]:04X}" for end in (called.getpeername(), called.getsockname()))
        theirs = [row for row in rows if row.split()[1].endswith(client)]
        assert [row.split()[2].endswith(server) for row in theirs] == [True]
        (tmp_path / "tcp").write_text("".join(row for row in rows if row not in theirs))
        monkeypatch.setattr(owners, "TABLES", (str(tmp_path / "tcp"), str(tmp_path / "none")))
        assert owner(called) == Outside()


def test_whoever_took_a_connection_over_is_found() -> None:
    with connected(socket.AF_INET, "127.0.0.1") as (caller, called):
        fd = caller.fileno()
        words = [sys.executable, "-I", "-S", "-c", SLEEP]
        with subprocess.Popen(words, stdin=subprocess.PIPE, pass_fds=[fd]) as child:
            caller.close()
            assert owner(called) == Held((child.pid,))
            child.communicate()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
def test_an_address_of_this_machine_is_here(host: str) -> None:
    assert is_here(host)


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"])
def test_one_of_elsewhere_is_not(host: str) -> None:
    assert not is_here(host)


async def test_who_calls_from_elsewhere_has_only_a_token_to_show() -> None:
    assert await TcpPeer((("192.0.2.1", 5), ("192.0.2.2", 6)), Lookout()).standing() == Clear()


async def test_what_is_not_known_of_a_connection_is_told_so() -> None:
    assert isinstance(await UnknownPeer().standing(), Untold)
    nothing = TcpPeer((("127.0.0.1", 1), ("127.0.0.1", 2)), Lookout())
    assert isinstance(await nothing.standing(), Untold)
    with socket.socket(socket.AF_UNIX) as lonely:
        assert isinstance(await peer_of(lonely, Lookout()).standing(), Untold)
    with socket.socket() as lonely:
        assert isinstance(await peer_of(lonely, Lookout()).standing(), Untold)


async def test_over_a_socket_it_is_the_process_that_connected() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        peer = peer_of(ours, Lookout())
        assert isinstance(peer, SocketPeer)
        assert peer.uid == os.geteuid()
        assert await peer.standing() == Clear()


async def test_another_users_process_is_nobody() -> None:
    stranger = SocketPeer(None, os.geteuid() + 1)
    assert await stranger.standing() == Untold(f"it belongs to another user ({os.geteuid() + 1})")


# --- what is above a process


@contextmanager
def chain(*launches: str) -> Iterator[int]:
    """Processes, each the parent of the next, each with this launch or with none; the last one."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(CHAIN)
        file.flush()
        env = {"BRIDLE_LAUNCH": launches[0]} if launches[0] else {}
        words = [sys.executable, "-I", "-S", file.name, *launches]
        pipe = subprocess.PIPE
        with subprocess.Popen(words, stdin=pipe, stdout=pipe, env=env) as first:
            assert first.stdout
            yield int(first.stdout.readline())
            first.communicate()


@pytest.mark.parametrize(
    ("launches", "standing"),
    [
        (("",), Clear()),
        (("", "", ""), Clear()),
        (("a1",), OfAgent(("a1",))),
        (("a1", "", ""), OfAgent(("a1",))),
        (("", "a1", ""), OfAgent(("a1",))),
        (("a1", "a1/b2", ""), OfAgent(("b2", "a1"))),
        (("a1", "made-up", ""), OfAgent(("made-up", "a1"))),
    ],
)
async def test_a_process_is_an_agents_if_any_above_it_is(
    launches: tuple[str, ...], standing: object
) -> None:
    with chain(*launches) as pid:
        assert await standing_of(pid) == standing


async def test_what_we_were_started_by_ourselves_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BRIDLE_LAUNCH", "above")
    with chain("above", "") as pid:
        assert await standing_of(pid) == Clear()
    with chain("above/below", "") as pid:
        assert await standing_of(pid) == OfAgent(("below",))


def test_a_program_knows_every_launch_that_it_is_below() -> None:
    """Whatever it says of itself."""
    code = (
        "import asyncio; from bridle.server.peers import launches_above;"
        "print(sorted(asyncio.run(launches_above())))"
    )
    inner = f"BRIDLE_LAUNCH=made-up {shlex.join([sys.executable, '-c', code])}; exit $?"
    env = {**os.environ, "BRIDLE_LAUNCH": "a1/b2"}
    told = subprocess.run(["sh", "-c", inner], env=env, capture_output=True, check=True)
    assert told.stdout.decode().strip() == "['a1', 'b2', 'made-up']"


async def test_a_process_that_has_ended_is_nobodys() -> None:
    with chain("") as pid:
        pass
    assert isinstance(await standing_of(pid), Untold)


async def test_only_who_is_above_is_looked_at() -> None:
    """Each request over the socket waits for it, however many processes there are."""
    looked_at: set[str] = set()

    def note(event: str, args: tuple[object, ...]) -> None:
        if event == "open" and is_noting and str(args[0]).startswith("/proc/"):
            looked_at.add(str(args[0]).split("/")[2])

    is_noting = False
    sys.addaudithook(note)
    with chain("", "", "") as pid:
        is_noting = True
        await standing_of(pid)
        is_noting = False
        above = {str(pid), *(str(one.pid) for one in psutil.Process(pid).parents())}
    assert looked_at <= above | {"stat", "self"}


async def test_the_look_waits_for_no_other_work() -> None:
    is_over = threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    slow = loop.run_in_executor(None, is_over.wait)
    try:
        with connected(socket.AF_INET, "127.0.0.1") as (_, called):
            peer = peer_of(called, Lookout())
            assert await asyncio.wait_for(peer.standing(), 20) == Clear()
    finally:
        is_over.set()
        await slow


def test_a_thread_with_the_files_of_its_process_is_not_looked_at_again() -> None:
    """One process with many threads and files would keep all others waiting."""
    told: list[int] = []
    over, met = threading.Event(), threading.Barrier(3)

    def run(*, is_apart: bool) -> None:
        if is_apart:
            assert ctypes.CDLL(None).unshare(0x400) == 0  # CLONE_FILES
        told.append(threading.get_native_id())
        met.wait()
        over.wait()

    threads = [threading.Thread(target=run, kwargs={"is_apart": one}) for one in (True, False)]
    for thread in threads:
        thread.start()
    met.wait()
    shared = [owners._shares_files(os.getpid(), one) for one in told]
    over.set()
    for thread in threads:
        thread.join()
    assert sorted(shared) == [False, True]


def test_who_has_more_files_than_can_be_looked_at_hides_what_it_holds() -> None:
    room = owners.Room(3)
    assert owners._held("/proc/self/fd", {"nothing"}, room) is None
    assert owners._held("/proc/self/fd", {"nothing"}, owners.Room(100_000)) == set()
    with connected(socket.AF_INET, "127.0.0.1") as (_, called):
        # What its process holds is seen all the same.
        assert owner(called) == Held((os.getpid(),))
