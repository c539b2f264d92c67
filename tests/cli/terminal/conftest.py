"""A place for a test's agents; what is left of them when it ends fails the test, and is ended."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from .places import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path, secrets.token_hex(8))
    yield place
    assert place.end_all() == [], "left behind"
