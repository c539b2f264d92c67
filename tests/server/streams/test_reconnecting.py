"""Whatever happens to connections: every event once and in order, for each of many."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from bridle.server.house import House
from bridle.server.streams.audience import Audience, Listener
from bridle.server.streams.channel import Sizes
from tests.supervisor.homes import Home

from .conftest import OpenHouse
from .serving import grow, pass_by, served, silent, text_of
from .sse import Told, follow

CLIENTS = 200
BATCHES = 60
CUT = (asyncio.IncompleteReadError, ConnectionError)


async def all_of(port: int, path: str, upto: int, dice: random.Random) -> list[int]:
    """The numbers that a client sees whose connection breaks again and again."""
    seen: list[int] = []
    last = ""
    while not seen or seen[-1] < upto:
        async with follow(port, path, last) as stream:
            for _ in range(dice.randint(1, upto)):
                told = await stream.told()
                if told.name != "agent.delta":
                    seen.append(told.json["seq"])
                if seen and seen[-1] >= upto:
                    break
            stream.cut()
            last = stream.last
    return seen


@pytest.mark.slow
async def test_many_see_every_event_once_and_in_order_across_reconnects(
    home: Home, opened: OpenHouse
) -> None:
    dice = random.Random(7)
    async with opened(sizes=Sizes(frames=100)) as house, served(house) as port:
        supervisor = house.supervisor
        made = await silent(home, supervisor)
        start = supervisor.get(made.id).seq
        counts = [dice.randint(1, 9) for _ in range(BATCHES)]
        upto = start + sum(counts)

        async def write() -> None:
            for count in counts:
                await grow(supervisor, made.id, *(["x" * dice.randint(1, 500)] * count))
                pass_by(supervisor, made.id, "piece")
                async with follow(port, f"/sessions/{made.id}/events?after=tip&live=false") as one:
                    await (
                        one.joined()
                    )  # as slow as a connection is made, so that some are at the end

        path = f"/sessions/{made.id}/events?after={start}"
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(write())
            clients = [
                group.create_task(all_of(port, path, upto, random.Random(seed)))
                for seed in range(CLIENTS)
            ]
        wanted = list(range(start + 1, upto + 1))
        assert [client.result() == wanted for client in clients] == [True] * CLIENTS


@asynccontextmanager
async def dropping(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[asyncio.Event]:
    """Set when a listener has left."""
    left = asyncio.Event()
    remove = Audience.remove

    def removed(audience: Audience, listener: Listener) -> None:
        remove(audience, listener)
        left.set()

    monkeypatch.setattr(Audience, "remove", removed)
    yield left


@pytest.mark.slow
async def test_a_client_that_takes_nothing_is_dropped_and_resumes_with_nothing_missing(
    home: Home, opened: OpenHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(stalled=0.2) as house, served(house) as port, dropping(monkeypatch) as left:
        supervisor = house.supervisor
        made = await silent(home, supervisor)
        start = supervisor.get(made.id).seq
        path = f"/sessions/{made.id}/events?after={start}"
        seen: list[Told] = []
        async with follow(port, path, is_narrow=True) as stream:
            upto = start
            while not left.is_set():
                upto = await grow(supervisor, made.id, *["x" * 20_000] * 20)
                with suppress(TimeoutError):
                    await asyncio.wait_for(left.wait(), 0.01)
            assert house.streams.audience.dropped == 1
            assert len(house.streams.audience) == 0
            with suppress(*CUT):
                while True:
                    seen.append(await stream.told())
        assert len(seen) < upto - start
        async with follow(port, path, stream.last) as again:
            while not seen or seen[-1].json["seq"] < upto:
                seen.append(await again.told())
        assert [told.json["seq"] for told in seen] == list(range(start + 1, upto + 1))


async def test_one_that_takes_nothing_keeps_nobody_else_waiting(home: Home, house: House) -> None:
    supervisor = house.supervisor
    made = await silent(home, supervisor)
    path = f"/sessions/{made.id}/events?after=tip"
    async with (
        served(house) as port,
        follow(port, path) as quick,
        follow(port, path, is_narrow=True),
    ):
        for number in range(100):
            await grow(supervisor, made.id, f"{number} " + "x" * 50_000)
            assert text_of(await quick.told()).startswith(f"{number} ")


async def test_a_client_that_leaves_is_forgotten(
    home: Home, opened: OpenHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as house, served(house) as port, dropping(monkeypatch) as left:
        made = await silent(home, house.supervisor)
        async with follow(port, f"/sessions/{made.id}/events") as stream:
            await stream.told()
            assert len(house.streams.audience) == 1
            stream.cut()
        async with asyncio.timeout(5):
            await left.wait()
        assert len(house.streams.audience) == 0
