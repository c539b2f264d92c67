"""What is written to an inbox is there whole and in order, also after the disk was full."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from bridle.process.feed import Feed
from bridle.process.spool import Spool

from ..journal.sqlite.disks import tmpfs
from .children import LIMIT


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridle.process.feed.RETRY_SECONDS", 0.02)


async def heard_end(bell: int) -> bytes:
    """What is rung, up to the word that there is no more."""
    rung, ended = bytearray(), asyncio.Event()

    def hear() -> None:
        rung.extend(os.read(bell, 100))
        if b"e" in rung:
            ended.set()

    loop = asyncio.get_running_loop()
    loop.add_reader(bell, hear)
    await asyncio.wait_for(ended.wait(), LIMIT)
    loop.remove_reader(bell)
    return bytes(rung)


async def test_what_does_not_fit_comes_later_and_whole(tmp_path: Path, quick: None) -> None:
    with tmpfs(tmp_path / "disk") as disk:
        spool = Spool(disk.folder / "spool")
        spool.make()
        bell = os.open(spool.path("doorbell"), os.O_RDWR | os.O_NONBLOCK)
        feed = Feed(spool)
        feed.write(b"first\n")
        disk.fill(leave=1 << 16)
        large = os.urandom(300_000) + b"\n"
        feed.write(large)
        # A part of it is there, and nothing comes in between.
        assert 0 < spool.inbox_size() < len(large)
        feed.write(b"last\n")
        feed.close()
        feed.write(b"never seen")
        disk.free()
        assert await heard_end(bell) == b"\ne"
        assert spool.read_inbox(0, 1 << 20) == b"first\n" + large + b"last\n"
        os.close(bell)


async def test_what_nobody_will_read_is_not_tried_again(tmp_path: Path, quick: None) -> None:
    with tmpfs(tmp_path / "disk") as disk:
        spool = Spool(disk.folder / "spool")
        spool.make()
        feed = Feed(spool)
        disk.fill()
        feed.write(b"x" * 10_000)
        feed.abandon()
        disk.free()
        await asyncio.sleep(0.1)
        assert spool.inbox_size() == 0


async def test_a_spool_that_is_gone_takes_nothing(tmp_path: Path) -> None:
    feed = Feed(Spool(tmp_path / "none"))
    feed.write(b"x")
    feed.close()
    assert not (tmp_path / "none").exists()
