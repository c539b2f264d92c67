"""A store in memory: the same contract, for tests and for runs that need no memory of their own."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from hashlib import sha256

from ..errors import BlobLost, JournalClosed, JournalError, WrongSequence
from .anchors import Kept, Line
from .events import GENESIS, BlobRef, Event, Record, StreamInfo
from .store import Append, Put, Write
from .tombstones import Tombstone, tombstone


class _Stream:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.last_seq = 0
        self.deleted_seal = self.last_seal = GENESIS
        self.tombstone: Tombstone | None = None


class _Bucket:
    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.revision = 0


class MemoryStore:
    """Keeps everything as long as it lives itself; a journal over it may come and go."""

    def __init__(self) -> None:
        self._streams: dict[str, _Stream] = {}
        self._buckets: dict[str, _Bucket] = {}
        self._blobs: dict[str, bytes] = {}
        self._pins: Counter[str] = Counter()
        self._done: list[Write] = []
        self._is_open = False

    def start(self, settled: Callable[[list[Write]], None]) -> None:
        self._settled = settled
        self._loop = asyncio.get_running_loop()
        self._is_open = True

    def submit(self, write: Write) -> None:
        try:
            self._apply(write)
        except JournalError as error:
            write.error = error
        if not self._done:
            self._loop.call_soon(self._tell)
        self._done.append(write)

    async def read(self, stream: str, after: int, limit: int) -> list[Event]:
        self._check_open()
        found = self._streams.get(stream)
        if not found:
            return []
        start = bisect_right(found.events, after, key=lambda event: event.seq)
        return found.events[start : start + limit]

    async def info(self, stream: str) -> StreamInfo:
        found = self._streams.get(stream, _Stream())
        first = found.events[0].seq if found.events else found.last_seq + 1
        return StreamInfo(stream, first, found.last_seq, found.last_seal, found.deleted_seal)

    async def streams(self, prefix: str) -> list[StreamInfo]:
        names = [n for n, s in self._streams.items() if s.events and n.startswith(prefix)]
        return [await self.info(name) for name in sorted(names)]

    async def delete(self, stream: str, expect: int, why: str) -> None:
        found = self._streams.get(stream, _Stream())
        if found.last_seq != expect:
            raise WrongSequence(stream, expect, found.last_seq)
        gone, found.events = found.events, []
        found.deleted_seal = found.last_seal
        if gone:
            previous = found.tombstone.hash if found.tombstone else b""
            facts = (stream, expect, found.last_seal, time.time(), why, previous)
            found.tombstone = tombstone(*facts)
        kept = {e.blob.digest for s in self._streams.values() for e in s.events if e.blob}
        kept |= self._pins.keys()
        for event in gone:
            if event.blob and event.blob.digest not in kept:
                self._blobs.pop(event.blob.digest, None)

    async def kept(self, stream: str) -> Kept:
        found = self._streams.get(stream, _Stream())
        return Kept(await self.info(stream), found.tombstone)

    async def anchored(self) -> None:
        return None  # what could be anchored would be gone together with the anchors

    async def anchor_lines(self) -> list[Line]:
        return []

    async def accept(self, _by: str, _stream: str | None) -> dict[str, str]:
        return {}

    async def record(self, bucket: str, key: str) -> Record | None:
        found = self._buckets.get(bucket)
        return found.records.get(key) if found else None

    async def records(self, bucket: str, prefix: str) -> tuple[int, list[Record]]:
        found = self._buckets.get(bucket, _Bucket())
        matching = [r for key, r in sorted(found.records.items()) if key.startswith(prefix)]
        return found.revision, matching

    async def put_blob(self, data: bytes) -> BlobRef:
        self._check_open()
        digest = sha256(data).hexdigest()
        self._pins[digest] += 1
        self._blobs[digest] = bytes(data)
        return BlobRef(digest, len(data))

    def release_blobs(self, blobs: list[BlobRef]) -> None:
        self._pins -= Counter(blob.digest for blob in blobs)

    async def get_blob(self, ref: BlobRef) -> bytes:
        self._check_open()
        if ref.digest not in self._blobs:
            raise BlobLost(ref.digest, "is not there")
        return self._blobs[ref.digest]

    async def aclose(self) -> None:
        self._tell()
        self._is_open = False
        self._pins.clear()

    def _check_open(self) -> None:
        if not self._is_open:
            raise JournalClosed("the journal is closed")

    def _apply(self, write: Write) -> None:
        if isinstance(write, Append):
            stream = self._streams.get(write.stream) or _Stream()
            stream.last_seal = write.accept(stream.last_seq, stream.last_seal)
            stream.events += write.events
            stream.last_seq = write.result
            self._streams[write.stream] = stream
        elif isinstance(write, Put):
            bucket = self._buckets.setdefault(write.bucket, _Bucket())
            record = bucket.records.pop(write.key, None)
            try:
                write.accept(record.revision if record else 0, bucket.revision + 1)
            except JournalError:
                if record:
                    bucket.records[write.key] = record
                raise
            bucket.revision = write.result
            if write.value is not None:
                bucket.records[write.key] = Record(write.key, write.result, write.value)

    def _tell(self) -> None:
        done, self._done = self._done, []
        if done:
            self._settled(done)
