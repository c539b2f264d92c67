"""What more than one part of the journal does with files."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

#: Elsewhere than on a Mac, fsync itself waits for the disk.
_FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)


def sync(descriptor: int) -> None:
    """Wait until the disk has it."""
    if _FULL_SYNC is None:
        os.fsync(descriptor)
    else:
        fcntl.fcntl(descriptor, _FULL_SYNC)


def sync_folder(folder: Path) -> None:
    """So that the names of new files in it survive a power loss too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)
