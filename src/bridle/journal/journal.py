"""An event log, records and blobs over one store, as `contract.Journal` promises them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self, TypeVar

from ..errors import InvalidEntry
from .anchors import Anchored, Kept, Line
from .buckets import Bucket
from .contract import Journal
from .events import BlobRef, Event
from .log import Log
from .memory import MemoryStore
from .records import StoredRecords
from .store import Append, Put, Store, Write

T = TypeVar("T")

_log = logging.getLogger(__name__)


class StoredBlobs:
    """See `contract.Blobs` for what it promises."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, data: bytes) -> BlobRef:
        if type(data) is not bytes:
            raise InvalidEntry(f"a blob is bytes, not {type(data).__name__}")
        return await self._store.put_blob(data)

    async def get(self, ref: BlobRef) -> bytes:
        return await self._store.get_blob(ref)


class StoredAnchors:
    """See `contract.Anchors` for what it promises."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, stream: str) -> Kept:
        return await self._store.kept(stream)

    async def all(self) -> Anchored | None:
        return await self._store.anchored()

    async def lines(self) -> list[Line]:
        return await self._store.anchor_lines()

    async def accept(self, by: str, stream: str | None = None) -> dict[str, str]:
        return await self._store.accept(by, stream)


class StoredJournal:
    """Belongs to the event loop on which it was made. `async with` closes it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.log = Log(store)
        self.records = StoredRecords(store)
        self.blobs = StoredBlobs(store)
        self.anchors = StoredAnchors(store)
        self._closing: asyncio.Task[None] | None = None
        store.start(self._settled)

    def bucket(self, name: str, kind: type[T]) -> Bucket[T]:
        """The documents of one type."""
        return Bucket(self.records, name, kind)

    async def payload(self, event: Event) -> bytes:
        """All of what was appended: the event's body, or the blob where that is only the head."""
        return await self.blobs.get(event.blob) if event.blob else event.body

    async def aclose(self) -> None:
        """Store what was asked for, then close. Feeds and watches end."""
        self.log.close()
        self.records.close()
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())
        await asyncio.shield(self._closing)  # half closed, it would keep its lock

    async def _close(self) -> None:
        try:
            await self.log.drain()
        finally:
            try:
                await self._store.aclose()
            finally:
                self.log.end_feeds()
                self.records.end_watches()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _settled(self, writes: list[Write]) -> None:
        for write in writes:
            try:
                if isinstance(write, Append):
                    self.log.settled(write)
                elif isinstance(write, Put):
                    self.records.settled(write)
                else:
                    write.tell()
            except Exception:  # noqa: BLE001 - the others of the group have done nothing
                _log.exception("a mistake while others were told of something that was stored")
                write.tell()


@asynccontextmanager
async def memory_journal() -> AsyncIterator[Journal]:
    """A journal that is gone when it is closed."""
    async with StoredJournal(MemoryStore()) as journal:
        yield journal
