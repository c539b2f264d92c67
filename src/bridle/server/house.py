"""What every route works with: the supervisor, who may come in, and what is told to many.

Made once by `open_house`; routes get it as `house`. Owns nothing itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

from litestar.di import NamedDependency
from msgspec import Struct, field

from ..supervisor import Supervisor
from .bodies import BodyLimits
from .idempotency import Keys
from .login import Tickets
from .metrics import Metrics, open_metrics
from .policies import KeptPolicies
from .redaction import Redactor
from .streams import Streams, StreamSettings, open_streams
from .tokens import Tokens


class House(Struct):
    """Parts are added here by those who make them; a route takes what it needs."""

    home: Path
    supervisor: Supervisor
    streams: Streams
    tokens: Tokens
    tickets: Tickets
    keys: Keys
    policies: KeptPolicies
    metrics: Metrics
    redactor: Redactor
    now: Callable[[], float] = time.time
    started_at: float = field(default_factory=time.time)
    #: Set when the server is about to end: streams come to their end then, so that it can.
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    bodies: BodyLimits = BodyLimits()
    #: Where it is served; "" where it is not.
    url: str = ""

    def disk_free(self) -> int:
        return shutil.disk_usage(self.home).free

    def journal_size(self) -> int:
        """Of the log itself, without large payloads."""
        size = 0
        for file in self.home.glob("journal.db*"):
            with contextlib.suppress(FileNotFoundError):  # one beside it comes and goes
                size += file.stat().st_size
        return size


#: The type of a route's parameter `house`.
TheHouse: TypeAlias = NamedDependency[House]


@asynccontextmanager
async def open_house(
    home: Path,
    supervisor: Supervisor,
    *,
    streams: StreamSettings | None = None,
    now: Callable[[], float] = time.time,
) -> AsyncIterator[House]:
    closing = asyncio.Event()
    tokens = Tokens(supervisor.journal, now)
    await tokens.load()

    def held() -> set[str]:
        return {token.id for token in tokens.list()}

    keys = Keys(supervisor.journal, now)
    await keys.sweep()
    async with (
        open_streams(supervisor, now, closing, held, streams) as opened,
        open_metrics(supervisor) as metrics,
    ):
        yield House(
            home,
            supervisor,
            opened,
            tokens,
            Tickets(now),
            keys,
            KeptPolicies(supervisor.journal, now),
            metrics,
            Redactor(os.environ, lambda: supervisor.secret_values.all),
            now=now,
            started_at=now(),
            closing=closing,
        )
