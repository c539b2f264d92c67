"""Each test of approvals runs with every engine of the journal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bridle.approvals import Approvals, open_approvals
from bridle.journal import Journal

from ..journal.engines import ENGINES, Engine
from .helpers import TurnedClock, a_rule


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    return ENGINES[request.param](tmp_path / "home")


@pytest_asyncio.fixture
async def journal(engine: Engine) -> AsyncIterator[Journal]:
    async with engine.open() as opened:
        yield opened


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock()


@pytest_asyncio.fixture
async def approvals(journal: Journal, clock: TurnedClock) -> AsyncIterator[Approvals]:
    async with open_approvals(journal, clock=clock, check=a_rule) as opened:
        yield opened
