"""What every route works with: the supervisor, who may come in, and what is told to many.

Made once by `open_house`; routes get it as `house`. Owns nothing itself.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct, field

from ..supervisor import Supervisor


class House(Struct):
    """Parts are added here by those who make them; a route takes what it needs."""

    home: Path
    supervisor: Supervisor
    now: Callable[[], float] = time.time
    started_at: float = field(default_factory=time.time)


@asynccontextmanager
async def open_house(home: Path, supervisor: Supervisor) -> AsyncIterator[House]:
    yield House(home, supervisor)
