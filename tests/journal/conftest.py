"""Each test of the contract runs with every engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bridle.journal import Journal

from .engines import ENGINES, Engine


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    return ENGINES[request.param](tmp_path / "home")


@pytest_asyncio.fixture
async def journal(engine: Engine) -> AsyncIterator[Journal]:
    async with engine.open() as opened:
        yield opened
