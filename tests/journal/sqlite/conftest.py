"""A folder for a journal, for tests of what is special to SQLite and to disks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .disks import KINDS, Disk


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where the test's journal is; nothing is there yet."""
    return tmp_path / "home"


@pytest.fixture(params=sorted(KINDS))
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    """A small file system of its own; the test closes what it opened there."""
    with KINDS[request.param](tmp_path / "disk") as mounted:
        yield mounted
