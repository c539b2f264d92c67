"""A house over a real home, and a client who speaks to its application as a person."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import httpx
import pytest

from bridle.server import owners
from bridle.server.access import Caller
from bridle.server.app import make_app
from bridle.server.house import House, open_house
from tests.supervisor.conftest import home, mark
from tests.supervisor.homes import Home

__all__ = ["home", "mark"]

PERSON = Caller(role="person", name="me", via="terminal")


@pytest.fixture
async def house(home: Home) -> AsyncIterator[House]:
    """Its agents are stopped when the test ends."""
    async with home.open() as supervisor, open_house(home.folder, supervisor) as house:
        yield house


@pytest.fixture
async def client(house: House) -> AsyncIterator[httpx.AsyncClient]:
    """A person, past the door."""
    async with client_of(house, PERSON) as client:
        yield client


def client_of(house: House, caller: Caller) -> httpx.AsyncClient:
    """Whoever it is, past the door."""
    transport = httpx.ASGITransport(make_app(house, caller))  # type: ignore[arg-type]
    return httpx.AsyncClient(transport=transport, base_url="http://localhost/api/v1")


@pytest.fixture
def all_is_seen() -> None:
    """What nobody holds might be held by one who hides."""
    _, hidden = owners._look({"nothing"})
    if any(owners._may_be(pid, os.geteuid()) for pid in hidden):
        pytest.skip("some processes of this user hide what they hold")
