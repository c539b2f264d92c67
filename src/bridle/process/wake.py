"""Who tells that a file of a spool has changed: one watcher of many folders.

Owns who wants to know of which folder, and the choice of how it is found out: by inotify on Linux,
by kqueue on macOS, and by looking again and again where neither wakes anybody (some network and
container file systems). Does not read the files.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

Tell: TypeAlias = Callable[[str], None]
#: What a source tells: which files of which folders; None for "anything may have changed".
Told: TypeAlias = Callable[[Iterable[tuple[int, str]] | None], None]

#: The name that is told where anything in the folder may have changed.
ANYTHING = ""
PROBE_SECONDS = 0.5
POLL_SECONDS = 0.05


class Source(Protocol):
    """One way to find out. A folder that is added again has the same key."""

    def add(self, folder: Path, /) -> int: ...

    def drop(self, key: int, /) -> None: ...

    def close(self) -> None: ...


class Watch:
    """One wish to know of one folder; `close` ends it, also while it is being told."""

    def __init__(self, wakes: Wakes, key: int, tell: Tell) -> None:
        self._wakes = wakes
        self.key = key
        self._tell: Tell | None = tell

    def tell(self, name: str) -> None:
        if self._tell:
            self._tell(name)

    def close(self) -> None:
        if self._tell:
            self._tell = None
            self._wakes.forget(self)


class Wakes:
    """Tells whoever watches a folder the names of the files in it that have changed.

    Each name once for all changes that are seen together. Every call is on the loop.
    """

    def __init__(self, source: Callable[[Told], Source]) -> None:
        self._watches: dict[int, list[Watch]] = {}
        self._loop = asyncio.get_running_loop()
        self._source = source(self._told)

    @property
    def source(self) -> Source:
        return self._source

    def watch(self, folder: Path, tell: Tell) -> Watch:
        """From now on; what is there already is the caller's to read, after this."""
        key = self._source.add(folder)
        watch = Watch(self, key, tell)
        self._watches.setdefault(key, []).append(watch)
        return watch

    def forget(self, watch: Watch) -> None:
        others = self._watches.get(watch.key, [])
        if watch in others:
            others.remove(watch)
            if not others:
                del self._watches[watch.key]
                self._source.drop(watch.key)

    def close(self) -> None:
        self._watches.clear()
        self._source.close()

    def _told(self, changes: Iterable[tuple[int, str]] | None) -> None:
        if changes is None:
            changes = [(key, ANYTHING) for key in self._watches]
        for key, name in changes:
            for watch in tuple(self._watches.get(key, ())):
                try:
                    watch.tell(name)
                except Exception as error:  # noqa: BLE001 - the others must be told
                    self._loop.call_exception_handler(
                        {"message": f"whoever was told of {name} failed", "exception": error}
                    )


class Polling:
    """Looks at the files of all folders in turn, twenty times a second."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._loop = asyncio.get_running_loop()
        self._folders: dict[int, Path] = {}
        self._seen: dict[int, dict[str, tuple[int, int, int]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._last = 0

    def add(self, folder: Path) -> int:
        for key, known in self._folders.items():
            if known == folder:
                return key
        self._last += 1
        self._folders[self._last], self._seen[self._last] = folder, _files(folder)
        if self._timer is None:
            self._wait()
        return self._last

    def drop(self, key: int) -> None:
        self._folders.pop(key, None)
        self._seen.pop(key, None)
        if not self._folders:
            self.close()

    def close(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        self._timer = self._loop.call_later(POLL_SECONDS, self._look)

    def _look(self) -> None:
        self._wait()
        changes: list[tuple[int, str]] = []
        for key, folder in self._folders.items():
            before, now = self._seen[key], _files(folder)
            self._seen[key] = now
            changes += [(key, name) for name in now if now[name] != before.get(name)]
        self._told(changes)


def _files(folder: Path) -> dict[str, tuple[int, int, int]]:
    found: dict[str, tuple[int, int, int]] = {}
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                found[entry.name] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return found


async def open_wakes(folder: Path, *, force: Literal["polling"] | None = None) -> Wakes:
    """The best that works on the file system of this folder, found out by trying it there."""
    for source in _sources() if force is None else ():
        try:
            wakes = Wakes(source)
        except OSError:  # none is left of a user's instances, or a sandbox forbids them
            continue
        try:
            if await _works(wakes, folder):
                return wakes
        except BaseException:
            wakes.close()
            raise
        wakes.close()
    return Wakes(Polling)


def _sources() -> Iterable[Callable[[Told], Source]]:
    if sys.platform == "linux":
        from .inotify import Inotify

        yield Inotify
    elif sys.platform == "darwin":
        from .kqueue import Kqueue

        yield Kqueue


async def _works(wakes: Wakes, folder: Path) -> bool:
    """Whether bytes that are appended wake us."""
    woken = asyncio.Event()
    probe = folder / f"probe-{secrets.token_hex(8)}"
    probe.touch(mode=0o600)
    watch = wakes.watch(folder, lambda name: woken.set() if name == probe.name else None)
    try:
        with probe.open("ab", buffering=0) as file:
            file.write(b".")
        async with asyncio.timeout(PROBE_SECONDS):
            await woken.wait()
    except TimeoutError:
        return False
    finally:
        watch.close()
        probe.unlink()
    return True
