"""A connection of this machine that no process shows: only what no agent can have lets it in."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from bridle.server import owners, peers
from bridle.server.owners import Held, Hidden, Nowhere, Outside, Owner
from bridle.server.peers import Clear, Lookout, OfAgent, Unseen, Untold
from tests.supervisor.homes import LIMIT, Home

from .served import Served, served
from .test_peers import chain, in_flight
from .test_security_peers import warnings

ME = "/api/v1/me"


@pytest.fixture
def in_container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """There may be processes that can't be seen from here."""
    (tmp_path / "view").symlink_to("pid:[1]")
    monkeypatch.setattr(owners, "VIEW", str(tmp_path / "view"))


async def asked_unseen(server: Served, path: str, *headers: str) -> tuple[int, dict[str, str], Any]:
    """Ask, while nobody holds the connection."""
    connection = socket.create_connection(("127.0.0.1", server.port))
    ends = connection.getsockname(), connection.getpeername()
    told = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{server.port}", "Connection: close", *headers]
    connection.sendall("\r\n".join([*told, "", ""]).encode())
    ours, theirs = in_flight(connection)
    with ours, theirs:
        async with asyncio.timeout(LIMIT):
            while not waits_unread(*ends):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.001)
        _, [fd], _, _ = socket.recv_fds(theirs, 1, 1)
    with socket.socket(fileno=fd) as back:
        back.setblocking(False)
        data = b""
        async with asyncio.timeout(LIMIT):
            while piece := await asyncio.get_running_loop().sock_recv(back, 65536):
                data += piece
    head, _, body = data.decode().partition("\r\n\r\n")
    status, *lines = head.split("\r\n")
    found = dict(line.lower().split(": ", 1) for line in lines)
    return int(status.split()[1]), found, json.loads(body) if body.startswith("{") else body


def waits_unread(client: tuple[str, int], server: tuple[str, int]) -> bool:
    row = next(
        line.split()
        for line in Path("/proc/net/tcp").read_text().splitlines()
        if f":{client[1]:04X} " in line and line.split()[2].endswith(f":{server[1]:04X}")
    )
    return not row[4].endswith(":00000000")


def bearer(server: Served) -> str:
    return f"Authorization: Bearer {server.token}"


@pytest.mark.usefixtures("in_container")
async def test_a_token_that_an_agent_can_read_is_not_enough(home: Home) -> None:
    async with served(home.folder) as server:
        status, headers, body = await asked_unseen(server, ME, bearer(server))
        # From an ordinary user another test may hide a process of an agent just now.
        is_hidden = os.geteuid() != 0 and body["code"] == "unknown_peer"
        assert (status, body["code"] == "unseen_peer" or is_hidden) == (403, True)
        assert is_hidden or "--allow-unseen" in body["remedy"]
        assert headers["connection"] == "close"
        async with server.client(server.token) as seen:
            assert (await seen.get(ME)).status_code == 200


@pytest.mark.usefixtures("in_container")
async def test_it_is_where_that_is_allowed(home: Home) -> None:
    async with served(home.folder, allow_unseen=True) as server:
        status, _, body = await asked_unseen(server, ME, bearer(server))
        assert (status, body["role"]) == (200, "person")


@pytest.mark.usefixtures("in_container")
async def test_who_has_a_ticket_is_in_with_the_cookie_that_it_becomes(home: Home) -> None:
    async with served(home.folder) as server:
        path = server.ready.login.removeprefix(server.url)
        status, headers, _ = await asked_unseen(server, path)
        assert status == 303
        cookie = headers["set-cookie"].partition(";")[0]
        # What the browser keeps is as it was given: its name is in lower case here already.
        text = cookie.partition("=")[2]
        [login] = [one for one in server.house.tokens.list() if one.kind == "login"]
        assert login.is_unseen
        assert text.endswith(login.tail.lower())


@pytest.mark.usefixtures("in_container")
async def test_a_ticket_for_a_browser_of_this_machine_lets_nobody_in_unseen(home: Home) -> None:
    """It lies in a file until the browser has it."""
    async with served(home.folder) as server:
        async with server.local() as person:
            made = (await person.post("/api/v1/tickets", params={"is_here": "true"})).json()
        path = made["url"].removeprefix(server.url)
        assert (await asked_unseen(server, path))[0] == 403
        async with server.local() as person:
            made = (await person.post("/api/v1/tickets", params={"is_here": "true"})).json()
        async with server.client() as browser:
            seen = await browser.get(made["url"].removeprefix(server.url))
            assert seen.status_code == 303


