"""The application past the door."""

from __future__ import annotations

import httpx

from bridle.server.app import make_app
from bridle.server.house import House

from .conftest import PERSON


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
