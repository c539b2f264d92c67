"""What changes in many folders, by one kqueue: for macOS, which has no inotify.

Owns the queue, and a descriptor for each folder and each file in it that grows: a kqueue tells of
open files alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import sys
from pathlib import Path

from .wake import Told

#: The files of a spool that grow; of all others it matters only that they come.
GROWING = ("stdout", "stderr")
_EVENTS = 256

if sys.platform != "linux" and sys.platform != "win32":

    class Kqueue:
        """Tells of folders by the descriptors that it holds of them."""

        def __init__(self, told: Told) -> None:
            self._told = told
            self._queue = select.kqueue()
            #: By a folder's descriptor: its path, the names seen in it, and the open files.
            self._folders: dict[int, tuple[Path, set[str], dict[int, str]]] = {}
            self._folder_of: dict[int, int] = {}
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._queue.fileno(), self._readable)

        def add(self, folder: Path) -> int:
            for key, (path, _, _) in self._folders.items():
                if path == folder:
                    return key
            key = self._follow(folder)
            self._folders[key] = (folder, set(os.listdir(folder)), {})  # noqa: PTH208
            self._open_files(key)
            return key

        def drop(self, key: int) -> None:
            _, _, files = self._folders.pop(key, (None, None, {}))
            for fd in (*files, key):
                self._folder_of.pop(fd, None)
                # It leaves the queue with this.
                with contextlib.suppress(OSError):
                    os.close(fd)

        def close(self) -> None:
            for key in tuple(self._folders):
                self.drop(key)
            if not self._queue.closed:
                self._loop.remove_reader(self._queue.fileno())
                self._queue.close()

        def _follow(self, path: Path) -> int:
            fd = os.open(path, getattr(os, "O_EVTONLY", os.O_RDONLY))
            flags = select.KQ_EV_ADD | select.KQ_EV_CLEAR
            notes = select.KQ_NOTE_WRITE | select.KQ_NOTE_EXTEND
            event = select.kevent(fd, select.KQ_FILTER_VNODE, flags, notes)
            self._queue.control([event], 0)
            return fd

        def _open_files(self, key: int) -> None:
            folder, names, files = self._folders[key]
            for name in names.intersection(GROWING).difference(files.values()):
                with contextlib.suppress(OSError):
                    fd = self._follow(folder / name)
                    files[fd], self._folder_of[fd] = name, key

        def _readable(self) -> None:
            changes: dict[tuple[int, str], None] = {}
            for event in self._queue.control(None, _EVENTS, 0):
                if event.ident in self._folders:
                    changes.update(dict.fromkeys(self._came(event.ident)))
                elif key := self._folder_of.get(event.ident):
                    changes[key, self._folders[key][2][event.ident]] = None
            self._told(changes)

        def _came(self, key: int) -> list[tuple[int, str]]:
            """What is in the folder that was not; a file that is opened may have grown before."""
            folder, names, _ = self._folders[key]
            now = set(os.listdir(folder)) if folder.exists() else set()  # noqa: PTH208
            new = now - names
            names.clear()
            names.update(now)
            self._open_files(key)
            return [(key, name) for name in new]
