"""The seam between the journal and what keeps it: writes in order, and reads beside them.

A store checks expectations, makes writes durable, and tells on the event loop which are settled,
in the order in which they were submitted. It knows nothing of feeds and watches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from ..errors import WrongRevision, WrongSequence
from .anchors import Anchored, Kept, Line
from .audit import seal
from .events import BlobRef, Durability, Event, Record, StreamInfo


class Write:
    """Something to store, and what became of it: `error`, or the `result` for who waits."""

    __slots__ = ("durability", "error", "future", "result", "size")

    def __init__(self, durability: Durability, future: asyncio.Future[Any], size: int) -> None:
        self.durability = durability
        self.future = future
        self.size = size
        self.result: Any = None
        self.error: Exception | None = None

    def tell(self) -> None:
        """Tell who waits, if somebody still does."""
        if self.future.done():
            return
        if self.error:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class Append(Write):
    """A batch of events that have their numbers already, for a stream that must end before them."""

    __slots__ = ("blobs", "events", "expect", "is_ready", "is_settled", "stream", "to_seal")

    def __init__(
        self,
        stream: str,
        expect: int,
        events: list[Event],
        to_seal: list[int],
        durability: Durability,
        future: asyncio.Future[int],
        size: int,
        is_ready: bool,
    ) -> None:
        super().__init__(durability, future, size)
        self.stream = stream
        self.expect = expect
        self.events = events
        self.to_seal = to_seal  # which of them join the audit chain
        self.blobs: list[BlobRef] = []  # what was stored for it
        self.is_ready = is_ready  # for the store: all its payloads are there
        self.is_settled = False

    def accept(self, last_seq: int, last_seal: bytes) -> bytes:
        """The stream's last seal after this batch. Raises if the stream ends elsewhere."""
        if last_seq != self.expect:
            raise WrongSequence(self.stream, self.expect, last_seq)
        for index in self.to_seal:
            sealed = seal(self.stream, self.events[index], last_seal)
            self.events[index] = sealed
            assert sealed.seal
            last_seal = sealed.seal.hash
        self.result = self.expect + len(self.events)
        return last_seal


class Put(Write):
    """A record's new value, or its deletion (None)."""

    __slots__ = ("bucket", "expected", "key", "value")

    def __init__(
        self,
        bucket: str,
        key: str,
        value: bytes | None,
        expected: int,
        durability: Durability,
        future: asyncio.Future[int],
    ) -> None:
        super().__init__(durability, future, len(value or b""))
        self.bucket = bucket
        self.key = key
        self.value = value
        self.expected = expected

    def accept(self, revision: int, next_revision: int) -> None:
        """Raises if the record is not at the expected revision (0: not there)."""
        # There is nothing to delete where nothing is, whatever was expected.
        if revision != self.expected or (self.value is None and not revision):
            raise WrongRevision(self.bucket, self.key, self.expected, revision)
        self.result = next_revision


class Store(Protocol):
    """Where a journal's bytes rest."""

    def start(self, settled: Callable[[list[Write]], None]) -> None:
        """From now on tell what is settled, on the running loop."""

    def submit(self, write: Write) -> None: ...

    async def read(self, stream: str, after: int, limit: int) -> list[Event]: ...

    async def info(self, stream: str) -> StreamInfo: ...

    async def streams(self, prefix: str) -> list[StreamInfo]: ...

    async def delete(self, stream: str, expect: int, why: str) -> None: ...

    async def kept(self, stream: str) -> Kept:
        """What is kept of a stream beside its events, of one moment."""

    async def anchored(self) -> Anchored | None:
        """None where there are no anchors."""

    async def anchor_lines(self) -> list[Line]: ...

    async def accept(self, by: str, stream: str | None, /) -> dict[str, str]: ...

    async def record(self, bucket: str, key: str) -> Record | None: ...

    async def records(self, bucket: str, prefix: str) -> tuple[int, list[Record]]:
        """Those of one moment, and the bucket's revision at that moment."""

    async def put_blob(self, data: bytes) -> BlobRef:
        """Store it, and keep it until it is released, whether an event refers to it or not."""

    def release_blobs(self, blobs: list[BlobRef]) -> None: ...

    async def get_blob(self, ref: BlobRef) -> bytes: ...

    async def aclose(self) -> None:
        """Settle what was submitted, then let go of everything."""
