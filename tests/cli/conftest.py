"""A person at a shell, for one test."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import forks
from .shells import Shell


@pytest.fixture(scope="session", autouse=True)
def forked() -> Iterator[None]:
    yield
    forks.close()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """All that it has started is ended with the test."""
    shell = Shell(tmp_path, secrets.token_hex(8))
    yield shell
    shell.end()
