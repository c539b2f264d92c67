"""Records over a store. Owns who watches what; does not store, and knows nothing of types."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from weakref import WeakSet

from ..errors import InvalidEntry, JournalClosed
from .bell import ONE_READER, Bell
from .entries import check_document, check_durability, check_name
from .events import Change, Durability, Gone, Record
from .store import Put, Store


class StoredRecords:
    """See `contract.Records` for what it promises."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watches: dict[str, WeakSet[StoredWatch]] = {}
        self._is_closed = False

    async def create(
        self, bucket: str, key: str, value: bytes, durability: Durability = Durability.PROCESS
    ) -> int:
        return await self.put(bucket, key, value, 0, durability)

    async def get(self, bucket: str, key: str) -> Record | None:
        self._check_open()
        return await self._store.record(bucket, key)

    async def put(
        self,
        bucket: str,
        key: str,
        value: bytes,
        expected_revision: int,
        durability: Durability = Durability.PROCESS,
    ) -> int:
        if type(value) is not bytes:
            raise InvalidEntry(f"a document is bytes, not {type(value).__name__}")
        return await self._put(bucket, key, value, expected_revision, durability)

    async def delete(
        self,
        bucket: str,
        key: str,
        expected_revision: int,
        durability: Durability = Durability.PROCESS,
    ) -> int:
        return await self._put(bucket, key, None, expected_revision, durability)

    async def list(self, bucket: str, prefix: str = "") -> list[Record]:
        self._check_open()
        return (await self._store.records(bucket, prefix))[1]

    def watch(self, bucket: str, prefix: str = "") -> StoredWatch:
        self._check_open()
        watch = StoredWatch(self._store, bucket, prefix)
        self._watches.setdefault(bucket, WeakSet()).add(watch)
        return watch

    def settled(self, write: Put) -> None:
        """The store has it, or never will: tell everybody."""
        if not write.error:
            change: Change
            if write.value is None:
                change = Gone(write.key, write.result)
            else:
                change = Record(write.key, write.result, write.value)
            for watch in self._watches.get(write.bucket, ()):
                watch.offer(change)
        write.tell()

    def close(self) -> None:
        self._is_closed = True

    def end_watches(self) -> None:
        for watches in self._watches.values():
            for watch in watches:
                watch.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise JournalClosed("the journal is closed")

    async def _put(
        self, bucket: str, key: str, value: bytes | None, expected: int, durability: Durability
    ) -> int:
        self._check_open()
        check_name("bucket", bucket)
        check_name("key", key)
        check_durability(durability)
        check_document(value)
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._store.submit(Put(bucket, key, value, expected, durability, future))
        return await future


class StoredWatch:
    """See `contract.Watch` for what it promises. What nobody has taken yet is kept once per key."""

    def __init__(self, store: Store, bucket: str, prefix: str) -> None:
        self._store = store
        self._bucket = bucket
        self._prefix = prefix
        self._revision: int | None = None  # of the present state, once it was given
        self._changes: dict[str, Change] = {}
        self._bell = Bell()
        self._is_reading = False
        self._is_closed = False

    def offer(self, change: Change) -> None:
        if change.key.startswith(self._prefix) and not self._is_closed:
            self._changes.pop(change.key, None)  # so that the order stays that of the revisions
            self._changes[change.key] = change
            self._bell.ring()

    def close(self) -> None:
        self._is_closed = True
        self._bell.ring()

    def __aiter__(self) -> AsyncIterator[list[Change]]:
        return self

    async def __anext__(self) -> list[Change]:
        if self._revision is None and not self._is_closed:
            present = await self._present()
            if not self._is_closed:
                return present
        while not self._is_closed:
            # Those that the present state had in it already came in while it was being read.
            new = [c for c in self._changes.values() if c.revision > (self._revision or 0)]
            self._changes.clear()
            if new:
                return new
            await self._bell.wait()
        raise StopAsyncIteration

    async def _present(self) -> list[Change]:
        if self._is_reading:
            raise RuntimeError(ONE_READER)
        self._is_reading = True
        try:
            self._revision, records = await self._store.records(self._bucket, self._prefix)
        except JournalClosed:
            self._is_closed = True
            return []
        finally:
            self._is_reading = False
        return list(records)
