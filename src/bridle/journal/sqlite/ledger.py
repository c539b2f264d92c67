"""Groups of writes as transactions. Owns what the writer remembers of streams and buckets.

A group of events for known streams is *one* statement: the interpreter's lock is let go once for
each step of SQLite, and a busy loop takes milliseconds to give it back, so a statement per event
would take a busy server a hundred times as long.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import msgspec

from ...errors import InvalidEntry, JournalError, WrongSequence
from ..anchors import Head
from ..events import BlobRef, Durability
from ..store import Append, Put, Write
from ..tombstones import tombstone
from .anchoring import Anchoring, head_of
from .readers import read_kept
from .schema import MAX_STREAM, SEQ_BITS, known

#: The sizes of statements that insert events; what is less than the least has one of its own size.
#: So there are few of them, and each is prepared once.
CHUNKS = (256, 64)
COLUMNS = 6


class Drop(Write):
    """The deletion of a stream's events, up to the expected last one. They are gone for readers at
    once; who asked removes the rows, a few at a time."""

    __slots__ = ("expect", "stream", "why")

    def __init__(self, stream: str, expect: int, why: str, future: Any) -> None:
        # It must not be refused on a full disk: to delete is how one gets space.
        super().__init__(Durability.POWER, future, 0)
        self.stream = stream
        self.expect = expect
        self.why = why


class Job(Write):
    """Something to do with the connection, in a turn of its own; `size` is what it may write."""

    __slots__ = ("run",)

    def __init__(self, run: Callable[[sqlite3.Connection], Any], future: Any, size: int) -> None:
        super().__init__(Durability.PROCESS, future, size)
        self.run = run


#: What changes the head of a stream.
_OF_STREAMS = (Append, Drop)


class _Head:
    __slots__ = ("first", "id", "mark", "seal", "seq")

    def __init__(self, id_: int, head: Head) -> None:
        self.id = id_
        self.first = head.first
        self.seq = head.last
        self.seal = head.seal
        self.mark = head.tombstone

    @property
    def now(self) -> Head:
        return Head(self.first, self.seq, self.seal, self.mark)


class _Bucket:
    __slots__ = ("id", "revision")

    def __init__(self, id_: int, revision: int) -> None:
        self.id = id_
        self.revision = revision


class Ledger:
    """Used by one thread."""

    def __init__(self, connection: sqlite3.Connection, anchoring: Anchoring) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._anchoring = anchoring
        self._heads: dict[str, _Head] = {}
        self._buckets: dict[str, _Bucket] = {}
        self._is_synchronous: bool | None = None

    def commit(self, group: Sequence[Write]) -> None:
        """Store all of the group that is not refused, in one transaction.

        A write that is refused has its error. If the transaction fails, it raises and may leave it
        open: to roll it back is the writer's.
        """
        self._synchronise(Durability.POWER in {write.durability for write in group})
        try:
            if all(map(self._is_plain, group)):
                self._commit_plain(group)
            else:
                self._commit_any(group)
        except BaseException:
            self.forget()
            for write in group:
                if type(write) is Drop:
                    self._anchoring.not_deleted(write.stream)
            raise
        self._anchor(group)

    def record(self, number: int, hash_: bytes, is_on_disk: bool) -> None:
        """How far the file of anchors goes. With `is_on_disk`, it is on the disk when this
        returns, with all that was committed before."""
        self._synchronise(is_on_disk)
        self._execute("BEGIN IMMEDIATE")
        self._execute("DELETE FROM anchor")
        self._execute("INSERT INTO anchor VALUES (?, ?)", (number, hash_))
        self._execute("COMMIT")

    def forget(self) -> None:
        """What is remembered may be wrong: look again."""
        self._heads.clear()
        self._buckets.clear()

    # --- groups

    def _is_plain(self, write: Write) -> bool:
        if type(write) is not Append or write.to_seal:
            return False
        head = self._heads.get(write.stream)
        return head is not None and head.id > 0

    def _commit_plain(self, group: Sequence[Write]) -> None:
        values: list[Any] = []
        for write in cast("Sequence[Append]", group):
            _try(self._append, write, values)
        is_one = len(values) <= CHUNKS[-1] * COLUMNS
        if not is_one:
            self._execute("BEGIN IMMEDIATE")
        self._insert(values)
        if not is_one:
            self._execute("COMMIT")

    def _commit_any(self, group: Sequence[Write]) -> None:
        self._execute("BEGIN IMMEDIATE")
        values: list[Any] = []
        for write in group:
            if isinstance(write, Append):
                _try(self._append, write, values)
            elif isinstance(write, Put):
                _try(self._put, write)
            elif isinstance(write, Drop):
                _try(self._drop, write)
        self._insert(values)
        self._execute("COMMIT")

    def _anchor(self, group: Sequence[Write]) -> None:
        heads: dict[str, Head] = {}
        on_disk: set[str] = set()
        for write in group:
            if not isinstance(write, _OF_STREAMS) or write.error or not write.result:
                continue
            if write.stream not in heads:
                heads[write.stream] = self._heads[write.stream].now
            if self._is_synchronous and (isinstance(write, Drop) or write.to_seal):
                on_disk.add(write.stream)
        if heads:
            self._anchoring.committed(heads, on_disk)

    # --- one write

    def _append(self, write: Append, values: list[Any]) -> None:
        head = self._head(write.stream)
        seal = write.accept(head.seq, head.seal)
        if head.id == 0:
            head.id = self._new_stream(write.stream)
        if seal != head.seal:
            self._execute("UPDATE stream SET seal = ? WHERE id = ?", (seal, head.id))
            head.seal = seal
        head.seq = write.result
        high = head.id << SEQ_BITS
        for event in write.events:
            blob = packed(event.blob) if event.blob else None
            seal_ = event.seal.previous + event.seal.hash if event.seal else None
            values += (high | event.seq, event.at, event.kind, event.body, blob, seal_)

    def _put(self, write: Put) -> None:
        bucket = self._bucket(write.bucket)
        where = (bucket.id, write.key)
        found = self._execute("SELECT revision FROM record WHERE bucket = ? AND key = ?", where)
        row = found.fetchone()
        write.accept(row[0] if row else 0, bucket.revision + 1)
        bucket.revision += 1
        if write.value is None:
            self._execute("DELETE FROM record WHERE bucket = ? AND key = ?", where)
        else:
            self._execute(
                "INSERT INTO record (bucket, key, revision, value) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (bucket, key)"
                " DO UPDATE SET revision = excluded.revision, value = excluded.value",
                (*where, write.result, write.value),
            )
        self._execute("UPDATE bucket SET revision = ? WHERE id = ?", (bucket.revision, bucket.id))

    def _drop(self, write: Drop) -> None:
        head = self._head(write.stream)
        if head.seq != write.expect:
            raise WrongSequence(write.stream, write.expect, head.seq)
        write.result = head.id
        if head.seq < head.first:
            return  # there is nothing
        left = tombstone(write.stream, head.seq, head.seal, time.time(), write.why, head.mark)
        head.first, head.mark = head.seq + 1, left.hash
        self._anchoring.announce(write.stream, head.now)
        self._execute(
            "UPDATE stream SET floor = ?, floor_seal = ?, tombstone = ? WHERE id = ?",
            (head.seq, head.seal, msgspec.json.encode(left), head.id),
        )

    def _insert(self, values: list[Any]) -> None:
        """The events whose columns these are."""
        start, left = 0, len(values) // COLUMNS
        while left:
            rows = next((size for size in CHUNKS if size <= left), left)
            end = start + rows * COLUMNS
            self._execute(_inserts(rows), values[start:end])
            start, left = end, left - rows

    # --- what is remembered

    def _head(self, name: str) -> _Head:
        head = self._heads.get(name)
        if head is None:
            head = self._heads[name] = self._load_head(name)
        return head

    def _load_head(self, name: str) -> _Head:
        row = self._execute("SELECT id FROM stream WHERE name = ?", (known(name),)).fetchone()
        kept = read_kept(self._connection, name, None)
        self._anchoring.loaded(kept)
        return _Head(row[0] if row else 0, head_of(kept))

    def _new_stream(self, name: str) -> int:
        id_ = self._execute("INSERT INTO stream (name) VALUES (?)", (name,)).lastrowid or 0
        if id_ > MAX_STREAM:
            self._execute("DELETE FROM stream WHERE id = ?", (id_,))
            raise InvalidEntry(f"a journal has room for {MAX_STREAM} streams: start a new one")
        return id_

    def _bucket(self, name: str) -> _Bucket:
        bucket = self._buckets.get(name)
        if bucket is None:
            found = self._execute("SELECT id, revision FROM bucket WHERE name = ?", (name,))
            row = found.fetchone()
            if not row:
                row = self._execute("INSERT INTO bucket (name) VALUES (?)", (name,)).lastrowid, 0
            bucket = self._buckets[name] = _Bucket(*row)
        return bucket

    def _synchronise(self, is_wanted: bool) -> None:
        """With FULL, a commit waits for the disk; it takes all commits before it along."""
        if is_wanted is not self._is_synchronous:
            self._execute(f"PRAGMA synchronous = {'FULL' if is_wanted else 'NORMAL'}")
            self._is_synchronous = is_wanted


def _try(do: Callable[..., None], write: Write, *more: Any) -> None:
    """A refusal is the write's own; it has changed nothing."""
    write.error = None
    try:
        do(write, *more)
    except JournalError as error:
        write.error = error


@cache
def _inserts(rows: int) -> str:
    values = ",".join(["(?,?,?,?,?,?)"] * rows)
    return f"INSERT INTO event (key, at, kind, body, blob, seal) VALUES {values}"


def packed(blob: BlobRef) -> bytes:
    return bytes.fromhex(blob.digest) + blob.size.to_bytes(8, "big")
