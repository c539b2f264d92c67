"""Raw lines in a temporary file, first in, first out. The file has no name and dies with us."""

from __future__ import annotations

import os

LENGTH = 8
READ_AHEAD = 64 * 1024


class Spill:
    """A queue of lines on disk."""

    def __init__(self) -> None:
        # Imported here: most sessions never need it.
        import tempfile

        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed by `close`
        self._end = 0
        self._at = 0
        self._ahead = b""
        self._ahead_at = 0
        self.count = 0

    def append(self, line: bytes) -> bool:
        """False, and nothing changed, where the disk is full."""
        data = len(line).to_bytes(LENGTH, "little") + line
        try:
            written = os.pwrite(self._file.fileno(), data, self._end)
        except OSError:
            return False
        if written < len(data):
            return False
        self._end += written
        self.count += 1
        return True

    def pop(self) -> bytes:
        """The oldest line."""
        size = int.from_bytes(self._read(self._at, LENGTH), "little")
        line = self._read(self._at + LENGTH, size)
        self._at += LENGTH + size
        self.count -= 1
        return line

    def close(self) -> None:
        self._file.close()

    def __del__(self) -> None:
        # A turn may be dropped with messages that nobody has read.
        self.close()

    def _read(self, at: int, size: int) -> bytes:
        start = at - self._ahead_at
        if start < 0 or start + size > len(self._ahead):
            self._ahead = os.pread(self._file.fileno(), max(size, READ_AHEAD), at)
            self._ahead_at, start = at, 0
        return self._ahead[start : start + size]
