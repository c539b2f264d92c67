"""Small files of the home that are for its owner alone: written whole or not at all.

Owns how they are written and read; who may, is said by their rights (0600), also where they are
read: one that others can read is as good as lost.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

#: Others' rights.
_OTHERS = 0o077
MOST_BYTES = 64 * 1024


def write_private(path: Path, text: str) -> None:
    """In place of what is there, at once."""
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    with suppress(FileNotFoundError):
        new.unlink()  # of one who was killed, and had the same number
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(new, flags, 0o600)
    try:
        os.write(fd, text.encode())
        os.fsync(fd)
    finally:
        os.close(fd)
    new.replace(path)


def read_private(path: Path) -> str | None:
    """What is in it; None if it is not there, or not its owner's alone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        is_ours = found.st_uid == os.geteuid() and not found.st_mode & _OTHERS
        if not is_ours or not stat.S_ISREG(found.st_mode):
            return None
        return os.read(fd, MOST_BYTES).decode("utf-8", "replace")
    finally:
        os.close(fd)