@pytest.mark.usefixtures("in_container")
@pytest.mark.parametrize("is_unseen", [True, False])
async def test_a_cookie_works_unseen_only_if_it_was_given_unseen(
    home: Home, is_unseen: bool
) -> None:
    async with served(home.folder) as server:
        _, text = await server.house.tokens.log_in("me", is_unseen=is_unseen)
        cookie = f"Cookie: bridle_{server.port}={text}"
        status, _, body = await asked_unseen(server, ME, cookie)
        assert status == (200 if is_unseen else 403), body
        async with server.client(cookie=cookie.partition(" ")[2]) as seen:
            assert (await seen.get(ME)).status_code == 200


@pytest.mark.usefixtures("all_is_seen")
async def test_where_all_can_be_seen_nobody_is_unseen(home: Home) -> None:
    async with served(home.folder) as server:
        status, _, body = await asked_unseen(server, ME, bearer(server))
        # From an ordinary user another test may hide one of its processes just now.
        codes = ["unknown_peer"] if os.geteuid() == 0 else ["unknown_peer", "unseen_peer"]
        assert (status, body["code"] in codes) == (403, True)


USER_TIMEOUT = 18
STOLEN = {"role": "person", "name": "stolen"}


async def test_one_that_the_system_has_given_up_is_unseen(home: Home) -> None:
    """Who sends more than is read, and will not wait, loses the connection without a word to us."""
    async with served(home.folder) as server:
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.setsockopt(socket.IPPROTO_TCP, USER_TIMEOUT, 1)
        client = connection.getsockname()
        body = json.dumps(STOLEN)
        told = ["POST /api/v1/tokens HTTP/1.1", f"Host: 127.0.0.1:{server.port}", bearer(server)]
        told += ["Content-Type: application/json", f"Content-Length: {len(body)}", "", body]
        connection.sendall("\r\n".join(told).encode())
        connection.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                connection.send(bytes(65536))
        # The look waits for others, and in the meantime nothing more is read.
        busy = threading.Event()
        peers._LOOKING.submit(busy.wait, LIMIT)
        with connection, warnings() as logged:
            async with asyncio.timeout(LIMIT):
                while f":{client[1]:04X} " in ends():  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.01)
            busy.set()
            async with asyncio.timeout(LIMIT):
                assert "can't be seen" in await logged.get()
        assert all(one.name != "stolen" for one in server.house.tokens.list())


def ends() -> str:
    """Those that this machine knows, of whoever has called."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    return "".join(f"{row[1]} " for row in rows)


ANOTHERS = os.geteuid() + 1


@pytest.mark.parametrize(
    ("owner", "standing"),
    [
        (Held((os.getpid(),)), Clear()),
        (Outside(), Unseen()),
        (Outside(os.geteuid()), Unseen()),
        (Outside(ANOTHERS), Unseen() if os.geteuid() == 0 else Clear()),
        (Hidden((os.getpid(),)), Unseen()),
        (Hidden((os.getpid(),), os.geteuid()), Unseen()),
        (Hidden((os.getpid(),), ANOTHERS), Unseen() if os.geteuid() == 0 else Clear()),
        (Nowhere(), Untold("no process of this machine has its connection")),
    ],
)
async def test_what_is_known_of_a_holder_says_what_it_is(owner: Owner, standing: object) -> None:
    assert await Lookout()._standing_of(owner) == standing
    allowed = await Lookout(allow_unseen=True)._standing_of(owner)
    assert allowed == (Clear() if standing == Unseen() else standing)


async def test_of_several_an_agents_process_counts() -> None:
    with chain("", "a1") as pid:
        agent, ended = pid, chain("")
        with ended as gone:
            pass
        for allow_unseen in (False, True):
            lookout = Lookout(allow_unseen=allow_unseen)
            for pids in ((agent, os.getpid()), (os.getpid(), agent), (gone, agent)):
                assert await lookout._standing_of(Held(pids)) == OfAgent(("a1",))
                hidden = await lookout._standing_of(Hidden(pids, ANOTHERS))
                assert hidden == Untold("an agent's process does not show its connections")
            for pids in ((gone, os.getpid()), (os.getpid(), gone)):
                assert isinstance(await lookout._standing_of(Held(pids)), Untold)
                assert isinstance(await lookout._standing_of(Hidden(pids)), Untold)
