"""The processes that a CLI has started, wherever they went: found by parentage and by a marker.

A CLI runs its tools in sessions of their own, and `nohup` or a dead parent leaves orphans; but what
is started inherits the environment, and with it the marker.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time

import psutil

MARKER = "BRIDLE_LAUNCH"
POLL_SECONDS = 0.01
KILL_SECONDS = 5.0


def find_tree(pid: int, marker: str) -> list[psutil.Process]:
    """What is alive of a launch: its root, all below it, and all that carry its marker."""
    found = {process.pid: process for process in psutil.process_iter() if _carries(process, marker)}
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        if root.ppid() == os.getpid():
            found |= {p.pid: p for p in [root, *root.children(recursive=True)] if _is_alive(p)}
    return list(found.values())


async def end_tree(pid: int, marker: str) -> None:
    """Kill all of it, and what it starts meanwhile, until nothing is left."""
    deadline = time.monotonic() + KILL_SECONDS
    while time.monotonic() < deadline:
        tree = find_tree(pid, marker)
        if not tree:
            return
        for process in tree:
            with contextlib.suppress(psutil.Error):
                process.kill()
        await asyncio.sleep(POLL_SECONDS)


def _carries(process: psutil.Process, marker: str) -> bool:
    try:
        return process.environ().get(MARKER) == marker and _is_alive(process)
    except psutil.Error:
        return False


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
