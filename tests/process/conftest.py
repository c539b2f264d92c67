"""No process outlives the test that started it; one that does fails the test, and is ended."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bridle.process.child import ChildProcess
from bridle.process.spec import LaunchSpec

from .children import AT_ONCE, MARK, Heard, Lifeline, Start, marked


@pytest.fixture(autouse=True)
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What marks all that this test starts."""
    mark = secrets.token_hex(8)
    monkeypatch.setenv(MARK, mark)
    yield mark
    left = marked(mark)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == [], "left behind"


@pytest.fixture
def lifeline(mark: str, tmp_path: Path) -> Iterator[Lifeline]:
    lifeline = Lifeline(mark, tmp_path / "lifeline")
    yield lifeline
    lifeline.close()


@pytest_asyncio.fixture
async def start(mark: str) -> AsyncIterator[Start]:
    children: list[ChildProcess] = []

    async def start(command: list[str], **options: Any) -> tuple[ChildProcess, Heard]:
        child, heard = ChildProcess(LaunchSpec(command=command, **options)), Heard()
        children.append(child)
        await child.start(heard)
        return child, heard

    yield start
    for child in children:
        await child.stop(AT_ONCE)
