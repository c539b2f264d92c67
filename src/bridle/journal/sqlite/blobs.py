"""Large payloads as files, named by their SHA-256. Beside the database, so that a huge one passes
neither through the writer nor twice through the disk.

Used from several threads. A blob is *pinned* from before it is stored until the event that refers
to it is settled: what nothing refers to may be removed, unless it is pinned.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from threading import Condition

from ...errors import BlobLost, JournalError
from ...ids import new_token
from ..events import BlobRef
from ..files import sync, sync_folder
from .failures import from_system
from .space import has_room

#: A SHA-256: what has another name is not ours.
_DIGEST = re.compile("[0-9a-f]{64}")


class BlobFiles:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pins: Counter[str] = Counter()
        self._doomed: set[str] = set()  # are being removed
        self._lock = Condition()

    def put(self, data: bytes) -> BlobRef:
        """Store it on the disk and pin it."""
        ref = BlobRef(sha256(data).hexdigest(), len(data))
        with self._lock:
            self._pins[ref.digest] += 1
            self._lock.wait_for(lambda: ref.digest not in self._doomed)
        try:
            path = self._path(ref.digest)
            if not self._is_there(ref):
                self._write(path, data)
            for folder in (path.parent, self._folder):  # always: another thread may be before that
                sync_folder(folder)
        except (OSError, JournalError) as error:
            self.unpin(ref.digest)
            if isinstance(error, OSError):
                raise from_system(error, self._folder) from error
            raise
        return ref

    def get(self, ref: BlobRef) -> bytes:
        if not _DIGEST.fullmatch(ref.digest):
            raise BlobLost(ref.digest, "is no hash")
        try:
            data = self._path(ref.digest).read_bytes()
        except FileNotFoundError:
            raise BlobLost(ref.digest, "is not there") from None
        except OSError as error:
            raise from_system(error, self._folder) from error
        if sha256(data).hexdigest() != ref.digest:
            raise BlobLost(ref.digest, "was changed or damaged")
        return data

    def unpin(self, digest: str) -> None:
        with self._lock:
            self._pins[digest] -= 1
            if not self._pins[digest]:
                del self._pins[digest]

    def remove(self, digest: str, is_used: Callable[[], bool]) -> None:
        """Remove it, unless it is used or about to be. Who wants it meanwhile stores it again."""
        with self._lock:
            if digest in self._pins:
                return
            self._doomed.add(digest)
        try:
            if not is_used():
                with contextlib.suppress(OSError):  # the next sweep may do it
                    self._path(digest).unlink()
        finally:
            with self._lock:
                self._doomed.discard(digest)
                self._lock.notify_all()

    def all(self) -> Iterator[str]:
        for folder in sorted(self._folder.glob("??")):
            yield from sorted(
                file.name for file in folder.iterdir() if _DIGEST.fullmatch(file.name)
            )

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest

    def _is_there(self, ref: BlobRef) -> bool:
        try:
            self.get(ref)
        except BlobLost:
            return False
        return True

    def _write(self, path: Path, data: bytes) -> None:
        # Before it takes the space that others need meanwhile.
        if not has_room(self._folder, len(data)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._folder))
        path.parent.mkdir(mode=0o700, exist_ok=True)
        half = self._folder / f"{new_token(8)}.part"
        try:
            descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                # Always: an event must not outlive a power loss that its payload does not.
                sync(file.fileno())
            half.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                half.unlink()
            raise
