"""Nobody keeps people out by connecting and saying nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

import pytest

from bridle.server import peers
from bridle.server.capacity import Capacity
from bridle.server.owners import Connection, Owner, owners_of
from bridle.server.problems import Problem
from bridle.server.protocol import ConnectionLimits
from tests.supervisor.homes import LIMIT, Home

from .served import Served, served

ME = "/api/v1/me"
MOST = 8

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Guest:
    def __init__(self) -> None:
        self.is_away = False

    def turn_away(self) -> None:
        self.is_away = True


def test_the_stranger_who_has_waited_longest_goes_first() -> None:
    places = Capacity(3)
    guests = [Guest() for _ in range(5)]
    assert all(places.enter(guest) for guest in guests[:3])
    places.meet(guests[0], "person")
    assert places.enter(guests[3])
    assert places.enter(guests[4])
    assert [guest.is_away for guest in guests] == [False, True, True, False, False]
    places.leave(guests[3])
    another = Guest()
    assert places.enter(another)
    assert not guests[4].is_away
    # One who was told to go is not let in after all.
    with pytest.raises(Problem):
        places.meet(guests[1], "person")


def test_nobody_who_is_known_has_to_go() -> None:
    places = Capacity(2)
    known = [Guest(), Guest()]
    for guest in known:
        assert places.enter(guest)
        places.meet(guest, "person")
    assert not places.enter(Guest())
    assert not any(guest.is_away for guest in known)
    places.leave(known[0])
    assert places.enter(Guest())


def test_agents_take_at_most_half() -> None:
    places = Capacity(5)
    agents = [Guest() for _ in range(3)]
    roles: tuple[Literal["agent", "permit"], ...] = ("agent", "permit", "agent")
    for guest in agents:
        assert places.enter(guest)
    for guest, role in zip(agents[:2], roles, strict=False):
        places.meet(guest, role)
        places.meet(guest, role)
    for role in roles[:2]:
        with pytest.raises(Problem, match="as many connections"):
            places.meet(agents[2], role)
    places.meet(agents[2], "reader")
    places.leave(agents[0])
    another = Guest()
    assert places.enter(another)
    places.meet(another, "agent")


@pytest.mark.parametrize("way", ["tcp", "socket"])
async def test_people_get_in_while_others_connect_and_say_nothing(home: Home, way: str) -> None:
    async with served(home.folder, limits=ConnectionLimits(most=MOST)) as server:
        connect = by_socket(server) if way == "socket" else server.raw
        silent = [await connect() for _ in range(3 * MOST)]
        person = server.local() if way == "socket" else server.client(server.token)
        async with person as client:
            assert (await client.get(ME)).status_code == 200
            silent += [await connect() for _ in range(3 * MOST)]
            # It is the same connection still.
            assert (await client.get(ME)).status_code == 200
            async with asyncio.timeout(LIMIT):
                assert b"too_many_connections" in await silent[0][0].read()
        for _, writer in silent:
            writer.close()


def by_socket(server: Served) -> Callable[[], Awaitable[Streams]]:
    return lambda: asyncio.open_unix_connection(server.ready.socket)


async def test_all_who_come_meanwhile_are_looked_at_at_once(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def counted(connections: list[Connection]) -> list[Owner]:
        looks.append(len(connections))
        return owners_of(connections)

    monkeypatch.setattr(peers, "owners_of", counted)
    async with served(home.folder) as server:
        clients = [server.client(server.token) for _ in range(40)]
        answers = await asyncio.gather(*(client.get(ME) for client in clients))
        assert [answer.status_code for answer in answers] == [200] * 40
        assert sum(looks) == 40
        assert len(looks) < 20
        await asyncio.gather(*(client.aclose() for client in clients))
