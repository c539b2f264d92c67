"""What somebody does who can write the home, and knows how the journal is kept."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import msgspec

from bridle.journal.anchors import ENCODER, Line, hash_of, read_lines
from bridle.journal.audit import hash_of as seal_of
from bridle.journal.events import GENESIS
from bridle.journal.sqlite.anchor_file import NAME
from bridle.journal.sqlite.readers import read_events
from bridle.journal.sqlite.schema import SEQ_BITS, SEQ_MASK
from bridle.journal.tombstones import tombstone

from .files import raw


def anchor_file(home: Path) -> Path:
    return home / NAME


def lines_of(home: Path) -> list[Line]:
    found = read_lines(anchor_file(home).read_bytes())
    assert not found.problem
    return found.lines


def write_chain(home: Path, lines: list[Line]) -> None:
    """These lines as if they had been written so: numbers and hashes fit."""
    previous, number, written = lines[0].previous, lines[0].number, []
    for given in lines:
        line = msgspec.structs.replace(given, number=number)
        line = msgspec.structs.replace(line, hash=hash_of(line, previous))
        previous, number = line.hash, number + 1
        written.append(ENCODER.encode(line) + b"\n")
    anchor_file(home).write_bytes(b"".join(written))
    with raw(home) as journal:
        journal.execute("UPDATE anchor SET number = ?, hash = ?", (number - 1, previous))


def id_of(journal: sqlite3.Connection, stream: str) -> int:
    (found,) = journal.execute("SELECT id FROM stream WHERE name = ?", (stream,)).fetchone()
    assert isinstance(found, int)
    return found


def last_seal(journal: sqlite3.Connection, id_: int, upto: int) -> bytes | None:
    row = journal.execute(
        "SELECT seal FROM event WHERE key BETWEEN ? AND ? AND seal IS NOT NULL ORDER BY key DESC",
        (id_ << SEQ_BITS, id_ << SEQ_BITS | upto),
    ).fetchone()
    return bytes(row[0][32:]) if row else None


def cut_tail(home: Path, stream: str, last: int) -> None:
    """The events after this one are gone, and the seal is that of the one before."""
    with raw(home) as journal:
        id_ = id_of(journal, stream)
        journal.execute(
            "DELETE FROM event WHERE key BETWEEN ? AND ?",
            (id_ << SEQ_BITS | (last + 1), id_ << SEQ_BITS | SEQ_MASK),
        )
        seal = last_seal(journal, id_, last)
        journal.execute("UPDATE stream SET seal = ? WHERE id = ?", (seal, id_))


def cut_head(home: Path, stream: str, floor: int, *, is_forged: bool = False) -> None:
    """The events up to this one are gone, as if they had been deleted."""
    with raw(home) as journal:
        id_ = id_of(journal, stream)
        seal = last_seal(journal, id_, floor)
        journal.execute(
            "DELETE FROM event WHERE key BETWEEN ? AND ?",
            (id_ << SEQ_BITS, id_ << SEQ_BITS | floor),
        )
        journal.execute(
            "UPDATE stream SET floor = ?, floor_seal = ? WHERE id = ?", (floor, seal, id_)
        )
        if is_forged:
            left = tombstone(stream, floor, seal or GENESIS, 1.0, "deleted")
            text = msgspec.json.encode(left)
            journal.execute("UPDATE stream SET tombstone = ? WHERE id = ?", (text, id_))


def remove_stream(home: Path, stream: str) -> None:
    with raw(home) as journal:
        id_ = id_of(journal, stream)
        journal.execute("DELETE FROM event WHERE key >> ? = ?", (SEQ_BITS, id_))
        journal.execute("DELETE FROM stream WHERE id = ?", (id_,))


def seal_anew(home: Path, stream: str, seq: int, body: bytes) -> None:
    """One event says something else, and it and all after it are sealed anew."""
    with raw(home) as journal:
        id_ = id_of(journal, stream)
        key = id_ << SEQ_BITS | seq
        journal.execute("UPDATE event SET body = ? WHERE key = ?", (body, key))
        previous = GENESIS
        for event in read_events(journal, stream, 0, 1000):
            if event.seal:
                hash_ = seal_of(stream, event, previous)
                journal.execute(
                    "UPDATE event SET seal = ? WHERE key = ?",
                    (previous + hash_, id_ << SEQ_BITS | event.seq),
                )
                previous = hash_
        journal.execute("UPDATE stream SET seal = ? WHERE id = ?", (previous, id_))


def swap(home: Path, one: str, other: str) -> None:
    with raw(home) as journal:
        first, second = id_of(journal, one), id_of(journal, other)
        journal.execute("UPDATE stream SET name = '-' WHERE id = ?", (first,))
        journal.execute("UPDATE stream SET name = ? WHERE id = ?", (one, second))
        journal.execute("UPDATE stream SET name = ? WHERE id = ?", (other, first))


def copy_database(home: Path, into: Path) -> None:
    """All that was committed, as one file."""
    into.mkdir()
    with raw(home) as journal, closing(sqlite3.connect(into / "journal.db")) as copy:
        journal.backup(copy)


def put_back(home: Path, copy: Path) -> None:
    """The database is the older one again; the anchors are not."""
    for file in home.glob("journal.db*"):
        file.unlink()
    (home / "journal.db").write_bytes((copy / "journal.db").read_bytes())


def digest(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()
