"""Houses whose streams are as a test wants them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import pytest

from bridle.server.house import House, open_house
from bridle.server.streams import StreamSettings
from tests.supervisor.homes import Home

OpenHouse: TypeAlias = Callable[..., AbstractAsyncContextManager[House]]


@pytest.fixture
def opened(home: Home) -> OpenHouse:
    """Open a house with these settings of its streams."""

    @asynccontextmanager
    async def open_it(**settings: Any) -> AsyncIterator[House]:
        async with (
            home.open() as supervisor,
            open_house(home.folder, supervisor, streams=StreamSettings(**settings)) as house,
        ):
            yield house

    return open_it
