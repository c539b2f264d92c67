"""What SQLite and the system say went wrong, in our words. Owns the translation only."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from ...errors import (
    DiskFull,
    JournalCorrupt,
    JournalError,
    JournalUnusable,
    JournalUnwritable,
)

FULL = {errno.ENOSPC, errno.EDQUOT}
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}
PROBE_SIZE = 64 * 1024
#: SQLite's primary codes; the rest of a code says more and is in its name.
_PRIMARY = 0xFF


def _is_full(folder: Path) -> bool:
    """SQLite does not say so of its shared memory and of quotas: try it."""
    probe = folder / "journal.probe"
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            if os.write(descriptor, bytes(PROBE_SIZE)) < PROBE_SIZE:
                return True
        finally:
            os.close(descriptor)
            probe.unlink()
    except OSError as error:
        return error.errno in FULL
    return False


def from_sqlite(error: sqlite3.Error, path: Path) -> JournalError:
    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
    what = f"{error} ({getattr(error, 'sqlite_errorname', type(error).__name__)})"
    match code:
        case sqlite3.SQLITE_FULL:
            return disk_full(path)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return corrupt(path, what)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN:
            return JournalUnwritable(f"the journal {path} can't be written: {what}")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return JournalUnwritable(
                f"the journal {path} is held by another program (a database browser?): {what}"
            )
        case sqlite3.SQLITE_IOERR:
            if _is_full(path.parent):
                return disk_full(path)
            return JournalUnwritable(f"the disk under the journal {path} fails: {what}")
        case _ if "decode" in str(error):  # Python's own, for text that is none
            return corrupt(path, what)
        case _:
            return JournalError(f"the journal {path}: {what}")


def from_system(error: OSError, path: Path) -> JournalError:
    if error.errno in FULL:
        return disk_full(path)
    if error.errno in _READ_ONLY:
        return JournalUnusable(
            f"the folder {path} can't be written ({error.strerror}):"
            " make it writable, or choose another home"
        )
    return JournalUnwritable(f"{error.filename or path}: {error.strerror or error}")


def not_a_place(error: OSError, folder: Path) -> JournalError:
    """What stands in the way of a journal in this folder."""
    if error.errno in FULL:
        return DiskFull(f"there is no space to open a journal in {folder}: free some")
    if error.errno in _READ_ONLY:
        return from_system(error, folder)
    return JournalUnusable(
        f"there can be no journal in {folder}: {error.filename or folder}:"
        f" {error.strerror or error}; remove what is in the way, or choose another home"
    )


def disk_full(path: Path) -> DiskFull:
    return DiskFull(
        f"there is no space left for the journal {path}: free some, and it goes on by itself;"
        " what was acknowledged is safe"
    )


def corrupt(path: Path, what: str) -> JournalCorrupt:
    return JournalCorrupt(
        f"the journal {path} is damaged or is no journal: {what}. Move it aside to start a new"
        " one; `sqlite3 FILE .recover` shows what can be saved"
    )
