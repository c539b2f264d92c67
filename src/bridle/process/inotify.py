"""What changes in many folders, by one inotify instance: a user has 128 of them.

Owns the instance and the reading of its events. Linux alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import os
import struct
from pathlib import Path

from .wake import Told

_MODIFY, _MOVED_TO, _CREATE = 0x02, 0x80, 0x100
_OVERFLOW = 0x4000
_ONLY_FOLDERS = 0x01000000
_CHANGES = _MODIFY | _MOVED_TO | _CREATE
_HEAD = struct.Struct("iIII")
#: Room for about two thousand events: one read is one step of the loop.
_READ_SIZE = 64 * 1024


class Inotify:
    """Tells of folders by the numbers that the kernel gives them."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._fd = _checked(_libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._readable)

    def add(self, folder: Path) -> int:
        path = os.fsencode(folder)
        return _checked(_libc().inotify_add_watch(self._fd, path, _CHANGES | _ONLY_FOLDERS))

    def drop(self, key: int) -> None:
        # A folder that is gone has lost its watch already.
        _libc().inotify_rm_watch(self._fd, key)

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _readable(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._told(_changes(os.read(self._fd, _READ_SIZE)))


def _changes(events: bytes) -> dict[tuple[int, str], None] | None:
    """Which files of which folders, each once and in order; None where the kernel lost some."""
    found: dict[tuple[int, str], None] = {}
    at = 0
    while at < len(events):
        key, mask, _, size = _HEAD.unpack_from(events, at)
        at += _HEAD.size
        if mask & _OVERFLOW:
            return None
        if mask & _CHANGES:
            found[key, os.fsdecode(events[at : at + size].rstrip(b"\0"))] = None
        at += size
    return found


def _checked(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
