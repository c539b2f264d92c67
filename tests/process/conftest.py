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

from bridle.ids import new_token
from bridle.process.child import ChildProcess
from bridle.process.detached import DetachedProcess
from bridle.process.spec import LaunchSpec
from bridle.process.spool import Spool
from bridle.process.wake import Wakes, open_wakes

from .children import AT_ONCE, MARK, Heard, Lifeline, Start, marked
from .spools import Detach, RunShim, TakeUp, shims


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


@pytest_asyncio.fixture
async def wakes(tmp_path: Path) -> AsyncIterator[Wakes]:
    wakes = await open_wakes(tmp_path)
    yield wakes
    wakes.close()


@pytest_asyncio.fixture
async def run_shim(mark: str, wakes: Wakes, tmp_path: Path) -> AsyncIterator[RunShim]:
    async with shims(wakes, mark, tmp_path) as run_shim:
        yield run_shim


@pytest_asyncio.fixture
async def detach(mark: str, wakes: Wakes, tmp_path: Path) -> AsyncIterator[Detach]:
    started: list[DetachedProcess] = []

    async def detach(command: list[str], **options: Any) -> tuple[DetachedProcess, Heard]:
        launch, heard = new_token(8), Heard()
        spec, spool = LaunchSpec(command=command, **options), Spool(tmp_path / launch)
        process = DetachedProcess(spec, spool, wakes, launch)
        started.append(process)
        await process.start(heard)
        return process, heard

    yield detach
    for process in started:
        await process.stop(AT_ONCE)
        process.release()


@pytest_asyncio.fixture
async def take_up(wakes: Wakes) -> AsyncIterator[TakeUp]:
    taken: list[DetachedProcess] = []

    def take_up(spool: Spool, launch: str) -> DetachedProcess:
        process = DetachedProcess(LaunchSpec(command=["true"]), spool, wakes, launch)
        taken.append(process)
        return process

    yield take_up
    for process in taken:
        await process.stop(AT_ONCE)
        process.release()
