"""The tables of the file, and how an older file becomes one of today.

Events lie in the order in which they came, whichever stream they are of: to keep each stream
together was measured to be twice the work with a hundred of them. An event's key is its stream's id
and its number in one integer, and the index of keys is what a stream is read by.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec

from ...errors import JournalCorrupt, JournalTooNew
from ..events import GENESIS
from ..tombstones import tombstone

#: Says in the file's header that it is ours: "brdl".
APPLICATION_ID = 0x6272646C
SEQ_BITS = 40
SEQ_MASK = (1 << SEQ_BITS) - 1
#: Ids above would not fit beside a number into an integer of SQLite's.
MAX_STREAM = (1 << (63 - SEQ_BITS)) - 1

#: Each brings a file from the version that is its place here to the next. Never change one.
MIGRATIONS: tuple[str, ...] = (
    """
    -- Rows stay when their stream is deleted, so that numbers and seals go on where they were.
    CREATE TABLE stream (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      name TEXT NOT NULL UNIQUE,
      floor INTEGER NOT NULL DEFAULT 0,  -- events up to here are deleted
      floor_seal BLOB,                   -- hash of the last of those that was sealed
      seal BLOB                          -- hash of the last of all that was sealed
    );
    CREATE TABLE event (
      id INTEGER PRIMARY KEY,
      key INTEGER NOT NULL UNIQUE,       -- stream id << 40 | number
      at REAL NOT NULL,
      kind TEXT NOT NULL,
      body BLOB NOT NULL,
      blob BLOB,                         -- SHA-256 and size of a large payload
      seal BLOB                          -- hash of the sealed event before, and of this one
    );
    CREATE INDEX event_blob ON event (blob) WHERE blob IS NOT NULL;
    CREATE TABLE bucket (
      id INTEGER PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      revision INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE record (
      bucket INTEGER NOT NULL REFERENCES bucket (id),
      key TEXT NOT NULL,
      revision INTEGER NOT NULL,
      value BLOB NOT NULL,
      UNIQUE (bucket, key)
    );
    """,
    """
    -- How far the file of anchors goes, of what is on the disk: the last number, and its hash.
    CREATE TABLE anchor (number INTEGER NOT NULL, hash BLOB NOT NULL);
    INSERT INTO anchor VALUES (0, zeroblob(32));
    -- What is left of events that were deleted: JSON, sealed.
    ALTER TABLE stream ADD COLUMN tombstone BLOB;
    UPDATE stream SET tombstone = bridle_tombstone(name, floor, floor_seal) WHERE floor > 0;
    """,
)


def recognise(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse what is not ours, before anything of it is changed."""
    (ours,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and ours != APPLICATION_ID:
        raise JournalCorrupt(
            f"{path} is a database of another program: choose another home, or move it aside"
        )
    if version > len(MIGRATIONS):
        raise JournalTooNew(str(path), version, len(MIGRATIONS))


def migrate(connection: sqlite3.Connection) -> None:
    """Make the tables of a new file, or bring those of an older one up to date."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.create_function("bridle_tombstone", 3, _tombstone)
    for number, script in enumerate(MIGRATIONS[version:], version + 1):
        # One transaction each: a crash leaves the version before, whole.
        connection.executescript(
            f"BEGIN IMMEDIATE; {script}; PRAGMA user_version = {number};"
            f" PRAGMA application_id = {APPLICATION_ID}; COMMIT;"
        )


def _tombstone(name: str, floor: int, seal: bytes | None) -> bytes:
    """Of what was deleted before there were tombstones."""
    why = "deleted before there were tombstones"
    return msgspec.json.encode(tombstone(name, floor, seal or GENESIS, 0.0, why))


def known(name: str) -> str:
    """What can be no name is not there, nor is the empty one, which SQLite takes in any case."""
    return name if name.isprintable() else ""
