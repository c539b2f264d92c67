"""What a journal promises, whichever engine keeps it. Nothing above may assume more.

The one atomic unit is a batch on one stream: there is no transaction over two streams, over a
stream and a record, or over two records. What must be atomic rides in one batch. Whatever fails
says so, and then nothing of it is stored; after an error of `append` that is no WrongSequence or
InvalidEntry, read the stream's last number before trying again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from .anchors import Anchored, Kept, Line
from .events import Batch, BlobRef, Change, Durability, Event, Live, NewEvent, Record, StreamInfo
from .tombstones import DELETED

if TYPE_CHECKING:
    from .buckets import Bucket

T = TypeVar("T")


class Feed(Protocol):
    """A reader with its own cursor on one stream, or on many.

    Per stream it gives every stored event after the cursor exactly once and in order: first what
    is there, then what comes. A reader is never waited for. One that falls behind loses live
    events, and goes on from the log with no stored one missing.
    """

    def add(self, stream: str, after: int = 0) -> None:
        """Follow another stream too; one that does not exist yet is followed from its birth.

        A cursor that is ahead of its stream waits for what comes after it.
        """

    def remove(self, stream: str) -> None:
        """No longer follow this one; what was not given yet will not be."""

    def close(self) -> None:
        """End the iteration, at once. A feed that nobody holds any more is closed by itself."""

    def __aiter__(self) -> AsyncIterator[Batch]: ...

    async def __anext__(self) -> Batch:
        """The next events of one stream. It may be cancelled: nothing is lost by that."""


class EventLog(Protocol):
    """Streams of events, each written by one owner and read by anybody."""

    def append(
        self,
        stream: str,
        events: Sequence[NewEvent],
        expect_last_seq: int,
        durability: Durability = Durability.PROCESS,
    ) -> asyncio.Future[int]:
        """Append a batch and give its last number: all of it or nothing.

        - When the future has a result, the batch is stored as `durability` says. Nobody can see it
          before it is stored, and nobody ever sees a part of it.
        - Numbers start at 1 in each stream, have no gaps, and never start again.
        - `expect_last_seq` must be the stream's last number (0 for a new one), else WrongSequence.
        - Appends take effect in the order in which they were called on a stream: an owner need not
          wait for one before it makes the next. If one fails, those behind it that build on it do.
        - A body over 256 KB is stored as a blob first, then the event; others do not wait.
        - At most 1,000 events and 4 MB (not counting blobs) in a batch, else InvalidEntry;
          a name and a kind have at most 256 characters, all printable.
        - To cancel the future is to stop waiting: the batch may be stored all the same.
        """

    def publish(self, stream: str, events: Sequence[Live]) -> None:
        """Tell those who follow the stream now, after all that was appended before this call.

        Nothing is stored: who was not there, or has fallen behind, may never see it.
        """

    async def read(self, stream: str, after: int = 0, limit: int = 100) -> list[Event]:
        """Stored events with numbers above `after`, in order.

        At most `limit`, and fewer where they are large: an empty list is the end, a short one is
        not. A stream that does not exist is empty.
        """

    def follow(self, stream: str, after: int = 0) -> Feed:
        """History after the cursor, then what comes, with no gap and no double between the two."""

    async def info(self, stream: str) -> StreamInfo:
        """Its first and last numbers: 1 and 0 for a stream that does not exist."""

    async def streams(self, prefix: str = "") -> list[StreamInfo]:
        """All streams that have events and whose name starts so, by name."""

    async def delete(self, stream: str, expect_last_seq: int, why: str = DELETED) -> None:
        """Delete the stream's events, and the blobs that no other stream refers to.

        A sealed tombstone is left, which says when and `why`.

        Its numbers go on where they were if it is ever written again. An append that is underway
        may come before it or after.
        """


class Watch(Protocol):
    """The present state of a bucket's records, then its changes.

    The first list is the present state and may be empty. After that come changes in the order of
    their revisions, with no gap to the first list. Who is slow gets only the latest state of each
    record: no record's last change is ever missed, one before it may be.
    """

    def close(self) -> None:
        """End the iteration, at once. A watch that nobody holds any more is closed by itself."""

    def __aiter__(self) -> AsyncIterator[list[Change]]: ...

    async def __anext__(self) -> list[Change]: ...


class Records(Protocol):
    """Documents as bytes, by key, in buckets. `Bucket` makes typed ones of them.

    Each change of a bucket has a revision above all those before it in the bucket, deletions
    too, so a record that was deleted and made again never has an old revision. A change is durable
    when it returns, and not seen before it is; to cancel the call is to stop waiting for it. A key
    is at most 256 characters, a document 256 KB.
    """

    async def create(
        self, bucket: str, key: str, value: bytes, durability: Durability = Durability.PROCESS
    ) -> int:
        """Make a new record and give its revision; WrongRevision if there is one."""

    async def get(self, bucket: str, key: str) -> Record | None: ...

    async def put(
        self,
        bucket: str,
        key: str,
        value: bytes,
        expected_revision: int,
        durability: Durability = Durability.PROCESS,
    ) -> int:
        """Change the record if it is still at that revision (0: if there is none), else
        WrongRevision. Of any number who try it from one revision, one succeeds."""

    async def delete(
        self,
        bucket: str,
        key: str,
        expected_revision: int,
        durability: Durability = Durability.PROCESS,
    ) -> int:
        """Delete the record if it is still at that revision; the revision of the deletion."""

    async def list(self, bucket: str, prefix: str = "") -> list[Record]:
        """All records whose key starts so, by key, each as it was at some moment of the call."""

    def watch(self, bucket: str, prefix: str = "") -> Watch: ...


class Blobs(Protocol):
    """Large payloads by their hash."""

    async def put(self, data: bytes) -> BlobRef:
        """Store it, durably; storing the same again is the same blob.

        It is kept as long as an event refers to it, and at least until the journal is closed.
        """

    async def get(self, ref: BlobRef) -> bytes:
        """All of it, checked against its hash; else BlobLost."""


class Anchors(Protocol):
    """Where streams ended, as it was noted outside of the log: an engine may have none."""

    async def of(self, stream: str) -> Kept:
        """What is kept of the stream beside its events: its tombstone and its anchor."""

    async def all(self) -> Anchored | None:
        """All that are anchored, also those of which the log has nothing; None if none ever are."""

    async def lines(self) -> list[Line]:
        """As they were written."""

    async def accept(self, by: str, stream: str | None = None) -> dict[str, str]:
        """What does not fit is so on purpose, says `by`: it is anchored as it is. Of one stream, or
        of all and of the anchors themselves ("" is their name). Gives what it was, by stream."""


class Journal(Protocol):
    """An event log, records and blobs that belong together."""

    @property
    def log(self) -> EventLog: ...

    @property
    def records(self) -> Records: ...

    @property
    def blobs(self) -> Blobs: ...

    def bucket(self, name: str, kind: type[T]) -> Bucket[T]:
        """The records of one type: a msgspec Struct, or whatever msgspec can encode."""

    @property
    def anchors(self) -> Anchors: ...

    async def payload(self, event: Event) -> bytes:
        """All of what was appended: the event's body, or the blob where that is only the head."""

    async def aclose(self) -> None:
        """Store what was asked for, then close. Feeds and watches end."""
