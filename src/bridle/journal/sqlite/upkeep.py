"""What a file needs now and then: removing, tidying up, checking. In steps that hold nobody up."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from msgspec import Struct

from ...errors import JournalClosed, JournalError
from .blobs import BlobFiles
from .readers import unpacked_blob
from .schema import SEQ_BITS, SEQ_MASK

#: How much one turn of the writer removes, and what it writes for that, about.
DROP_ROWS = 500
DROP_BYTES = 4 * 1024 * 1024
VACUUM_PAGES = 256
VACUUM_BYTES = VACUUM_PAGES * 4096
#: How many of the file's own complaints are told.
COMPLAINTS = 20


class Health(Struct, frozen=True):
    """What `check` found: how much there is, and everything that is wrong with it. (Whether what is
    there was changed by somebody is `verify`'s to say, for events that are sealed.)"""

    streams: int
    events: int
    blobs: int
    problems: list[str]

    @property
    def is_sound(self) -> bool:
        return not self.problems


def drop_rows(connection: sqlite3.Connection, id_: int, upto: int, blobs: BlobFiles) -> bool:
    """Remove some events of a deleted stream. Whether there may be more."""
    low = id_ << SEQ_BITS
    rows = connection.execute(
        "SELECT key, length(body), blob FROM event WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?",
        (low, low | upto, DROP_ROWS),
    )
    last, size, unused = 0, 0, []
    for key, length, blob in rows.fetchall():
        if size > DROP_BYTES:
            break
        last, size = key, size + length
        if blob:
            unused.append(unpacked_blob(blob).digest)
    if not last:
        return False
    connection.execute("DELETE FROM event WHERE key BETWEEN ? AND ?", (low, last))
    sweep_blobs(connection, unused, blobs)
    return True


def unfinished_drops(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    """Deleted streams whose rows we had no time to remove."""
    return connection.execute(
        f"SELECT id, floor FROM stream WHERE floor > 0 AND EXISTS (SELECT 1 FROM event WHERE key"
        f" BETWEEN id << {SEQ_BITS} AND (id << {SEQ_BITS} | floor))"
    ).fetchall()


def sweep_blobs(connection: sqlite3.Connection, digests: list[str], blobs: BlobFiles) -> None:
    """Remove those of them that no event refers to."""
    for digest in digests:
        blobs.remove(digest, lambda digest=digest: _is_used(connection, digest))  # type: ignore[misc]


def vacuum_step(connection: sqlite3.Connection) -> bool:
    """Give some pages back to the disk. Whether there are more, and it gets on."""
    (before,) = connection.execute("PRAGMA freelist_count").fetchone()
    connection.execute(f"PRAGMA incremental_vacuum({VACUUM_PAGES})").fetchall()
    (left,) = connection.execute("PRAGMA freelist_count").fetchone()
    if not left:
        # That is what shortens the file. It waits for nobody who reads.
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    return bool(0 < left < before)


class Check:
    """One look at everything. What is too damaged to be looked at is a problem as well, and keeps
    nobody from the rest."""

    def __init__(
        self, connection: sqlite3.Connection, blobs: BlobFiles, goes_on: Callable[[], bool]
    ) -> None:
        self._execute = connection.execute
        self._connection = connection
        self._blobs = blobs
        self._goes_on = goes_on
        self._streams = self._events = self._payloads = 0
        self._problems: list[str] = []

    def health(self) -> Health:
        for look in (self._look_at_structure, self._look_at_streams, self._look_at_payloads):
            try:
                look()
            except sqlite3.Error as error:
                self._problems.append(str(error))
        return Health(self._streams, self._events, self._payloads, self._problems)

    def _look_at_structure(self) -> None:
        found = [row[0] for row in self._execute(f"PRAGMA integrity_check({COMPLAINTS})")]
        self._problems += [] if found == ["ok"] else found

    def _look_at_streams(self) -> None:
        for name, floor, count, last in self._execute(_COUNTS):
            self._streams += 1
            self._events += count
            if missing := last - floor - count:
                self._problems.append(f"stream {name!r} lacks {missing} of its events")
        (strays,) = self._execute(_STRAYS).fetchone()
        if strays:
            self._problems.append(f"{strays} events are of no stream")

    def _look_at_payloads(self) -> None:
        refs = {unpacked_blob(row[0]) for row in self._execute(_BLOBS).fetchall()}
        self._payloads = len(refs)
        for ref in refs:
            if not self._goes_on():
                raise JournalClosed("the journal was closed before all of it was checked")
            try:
                self._blobs.get(ref)
            except JournalError as error:
                if _is_used(self._connection, ref.digest):  # else it was deleted while we looked
                    self._problems.append(str(error))


_STRAYS = f"SELECT count(*) FROM event WHERE key >> {SEQ_BITS} NOT IN (SELECT id FROM stream)"
_BLOBS = f"""
SELECT DISTINCT e.blob FROM event e JOIN stream s ON s.id = e.key >> {SEQ_BITS}
WHERE e.blob IS NOT NULL AND e.key & {SEQ_MASK} > s.floor
"""
_USED = f"""
SELECT 1 FROM event e JOIN stream s ON s.id = e.key >> {SEQ_BITS}
WHERE e.blob >= ? AND e.blob < ? AND e.key & {SEQ_MASK} > s.floor LIMIT 1
"""
_COUNTS = f"""
SELECT s.name, s.floor, count(*), max(e.key) & {SEQ_MASK} FROM stream s JOIN event e
ON e.key > (s.id << {SEQ_BITS} | s.floor) AND e.key <= (s.id << {SEQ_BITS} | {SEQ_MASK})
GROUP BY s.id
"""


def _is_used(connection: sqlite3.Connection, digest: str) -> bool:
    start = bytes.fromhex(digest)
    return connection.execute(_USED, (start, start + b"\xff" * 9)).fetchone() is not None
