"""Whatever a test has started is ended, also where it failed."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from bridle.process.tree import Tree


@asynccontextmanager
async def no_leftovers(folder: Path) -> AsyncIterator[None]:
    """Of the launches that have a spool in this folder, or had one that nobody knows of."""
    try:
        yield
    finally:
        spools = folder / "home" / "spool"
        for spool in spools.iterdir() if spools.exists() else ():
            Tree(0, spool.name).kill()
        for pid in _fakes_of(folder):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _fakes_of(folder: Path) -> list[int]:
    """Fakes that play a scenario of this folder, and their shims."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with suppress(OSError):
                words = (path / "cmdline").read_bytes().split(b"\0")
                if any(word.startswith(f"{folder}/agents/".encode()) for word in words):
                    found.append(int(path.name))
    return found
