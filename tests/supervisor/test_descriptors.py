"""No descriptors are left: what can't be started says so, and the others live on."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from .homes import LIMIT, TURN, Home, until


@contextlib.contextmanager
def exhausted(leave: int) -> Iterator[None]:
    """All descriptors of this process are taken, but for so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 40, hard))
    taken: list[int] = []
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for fd in taken[len(taken) - leave :]:
            os.close(fd)
        del taken[len(taken) - leave :]
        yield
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("leave", [0, 1, 2, 3])
async def test_what_can_not_be_started_says_so_and_the_others_live_on(
    home: Home, leave: int
) -> None:
    async with home.open() as supervisor:
        await home.start(supervisor, *TURN * 3, name="old")
        await supervisor.wait("old", lambda r: r.turns == 1, LIMIT)
        await home.start(supervisor, *TURN, name="new", start=False)
        with exhausted(leave):
            await supervisor.resume("new")
            record = await until(supervisor, "new", "failed")
            assert record.launch
            assert record.launch.how == "not started"
            assert "open files" in record.launch.words
            await supervisor.send("old", "are you there?")
            # With one left it is told now, and with none when there is one again.
            if leave:
                await supervisor.wait("old", lambda r: r.turns == 2, LIMIT)
        await supervisor.wait("old", lambda r: r.turns == 2, LIMIT)
        await supervisor.resume("new")
        await supervisor.wait("new", lambda r: r.turns == 1, LIMIT)


async def test_a_stop_works_with_hardly_any_left(home: Home) -> None:
    async with home.open() as supervisor:
        await home.start(supervisor, *TURN, name="a")
        await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        with exhausted(2):
            await supervisor.stop("a")
            await until(supervisor, "a", "stopped")
        assert home.alive() == []
