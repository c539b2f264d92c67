"""A place for a test's agents; what is left of them when it ends fails the test, and is ended."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.supervisor.conftest import home, mark

from .places import Place

__all__ = ["home", "mark"]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path, secrets.token_hex(8))
    yield place
    assert place.end_all() == [], "left behind"


@pytest_asyncio.fixture
async def served(place: Place) -> AsyncIterator[Place]:
    """The same, with a server."""
    await place.up()
    yield place
    await place.down()
