"""A journal's files, as other programs and bad luck get at them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


def files_in(folder: Path, pattern: str = "**/*") -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if path.is_file())


@contextmanager
def raw(home: Path) -> Iterator[sqlite3.Connection]:
    """The database as another program opens it; each statement is a transaction of its own."""
    with closing(sqlite3.connect(home / "journal.db", isolation_level=None)) as connection:
        yield connection


def one(home: Path, query: str) -> int:
    with raw(home) as connection:
        value = connection.execute(query).fetchone()[0]
        assert isinstance(value, int)
        return value


def database(home: Path) -> Path:
    return home / "journal.db"


def log_of(home: Path) -> Path:
    return home / "journal.db-wal"


def size_of(path: Path) -> int:
    return path.stat().st_size


def content(path: Path) -> bytes:
    return path.read_bytes()


def flip(path: Path, offset: int, mask: int = 0xFF) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        (byte,) = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ mask]))
