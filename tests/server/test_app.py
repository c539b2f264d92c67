"""The application past the door."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from bridle.server.app import make_app
from bridle.server.house import House, open_house
from bridle.supervisor import open_supervisor
from tests.supervisor.homes import TURN, Home

from .conftest import PERSON, client_of


async def test_a_caller_that_is_given_is_whoever_asks(client: httpx.AsyncClient) -> None:
    answer = await client.get("/me")
    assert answer.json() == {
        "role": PERSON.role,
        "name": PERSON.name,
        "via": PERSON.via,
        "session": "",
        "token": "",
    }


async def test_without_a_door_it_refuses_everybody(house: House) -> None:
    transport = httpx.ASGITransport(make_app(house))  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/api/v1/me", headers={"authorization": "Bearer x"})
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")


async def test_two_houses_in_one_process_know_nothing_of_each_other(
    home: Home, house: House, tmp_path: Path
) -> None:
    await home.start(house.supervisor, *TURN, name="one")
    other = tmp_path / "other"
    async with (
        open_supervisor(other) as supervisor,
        open_house(other, supervisor) as empty,
        client_of(house, PERSON) as here,
        client_of(empty, PERSON) as there,
    ):
        assert (await here.get("/sessions/one")).json()["name"] == "one"
        assert (await there.get("/sessions/one")).status_code == 404


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("/sessions?stat=idle", "Do you mean `state`?"),
        ("/sessions?state=idle&zzz=1", "There are `state`, `label`"),
        ("/tokens?limit=3", "this address has none"),
        ("/approvals/x/explain?session=y", ""),
    ],
)
async def test_a_parameter_that_nobody_reads_is_refused_with_the_nearest_one(
    client: httpx.AsyncClient, path: str, remedy: str
) -> None:
    told = (await client.get(path)).json()
    assert (told["status"], told["code"]) == (400, "unknown_parameter")
    assert remedy in told["remedy"]
    assert told["about"]["field"] in path


async def test_parameters_that_a_route_reads_by_another_name_are_known(
    client: httpx.AsyncClient,
) -> None:
    answer = await client.get("/sessions?state=idle&label=a=b&limit=3&reveal=true")
    assert answer.status_code == 200, answer.text
