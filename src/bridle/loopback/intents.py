"""Calls that change something, and what is known of each before it does: so that it does so once.

Owns the records. A call is known by who calls and by its key; whoever repeats one, because the
answer was lost or a server was killed, finds out with its record how far the first one came.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid5

import msgspec
from msgspec import Struct, field

from ..errors import WrongRevision
from ..journal import Bucket, Journal

BUCKET = "loopback.calls"
KEPT_SECONDS = 7 * 24 * 3600.0
_SPACE = UUID("4b2f3d0e-6f0b-5d53-9a4e-0c1d7f1c8a11")


class Intent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Of a call to a session: where its stream and its view ended before it, and how many turns
    had ended."""

    session: str
    at: float
    seq: int = 0
    count: int = 0
    turns: int = 0


class _Turn(Struct):
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0


class Intents:
    """Of all agents."""

    def __init__(self, journal: Journal) -> None:
        self._bucket: Bucket[Intent] = journal.bucket(BUCKET, Intent)
        self._turns: dict[str, _Turn] = {}
        self._is_swept = False

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """The same call twice at a time: the second waits for the first."""
        turn = self._turns.setdefault(name, _Turn())
        turn.waiting += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                del self._turns[name]

    async def get(self, name: str) -> Intent | None:
        await self._sweep()
        found = await self._bucket.get(name)
        return found.value if found else None

    async def begin(self, name: str, intent: Intent) -> None:
        """It is about to be done."""
        try:
            await self._bucket.create(name, intent)
        except WrongRevision:  # it was about to be before
            return

    async def _sweep(self) -> None:
        """Forget those that nobody repeats any more, once for each opening."""
        if self._is_swept:
            return
        self._is_swept = True
        oldest = time.time() - KEPT_SECONDS
        for found in await self._bucket.list(where=lambda intent: intent.at < oldest):
            await self._bucket.delete(found.key, found.revision)


def name_of(caller: str, *key: str) -> str:
    """A uuid that is the same for the same call of the same caller, and no other's."""
    return str(uuid5(_SPACE, msgspec.json.encode([caller, *key]).decode()))
