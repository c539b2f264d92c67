"""Requests that are made twice and done once: by a key that the caller has chosen.

Owns the records of keys. What will be made has its id before anything is done: the record is
written first, so that after a crash a retry finds out whether it was done, and does it with the
same id if it was not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ..errors import BridleError
from ..ids import new_uuid
from ..journal import Bucket, Journal
from .access import Caller
from .problems import Problem
from .troubles import trouble_of

BUCKET = "idempotency"
HEADER = "Idempotency-Key"
REPLAYED = {"Idempotency-Replayed": "true"}
LONGEST_KEY = 200
KEPT_SECONDS = 24 * 3600.0


class Intent(Struct, frozen=True, kw_only=True):
    """What a key was used for. `id` is that of what is made, `seq` the last event of the session's
    stream before it; without an `answer` it may not be done yet."""

    digest: str
    id: str
    at: float
    seq: int = 0
    status: int = 0
    answer: str | None = None


class Done(Struct, frozen=True):
    """What was answered; `is_replayed`: it had been done before."""

    status: int
    body: bytes
    is_replayed: bool = False

    @property
    def headers(self) -> dict[str, str]:
        return REPLAYED if self.is_replayed else {}


class _Turn(Struct):
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0


#: Does it with this id; with the second, finds out first whether it was done.
Doing = Callable[[Intent, bool], Awaitable[Done]]


class Keys:
    """The keys of a home's callers."""

    def __init__(self, journal: Journal, now: Callable[[], float]) -> None:
        self._records: Bucket[Intent] = journal.bucket(BUCKET, Intent)
        self._now = now
        #: Those who come with the same key at the same time: one does it, the others wait for that.
        self._turns: dict[str, _Turn] = {}

    async def sweep(self) -> None:
        """Forget those that nobody comes back for."""
        oldest = self._now() - KEPT_SECONDS
        for found in await self._records.list(where=lambda intent: intent.at < oldest):
            await self._records.delete(found.key, found.revision)

    async def once(
        self,
        caller: Caller,
        key: str | None,
        request: tuple[str, object],
        do: Doing,
        last_seq: Callable[[], Awaitable[int]] | None = None,
    ) -> Done:
        """Do it, unless it was done under this key. `request` is what is asked of whom, which must
        be the same each time; `last_seq` tells where the stream ends that it will be written to."""
        digest = sha256(msgspec.json.encode(request)).hexdigest()
        if key is None:
            return await do(Intent(digest=digest, id=new_uuid(), at=self._now()), False)
        name = _name(caller, key)
        turn = self._turns.setdefault(name, _Turn())
        turn.waiting += 1
        try:
            async with turn.lock:
                return await self._once(name, digest, do, last_seq)
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                del self._turns[name]

    async def _once(
        self,
        name: str,
        digest: str,
        do: Doing,
        last_seq: Callable[[], Awaitable[int]] | None,
    ) -> Done:
        found = await self._records.get(name)
        if found is None:
            seq = await last_seq() if last_seq else 0
            intent = Intent(digest=digest, id=new_uuid(), at=self._now(), seq=seq)
            await self._records.create(name, intent)
            return await self._do(name, intent, do, False)
        intent = found.value
        if intent.digest != digest:
            raise Problem(
                422,
                "key_reused",
                f"This {HEADER} was used for another request.",
                "Use a new key for each thing that you want done.",
            )
        if intent.answer is not None:
            return Done(intent.status, intent.answer.encode(), True)
        return await self._do(name, intent, do, True)

    async def _do(self, name: str, intent: Intent, do: Doing, is_retry: bool) -> Done:
        try:
            done = await do(intent, is_retry)
        except (BridleError, Problem) as error:
            problem = error if isinstance(error, Problem) else trouble_of(error)
            # It was refused, and may be asked in another way. But what was done once and is gone is
            # gone for whoever asks again, too.
            if problem.status < 500 and problem.status != 410:
                await self._forget(name)
            raise
        answer = replace(intent, status=done.status, answer=done.body.decode())
        await self._records.change(name, lambda _: answer)
        return done

    async def _forget(self, name: str) -> None:
        found = await self._records.get(name)
        if found:
            await self._records.delete(name, found.revision)


def checked_key(given: str | None) -> str | None:
    """A key as the header has it."""
    if given is None:
        return None
    if not given or len(given) > LONGEST_KEY or not (given.isascii() and given.isprintable()):
        words = f"{HEADER} has 1 to {LONGEST_KEY} characters, all printable."
        raise Problem(400, "invalid_key", words, "Use a new uuid for each request.")
    return given


def _name(caller: Caller, key: str) -> str:
    """Whose key it is: another's is another one."""
    return sha256(msgspec.json.encode([caller.role, caller.name, key])).hexdigest()
