"""A home for a test's agents; what is left of them when it ends fails the test, and is ended."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journal.sqlite.disks import Disk, tmpfs
from tests.process.children import MARK

from .homes import Home

# What these compare is shown where it differs.
pytest.register_assert_rewrite("tests.supervisor.accounts", "tests.supervisor.killing")


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """What marks all that this test starts; agents have no other home than a new one."""
    mark = secrets.token_hex(8)
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "user" / ".claude"))
    (tmp_path / "user").mkdir()
    return mark


@pytest.fixture
def home(mark: str, tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path, mark)
    yield home
    assert home.end_all() == [], "left behind"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A small file system of its own."""
    with tmpfs(tmp_path / "disk") as mounted:
        yield mounted


@pytest.fixture
def small_home(disk: Disk, mark: str, tmp_path: Path) -> Iterator[Home]:
    """A home on it; all else is elsewhere."""
    home = Home(tmp_path, mark, disk.folder / "home")
    yield home
    assert home.end_all() == [], "left behind"
