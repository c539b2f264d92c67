"""The file of anchors beside the database: lines are put at its end, in one write each time.

Owns the file; what the lines say is `anchors`'.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from ..anchors import ENCODER, Line, Reading, read_lines
from ..files import sync, sync_folder

NAME = "journal.anchors"


class AnchorFile:
    """Used by one thread, the writer's."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._descriptor = -1
        self._size = 0
        self.is_synced = True

    @property
    def size(self) -> int:
        return self._size

    def read(self) -> Reading:
        """What is in it now. From any thread."""
        data = b""
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(self.path.stat().st_mode):  # a pipe would never end
                raise OSError(errno.EINVAL, "it is no file")
            data = self.path.read_bytes()
        return read_lines(data)

    def load(self) -> Reading:
        """What is in it; the next line will be put behind the lines that are whole."""
        found = self.read()
        self._size = found.size
        return found

    def cut(self) -> None:
        """What is behind the lines that are whole is gone."""
        with contextlib.suppress(OSError):  # else the next line is written over it
            os.truncate(self.path, self._size)

    def append(self, lines: list[Line]) -> None:
        if self._descriptor < 0:
            self._open()
        data = _encoded(lines)
        self.is_synced = False
        try:
            if os.pwrite(self._descriptor, data, self._size) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        except OSError:
            with contextlib.suppress(OSError):  # else the next write is over it
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)

    def sync(self) -> None:
        """Wait until the disk has all of it."""
        if not self.is_synced:
            sync(self._descriptor)
            self.is_synced = True

    def replace(self, lines: list[Line]) -> None:
        """A new file with these lines takes its place, whole or not at all."""
        half = self.path.with_name(f"{NAME}.part")
        data = _encoded(lines)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with os.fdopen(os.open(half, flags, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            sync(file.fileno())
        half.replace(self.path)
        self.close()
        self._size = len(data)
        self.is_synced = True
        with contextlib.suppress(OSError):  # it has its name all the same
            sync_folder(self.path.parent)

    def set_aside(self) -> None:
        """Keep a file that is not what it was; of several the first."""
        aside = self.path.with_name(f"{NAME}.bad")
        if not aside.exists():
            with contextlib.suppress(OSError):
                os.link(self.path, aside)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        is_new = not self.path.exists()
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW
        self._descriptor = os.open(self.path, flags, 0o600)
        os.fchmod(self._descriptor, 0o600)
        os.ftruncate(self._descriptor, self._size)
        if is_new:
            sync_folder(self.path.parent)


def _encoded(lines: list[Line]) -> bytes:
    return b"".join(ENCODER.encode(line) + b"\n" for line in lines)
