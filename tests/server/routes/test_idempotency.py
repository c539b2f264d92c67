"""A request that is sent again under its key is done once, also when the server died in between."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from bridle.server.access import Caller
from bridle.server.house import House, open_house
from bridle.server.idempotency import BUCKET, KEPT_SECONDS, Keys
from bridle.views import stream
from tests.server.conftest import PERSON, client_of
from tests.supervisor.homes import LIMIT, TURN, Home, bodies

from .callers import refused, told
from .killed import Order

ROOT = Path(__file__).resolve().parents[3]
KEY = {"Idempotency-Key": "k1"}


def new(home: Home, **fields: Any) -> dict[str, Any]:
    return {"folder": str(home.work), "start": False, "prompt": "go", **fields}


@pytest.mark.slow
async def test_the_same_request_is_done_once_and_answered_twice(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    first = await client.post("/sessions", json=new(home), headers=KEY)
    assert "idempotency-replayed" not in first.headers
    told(await client.post(f"/sessions/{first.json()['id']}/resume"))  # it is not as it was
    again = await client.post("/sessions", json=new(home), headers=KEY)
    assert told(again, 201) == told(first, 201)
    assert again.headers["idempotency-replayed"] == "true"
    assert len(house.supervisor.list()) == 1


async def test_another_request_under_the_same_key_is_refused(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    told(await client.post("/sessions", json=new(home, name="a"), headers=KEY), 201)
    answer = await client.post("/sessions", json=new(home, name="b"), headers=KEY)
    assert refused(answer) == (422, "key_reused")
    answer = await client.post("/sessions/a/fork", json={}, headers=KEY)
    assert refused(answer) == (422, "key_reused")
    assert len(house.supervisor.list()) == 1


async def test_a_key_is_its_callers_own(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    first = told(await client.post("/sessions", json=new(home), headers=KEY), 201)
    async with client_of(house, Caller(role="person", name="ben")) as ben:
        second = told(await ben.post("/sessions", json=new(home), headers=KEY), 201)
    assert first["id"] != second["id"]


async def test_without_a_key_it_is_done_each_time(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    for _ in range(2):
        told(await client.post("/sessions", json=new(home)), 201)
    assert len(house.supervisor.list()) == 2


async def test_of_many_at_once_one_does_it_and_all_are_answered(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    async with asyncio.timeout(LIMIT):
        answers = await asyncio.gather(
            *(client.post("/sessions", json=new(home), headers=KEY) for _ in range(8))
        )
    assert {answer.json()["id"] for answer in answers} == {house.supervisor.list()[0].id}
    assert sum("idempotency-replayed" not in answer.headers for answer in answers) == 1
    assert house.keys._turns == {}


async def test_what_was_refused_may_be_asked_in_another_way(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    answer = await client.post("/sessions", json=new(home, policy="nothing"), headers=KEY)
    assert refused(answer) == (404, "unknown_policy")
    told(await client.post("/sessions", json=new(home), headers=KEY), 201)


@pytest.mark.parametrize("key", ["", "x" * 201, "a\tb", "ü".encode()])
async def test_a_key_is_short_and_printable(
    house: House, home: Home, client: httpx.AsyncClient, key: str | bytes
) -> None:
    headers: Any = {"Idempotency-Key": key}
    answer = await client.post("/sessions", json=new(home), headers=headers)
    assert answer.status_code == 400
    assert house.supervisor.list() == []


async def test_a_session_that_was_deleted_since_is_not_made_again(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    made = told(await client.post("/sessions", json=new(home), headers=KEY), 201)
    await house.supervisor.delete(made["id"])
    again = await client.post("/sessions", json=new(home), headers=KEY)
    assert told(again, 201)["id"] == made["id"]  # as it was answered then
    [record] = await house.supervisor.journal.records.list(BUCKET)
    bucket = house.keys._records
    intent = (await bucket.get(record.key)).value  # type: ignore[union-attr]
    # As if the server had died before it could note that it was done.
    await bucket.change(record.key, lambda _: msgspec.structs.replace(intent, answer=None))
    for _ in range(3):
        answer = await client.post("/sessions", json=new(home), headers=KEY)
        assert refused(answer) == (410, "deleted")
    assert house.supervisor.list() == []
    assert house.supervisor.list() == []


async def test_a_prompt_is_sent_once(house: House, home: Home, client: httpx.AsyncClient) -> None:
    await home.start(house.supervisor, *TURN * 3, name="a")
    await house.supervisor.wait("a", lambda record: record.turns == 1, LIMIT)
    body = {"prompt": "again"}
    first, again = [await client.post("/sessions/a/send", json=body, headers=KEY) for _ in range(2)]
    assert told(first, 202) == told(again, 202)
    assert again.headers["idempotency-replayed"] == "true"
    prompts: list[stream.Prompted] = await bodies(house.supervisor, "a", stream.PROMPTED)
    assert [one.uuid for one in prompts][1:] == [first.json()["uuid"]]


async def test_a_fork_is_made_once(house: House, home: Home, client: httpx.AsyncClient) -> None:
    await home.start(house.supervisor, *TURN, name="a")
    await house.supervisor.wait("a", lambda record: record.turns == 1, LIMIT)
    made = [told(await client.post("/sessions/a/fork", headers=KEY), 201) for _ in range(2)]
    assert made[0]["id"] == made[1]["id"]
    assert len(house.supervisor.list()) == 2


async def test_old_keys_are_forgotten_when_it_is_opened(house: House, home: Home) -> None:
    moment = [1_000.0]
    keys = Keys(house.supervisor.journal, lambda: moment[0])
    async with client_of(house, PERSON) as client:
        house.keys = keys
        told(await client.post("/sessions", json=new(home), headers=KEY), 201)
        moment[0] += KEPT_SECONDS - 1
        told(await client.post("/sessions", json=new(home), headers={"Idempotency-Key": "k2"}), 201)
        moment[0] += 2
        await keys.sweep()
    assert len(await house.supervisor.journal.records.list(BUCKET)) == 1


# --- over the death of the server


def kill(home: Home, point: str, path: str, body: dict[str, Any]) -> None:
    """Send the request to a server that dies there."""
    order = Order(str(home.folder), point, path, body, KEY["Idempotency-Key"])
    done = subprocess.run(
        [sys.executable, "-m", "tests.server.routes.killed"],
        input=msgspec.json.encode(order),
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


@asynccontextmanager
async def opened(home: Home) -> AsyncIterator[tuple[House, httpx.AsyncClient]]:
    async with (
        home.open(size=0) as supervisor,
        open_house(home.folder, supervisor) as house,
        client_of(house, PERSON) as client,
    ):
        yield house, client


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "is_done"),
    [
        ("the intent is written", False),
        ("the policy is applied", False),
        ("it is done", True),
        ("it is noted", True),
    ],
)
async def test_a_session_is_made_once_wherever_the_server_died(
    home: Home, point: str, is_done: bool
) -> None:
    kill(home, point, "/sessions", new(home, name="a"))
    async with opened(home) as (house, client):
        assert len(house.supervisor.list()) == is_done
        answers = [
            await client.post("/sessions", json=new(home, name="a"), headers=KEY) for _ in range(2)
        ]
        [record] = house.supervisor.list()
        assert [told(answer, 201)["id"] for answer in answers] == [record.id] * 2
        assert ("idempotency-replayed" in answers[0].headers) is is_done
        assert "idempotency-replayed" in answers[1].headers
        created = await bodies(house.supervisor, record.id, stream.CREATED)
        prompted = await bodies(house.supervisor, record.id, stream.PROMPTED)
        assert (len(created), len(prompted)) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "is_done"),
    [("the intent is written", False), ("it is done", True), ("it is noted", True)],
)
async def test_a_prompt_is_sent_once_wherever_the_server_died(
    home: Home, point: str, is_done: bool
) -> None:
    async with opened(home) as (house, client):
        body = new(home, name="a", start=True)
        del body["prompt"]
        told(await client.post("/sessions", json=body), 201)
    kill(home, point, "/sessions/a/send", {"prompt": "once"})
    async with opened(home) as (house, client):
        assert len(house.supervisor.get("a").waiting) == is_done
        answers = [
            await client.post("/sessions/a/send", json={"prompt": "once"}, headers=KEY)
            for _ in range(2)
        ]
        prompts: list[stream.Prompted] = await bodies(house.supervisor, "a", stream.PROMPTED)
        [uuid] = [one.uuid for one in prompts]
        assert [told(answer, 202)["uuid"] for answer in answers] == [uuid] * 2
        assert ("idempotency-replayed" in answers[0].headers) is is_done
