"""A file that grows is given in pieces: each byte once and in order, and nobody waits for long."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bridle.process.follow import LINES, READ_SIZE, READS_PER_TICK, SMALL_READ, Following, OpenFile
from bridle.process.wake import Wakes

from .children import LIMIT


class Followed:
    """A file, and what is read of it."""

    def __init__(self, path: Path, start: int = 0) -> None:
        self.path = path
        self.path.touch()
        self.pieces: list[bytes] = []
        self.endings = 0
        self.news = asyncio.Event()
        self.following = Following(OpenFile(str(path)), start, self.take, self.end)

    def take(self, data: bytes) -> None:
        assert not self.endings
        self.pieces.append(data)
        self.news.set()

    def end(self) -> None:
        self.endings += 1
        self.news.set()

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)

    def append(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    async def until(self, size: int) -> None:
        async with asyncio.timeout(LIMIT):
            while sum(map(len, self.pieces)) < size:
                self.news.clear()
                await self.news.wait()

    async def over(self) -> None:
        async with asyncio.timeout(LIMIT):
            while not self.endings:
                self.news.clear()
                await self.news.wait()


@pytest_asyncio.fixture
async def followed(tmp_path: Path) -> AsyncIterator[Followed]:
    followed = Followed(tmp_path / "file")
    yield followed
    followed.following.close()


def line(size: int) -> bytes:
    return b"x" * (size - 1) + b"\n"


# --- in pieces


async def test_what_is_there_when_it_is_woken_is_given_at_once(followed: Followed) -> None:
    followed.append(b"one\nha")
    followed.following.woken()
    followed.append(b"lf\n")
    followed.following.woken()
    followed.following.woken()
    assert followed.pieces == [b"one\nha", b"lf\n"]
    assert followed.following.offset == 9


async def test_it_begins_where_it_is_told_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"seen\nnew\n")
    followed = Followed(tmp_path / "file", 5)
    followed.following.woken()
    assert followed.data == b"new\n"
    assert followed.following.offset == 9
    followed.following.close()


@pytest.mark.parametrize("size", [1, 2, 3, 100, 1000, 30_000])
async def test_no_piece_has_more_lines_or_bytes_than_fit_a_batch(
    followed: Followed, size: int
) -> None:
    data = line(size) * (400_000 // size)
    followed.append(data)
    followed.following.woken()
    await followed.until(len(data))
    assert followed.data == data
    assert max(piece.count(b"\n") for piece in followed.pieces) <= LINES
    assert max(map(len, followed.pieces)) <= READ_SIZE
    assert all(piece.endswith(b"\n") or size > SMALL_READ for piece in followed.pieces)


async def test_one_piece_with_whole_lines_is_given_in_each_tick(followed: Followed) -> None:
    followed.append(line(1000) * 1000)
    followed.following.woken()
    assert len(followed.pieces) == 1
    for given in range(2, 6):
        # Woken while more is due anyway: no second piece in the same tick.
        followed.following.woken()
        await asyncio.sleep(0)
        assert len(followed.pieces) == given


async def test_a_long_line_comes_in_few_ticks(followed: Followed) -> None:
    data = line(4 << 20)
    followed.append(data)
    followed.following.woken()
    ticks = 1
    while sum(map(len, followed.pieces)) < len(data):
        await asyncio.sleep(0)
        ticks += 1
    assert followed.data == data
    assert ticks <= len(data) // (READ_SIZE * READS_PER_TICK) + 2


async def test_two_loud_files_take_turns(tmp_path: Path) -> None:
    order: list[str] = []

    class Noted(Followed):
        def take(self, data: bytes) -> None:
            order.append(self.path.name)
            super().take(data)

    both = [Noted(tmp_path / name) for name in ("a", "b")]
    for one in both:
        one.append(line(1000) * 1000)
    for one in both:
        one.following.woken()
    for one in both:
        await one.until(1_000_000)
        one.following.close()
    turns = [order[at : at + 2] for at in range(0, len(order), 2)]
    assert turns == [["a", "b"]] * len(turns)


# --- pausing


async def test_nothing_is_given_while_it_is_paused_and_nothing_is_lost(followed: Followed) -> None:
    followed.append(line(1000) * 300)
    followed.following.woken()
    followed.following.pause()
    given = len(followed.pieces)
    for _ in range(5):
        followed.following.woken()
        await asyncio.sleep(0)
    assert len(followed.pieces) == given == 1
    followed.following.resume()
    await followed.until(300_000)
    assert followed.data == line(1000) * 300


async def test_whoever_is_given_a_piece_may_pause_it(followed: Followed) -> None:
    take = followed.take

    def take_one(data: bytes) -> None:
        followed.following.pause()
        take(data)

    followed.following._take = take_one
    followed.append(b"x" * (1 << 20))
    for given in range(1, 4):
        followed.following.resume()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(followed.pieces) == given


# --- its end


class Exhausted(OpenFile):
    """No descriptor is left, say: the first looks fail."""

    failures = 3

    def read(self, start: int, size: int) -> bytes:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().read(start, size)


async def test_what_can_not_be_read_is_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridle.process.follow.RETRY_SECONDS", 0.01)
    followed = Followed(tmp_path / "file")
    followed.following.close()
    followed.append(b"said\n")
    file = Exhausted(str(followed.path))
    followed.following = Following(file, 0, followed.take, followed.end)
    followed.following.woken()
    await followed.until(5)
    file.failures = 1
    followed.append(b"more\n")
    followed.following.finish()
    await followed.over()
    assert followed.data == b"said\nmore\n"
    assert followed.endings == 1


async def test_it_ends_once_after_all_that_was_there(followed: Followed) -> None:
    data = line(1000) * 300 + b"no newline"
    followed.append(data)
    followed.following.finish()
    followed.append(b"of somebody else")
    followed.following.finish()
    await followed.over()
    await asyncio.sleep(0)
    assert (followed.data, followed.endings) == (data, 1)
    assert not followed.following.is_open
    followed.following.woken()
    followed.following.close()


async def test_an_empty_file_ends(followed: Followed) -> None:
    followed.following.finish()
    await followed.over()
    assert followed.data == b""


async def test_the_end_waits_while_it_is_paused(followed: Followed) -> None:
    followed.append(b"last\n")
    followed.following.pause()
    followed.following.finish()
    for _ in range(5):
        await asyncio.sleep(0)
    assert (followed.pieces, followed.endings) == ([], 0)
    followed.following.resume()
    await followed.over()
    assert followed.data == b"last\n"


async def test_whoever_fails_is_given_the_rest_all_the_same(followed: Followed) -> None:
    failures: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))
    take = followed.take

    def fail(data: bytes) -> None:
        take(data)
        raise ZeroDivisionError

    followed.following._take = fail
    data = b"x" * 300_000 + b"\n" + line(1000) * 100
    followed.append(data)
    followed.following.finish()
    await followed.over()
    assert followed.data == data
    assert {type(failure) for failure in failures} == {ZeroDivisionError}


# --- written by another process

WRITER = """
import os, random, sys
random.seed(sys.argv[2])
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
for _ in range(10_000):
    os.write(fd, random.randbytes(random.choice((1, 10, 100, 1000))))
"""


@pytest.mark.parametrize("seed", ["a", "b"])
async def test_random_appends_of_another_process_are_followed_byte_by_byte(
    wakes: Wakes, tmp_path: Path, followed: Followed, seed: str
) -> None:
    random.seed(seed)
    sizes = (1, 10, 100, 1000)
    expected = b"".join(random.randbytes(random.choice(sizes)) for _ in range(10_000))
    wakes.watch(tmp_path, lambda _: followed.following.woken())
    words = [sys.executable, "-c", WRITER, str(followed.path), seed]
    process = await asyncio.create_subprocess_exec(*words)
    await followed.until(len(expected))
    assert await process.wait() == 0
    assert followed.data == expected
    assert os.path.getsize(followed.path) == len(expected)  # noqa: ASYNC240, PTH202
