"""What is done when the disk is full: a ballast is dropped, and its space kept for last words."""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

from ..files import sync
from .failures import FULL

BALLAST_SIZE = 8 * 1024 * 1024
MARGIN = 1024 * 1024

_log = logging.getLogger(__name__)


class Space:
    """Whether there is space. Used by one thread, the writer's; others may look at `is_full`."""

    def __init__(self, ballast: Path) -> None:
        self._ballast = ballast
        self.is_full = not (self._has_ballast() or self._make())

    def ran_out(self) -> bool:
        """A write found no space. Whether dropping the ballast has made some."""
        was_there = self._has_ballast()
        if not self.is_full:
            self.is_full = True
            _log.warning("the disk is full: only what must not be lost is written until it is not")
        with contextlib.suppress(OSError):
            self._ballast.unlink()
        return was_there

    def has_returned(self) -> bool:
        """Look whether there is room for the ballast again; then everything may be written."""
        if self.is_full and self._make():
            self.is_full = False
            _log.warning("there is space on the disk again: the journal goes on")
        return not self.is_full

    def _has_ballast(self) -> bool:
        try:
            return self._ballast.stat().st_size == BALLAST_SIZE
        except OSError:
            return False

    def _make(self) -> bool:
        # With a margin, so that it does not come and go with each write; and looked at before it
        # is tried, so that a try does not take the last bytes.
        try:
            self._ballast.unlink(missing_ok=True)  # half of one is of no use
            if not has_room(self._ballast.parent, BALLAST_SIZE):
                return False
            with open(self._ballast, "wb", opener=_private) as file:
                _reserve(file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                self._ballast.unlink()
            if error.errno not in FULL:
                _log.warning("the journal has no ballast for a full disk: %s", error)
            return error.errno not in FULL
        return True


def has_room(folder: Path, size: int) -> bool:
    """Whether so much fits on the disk, and still leaves others some room."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize >= size + MARGIN


def _reserve(fd: int) -> None:
    """Blocks that nobody else gets; without writing them, where the system can do that."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, BALLAST_SIZE)
    else:
        os.write(fd, bytes(BALLAST_SIZE))
    sync(fd)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
