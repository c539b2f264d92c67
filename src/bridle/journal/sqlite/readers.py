"""Reads beside the writer: a few threads with a connection each, which see what is committed."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import local
from typing import TypeAlias, TypeVar

import msgspec

from ...errors import JournalClosed
from ..anchors import Anchor, Kept
from ..events import GENESIS, BlobRef, Event, Record, Seal, StreamInfo
from ..tombstones import Tombstone, unreadable
from .failures import corrupt, from_sqlite
from .schema import SEQ_BITS, SEQ_MASK, known

T = TypeVar("T")

THREADS = 2
#: A page of large events ends early.
MAX_READ_BYTES = 8 * 1024 * 1024

_READ = f"""
SELECT e.key & {SEQ_MASK}, e.at, e.kind, CAST(e.body AS BLOB), e.blob, e.seal
FROM stream s JOIN event e
ON e.key > (s.id << {SEQ_BITS} | max(s.floor, :after))
AND e.key <= (s.id << {SEQ_BITS} | {SEQ_MASK})
WHERE s.name = :stream ORDER BY e.key LIMIT :limit
"""
_INFO = f"""
SELECT s.name, s.floor, (SELECT max(key) & {SEQ_MASK} FROM event e WHERE e.key
BETWEEN s.id << {SEQ_BITS} AND (s.id << {SEQ_BITS} | {SEQ_MASK})), s.floor_seal, s.seal,
s.tombstone
FROM stream s
"""


_NEXT_SEAL = f"""
SELECT e.seal FROM stream s JOIN event e
ON e.key > (s.id << {SEQ_BITS} | :after) AND e.key <= (s.id << {SEQ_BITS} | {SEQ_MASK})
WHERE s.name = :stream AND e.seal IS NOT NULL ORDER BY e.key LIMIT 1
"""
_Row: TypeAlias = tuple[str, int, int | None, bytes | None, bytes | None, bytes | None]
_TOMBSTONE = msgspec.json.Decoder(Tombstone)


class Readers:
    def __init__(self, path: Path, threads: int = THREADS) -> None:
        self._path = path
        self._own = local()
        self._is_closed = False
        self._connections: list[sqlite3.Connection] = []
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="bridle-journal-read")

    async def run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """What the query finds, in one of the threads."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._pool, self._run, query)
        except sqlite3.Error as error:
            if self._is_closed:
                raise JournalClosed("the journal is closed") from error
            raise from_sqlite(error, self._path) from error
        except (TypeError, ValueError) as error:
            raise corrupt(self._path, f"a value of the wrong kind ({error})") from error
        except RuntimeError as error:
            if self._is_closed:
                raise JournalClosed("the journal is closed") from error
            raise

    def close(self) -> None:
        """What is being read is cut off: to check a large file would take minutes."""
        self._is_closed = True
        for connection in self._connections:
            connection.interrupt()
        self._pool.shutdown()
        for connection in self._connections:
            connection.close()

    def _run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        connection = getattr(self._own, "connection", None)
        if connection is None:
            connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA query_only = 1")
            self._own.connection = connection
            self._connections.append(connection)
        return query(connection)


def read_events(connection: sqlite3.Connection, stream: str, after: int, limit: int) -> list[Event]:
    events, size = [], 0
    given = {"stream": known(stream), "after": after, "limit": limit}
    with closing(connection.execute(_READ, given)) as rows:
        for seq, at, kind, body, blob, seal in rows:
            events.append(
                Event(seq, at, kind, body, unpacked_blob(blob) if blob else None, _seal(seal))
            )
            size += len(body)
            if size > MAX_READ_BYTES:
                break
    return events


def read_info(connection: sqlite3.Connection, stream: str) -> StreamInfo:
    row = connection.execute(f"{_INFO} WHERE s.name = ?", (known(stream),)).fetchone()
    return _info(row) if row else StreamInfo(stream, 1, 0)


def read_kept(connection: sqlite3.Connection, stream: str, anchor: Anchor | None) -> Kept:
    row = connection.execute(f"{_INFO} WHERE s.name = ?", (known(stream),)).fetchone()
    return _kept(row, anchor) if row else Kept(StreamInfo(stream, 1, 0), None, anchor)


def read_all_kept(connection: sqlite3.Connection, anchors: Mapping[str, Anchor]) -> list[Kept]:
    """Of all streams, those that are only anchored as well."""
    anchors = dict(anchors)
    rows = connection.execute(f"{_INFO} WHERE typeof(s.name) = 'text'").fetchall()
    found = [_kept(row, anchors.pop(row[0], None)) for row in rows]
    gone = [Kept(StreamInfo(name, 1, 0), None, anchor) for name, anchor in anchors.items()]
    return found + gone


def first_seal_after(connection: sqlite3.Connection, stream: str, after: int) -> Seal | None:
    row = connection.execute(_NEXT_SEAL, {"stream": known(stream), "after": after}).fetchone()
    return _seal(row[0]) if row else None


def read_streams(connection: sqlite3.Connection, prefix: str) -> list[StreamInfo]:
    where = "WHERE s.name >= ? AND s.name < ? ORDER BY s.name"
    infos = [_info(row) for row in connection.execute(f"{_INFO} {where}", _range(prefix))]
    return [info for info in infos if info.last_seq >= info.first_seq]


def read_record(connection: sqlite3.Connection, bucket: str, key: str) -> Record | None:
    row = connection.execute(
        "SELECT r.key, r.revision, r.value FROM bucket b JOIN record r ON r.bucket = b.id"
        " WHERE b.name = ? AND r.key = ?",
        (known(bucket), known(key)),
    ).fetchone()
    return Record(*row) if row else None


def read_records(
    connection: sqlite3.Connection, bucket: str, prefix: str
) -> tuple[int, list[Record]]:
    # One statement, so that the revision and the records are of one moment.
    rows = connection.execute(
        "SELECT b.revision, r.key, r.revision, r.value FROM bucket b LEFT JOIN record r"
        " ON r.bucket = b.id AND r.key >= ? AND r.key < ? WHERE b.name = ? ORDER BY r.key",
        (*_range(prefix), known(bucket)),
    ).fetchall()
    found = [Record(*row[1:]) for row in rows if row[1] is not None]
    return (rows[0][0] if rows else 0), found


def _range(prefix: str) -> tuple[str, str]:
    """All that starts so lies between these: no name has a character like the last one."""
    return (prefix, prefix + chr(sys.maxunicode)) if prefix.isprintable() else ("", "")


def _info(row: _Row) -> StreamInfo:
    name, floor, last, before, seal, _ = row
    return StreamInfo(name, floor + 1, max(floor, last or 0), _hash(seal), _hash(before))


def _hash(found: object) -> bytes:
    """What is none fits no event."""
    if found is None:
        return GENESIS
    return found if isinstance(found, bytes) else b""


def _kept(row: _Row, anchor: Anchor | None) -> Kept:
    info, text = _info(row), row[5]
    return Kept(info, unpacked_tombstone(text) if text else None, anchor)


def unpacked_tombstone(text: bytes) -> Tombstone:
    try:
        return _TOMBSTONE.decode(text)
    except (msgspec.MsgspecError, TypeError, ValueError):
        return unreadable()


def unpacked_blob(packed: bytes) -> BlobRef:
    return BlobRef(packed[:32].hex(), int.from_bytes(packed[32:], "big"))


def _seal(packed: bytes | None) -> Seal | None:
    return Seal(packed[:32], packed[32:]) if packed else None
