"""Pipes: read in bounded pieces, written whole and in order, ended whoever else holds them."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
import pytest_asyncio

from bridle.process.fork_client import Guarded, start_guarded
from bridle.process.fork_server import END
from bridle.process.pipes import (
    LARGE_PIPE,
    READ_SIZE,
    READS_PER_TICK,
    SMALL_READ,
    InputPipe,
    OutputPipe,
)

from .children import LIMIT, end_guarded, python


class Reader:
    """Reads one pipe: what came, in which pass of the loop, and whether it is over."""

    def __init__(self, fd: int, ticks: Ticks | None = None) -> None:
        self.data = bytearray()
        self.ticks = ticks
        self.pieces: Counter[int] = Counter()
        self.began = asyncio.Event()
        self.is_over = asyncio.Event()
        self.pipe = OutputPipe(fd, self._take, self.is_over.set)

    def _take(self, data: bytes) -> None:
        self.data += data
        self.began.set()
        self.pieces[self.ticks.count if self.ticks else 0] += 1

    async def beginning(self) -> bytes:
        await asyncio.wait_for(self.began.wait(), LIMIT)
        return bytes(self.data)

    async def end(self) -> bytes:
        await asyncio.wait_for(self.is_over.wait(), LIMIT)
        return bytes(self.data)


class Ticks:
    """Counts the passes of the loop."""

    def __init__(self) -> None:
        self.count = 0
        self.wanted: dict[int, asyncio.Event] = {}
        self._handle = asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self.count += 1
        if self.count in self.wanted:
            self.wanted[self.count].set()
        self._handle = asyncio.get_running_loop().call_soon(self._next)

    async def until(self, count: int) -> None:
        self.wanted[count] = asyncio.Event()
        await asyncio.wait_for(self.wanted[count].wait(), LIMIT)

    def stop(self) -> None:
        self._handle.cancel()


@pytest_asyncio.fixture
async def ticks() -> AsyncIterator[Ticks]:
    ticks = Ticks()
    yield ticks
    ticks.stop()


@pytest.fixture
def start_raw(mark: str) -> Iterator[Callable[[str], Guarded]]:
    """Starts code as a child whose pipes the test reads itself."""
    started: list[Guarded] = []

    def start(code: str) -> Guarded:
        child = start_guarded(python(code, mark), dict(os.environ))
        started.append(child)
        child.life.send(END)  # the input ends when the test closes it
        return child

    yield start
    for child in started:
        end_guarded(child)


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe whose ends are closed in the end, whoever closed them already."""
    ends = os.pipe()
    yield ends
    for fd in ends:
        with suppress(OSError):
            os.close(fd)


def size_of(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ)


# --- reading


LOUD = {
    "lines": (b"x" * 999 + b"\n", 1),
    "one long line": (b"x" * 1000, READS_PER_TICK),
}


@pytest.mark.parametrize("kind", LOUD)
async def test_a_loud_child_is_heard_in_bounded_pieces_and_does_not_starve_a_quiet_one(
    start_raw: Callable[[str], Guarded], ticks: Ticks, kind: str
) -> None:
    text, most = LOUD[kind]
    loud = Reader(start_raw(f"import os\nwhile True: os.write(1, {text!r} * 65)").stdout, ticks)
    with pipe() as (read, write):
        quiet = Reader(read, ticks)
        await loud.beginning()
        words = 0
        # Each word of the quiet one is heard in the next pass, while the other never stops.
        while sum(loud.pieces.values()) < 200 or words < 20:
            words += 1
            os.write(write, b".")
            await ticks.until(ticks.count + 2)
            assert len(quiet.data) == words
        quiet.pipe.close()
    loud.pipe.close()
    assert max(loud.pieces.values()) <= most


async def test_a_pipe_grows_for_a_long_line_and_only_then() -> None:
    with pipe() as (short, write_short), pipe() as (long, write_long):
        before = size_of(short)
        readers = Reader(short), Reader(long)
        os.write(write_short, b"line\n" * 1000)
        os.write(write_long, b"x" * READ_SIZE)
        for reader in readers:
            await reader.beginning()
        assert size_of(write_short) == before
        assert size_of(write_long) == LARGE_PIPE
        for reader in readers:
            reader.pipe.close()


async def test_the_end_comes_once_and_after_everything() -> None:
    with pipe() as (read, write):
        reader = Reader(read)
        os.write(write, b"all of it")
        os.close(write)
        assert await reader.end() == b"all of it"
        assert not reader.pipe.is_open
        reader.pipe.finish()
        reader.pipe.drain()
        reader.pipe.close()


async def test_a_finished_pipe_is_read_to_where_it_is_and_ended_though_somebody_holds_it() -> None:
    with pipe() as (read, write):
        reader = Reader(read)
        os.write(write, b"line\n" * 10_000)
        reader.pipe.finish()
        assert await reader.end() == b"line\n" * 10_000


async def test_a_finished_pipe_ends_though_somebody_fills_it_for_ever() -> None:
    with pipe() as (read, write):
        taken, is_over = bytearray(), asyncio.Event()

        def take(data: bytes) -> None:
            taken.extend(data)
            os.write(write, b"somebody else's\n" * 100)

        output = OutputPipe(read, take, is_over.set)
        os.write(write, b"the child's\n")
        output.finish()
        await asyncio.wait_for(is_over.wait(), LIMIT)
        assert taken == b"the child's\n"


async def test_an_empty_finished_pipe_ends() -> None:
    with pipe() as (read, _):
        reader = Reader(read)
        reader.pipe.finish()
        assert await reader.end() == b""


async def test_what_is_there_can_be_taken_at_once() -> None:
    with pipe() as (read, write):
        reader = Reader(read)
        reader.pipe.drain()
        os.write(write, b"last words")
        reader.pipe.drain()
        assert reader.data == b"last words"
        reader.pipe.close()


async def test_what_is_given_in_slices_is_taken_at_once_too_and_only_once(ticks: Ticks) -> None:
    with pipe() as (read, write):
        reader = Reader(read, ticks)
        # Larger reads are made once one was full.
        os.write(write, b"x" * SMALL_READ)
        await reader.beginning()
        data = b"".join(b"line %d\n" % number for number in range(6_000))[: READ_SIZE - SMALL_READ]
        written = os.write(write, data)
        while len(reader.data) == SMALL_READ:
            await ticks.until(ticks.count + 1)
        assert len(reader.data) < SMALL_READ + written, "there is more to be given"
        os.write(write, b"last words")
        reader.pipe.drain()
        whole = b"x" * SMALL_READ + data[:written] + b"last words"
        assert reader.data == whole
        await ticks.until(ticks.count + 5)
        assert reader.data == whole
        os.close(write)
        assert await reader.end() == whole


async def test_whoever_is_told_may_close_the_pipe() -> None:
    wrong: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: wrong.append(context))
    with pipe() as (read, write):
        taken: list[bytes] = []
        closed = asyncio.Event()

        def take(data: bytes) -> None:
            taken.append(data)
            output.close()
            closed.set()

        output = OutputPipe(read, take, lambda: pytest.fail("closed, not ended"))
        os.write(write, b"x" * READ_SIZE)
        output.finish()
        await asyncio.wait_for(closed.wait(), LIMIT)
        await asyncio.sleep(0)
        assert b"".join(taken) == b"x" * len(taken[0])
        assert (len(taken), wrong) == (1, [])


# --- writing


COUNT = """
import hashlib, os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.write(1, b"ready\\n")
signal.sigwait([signal.SIGUSR1])
data = sys.stdin.buffer.read()
os.write(1, f"{len(data)} {hashlib.sha256(data).hexdigest()}\\n".encode())
"""


async def test_more_than_a_pipe_holds_is_delivered_whole_and_in_order_and_then_the_end(
    start_raw: Callable[[str], Guarded],
) -> None:
    child = start_raw(COUNT)
    heard = Reader(child.stdout)
    await heard.beginning()
    lines = [b"%07d\n" % number * 1000 for number in range(640)]
    sent = InputPipe(child.stdin)
    for line in lines:
        sent.write(line)
    sent.write(b"")
    sent.close()
    sent.write(b"too late\n")
    os.kill(child.pid, signal.SIGUSR1)
    data = b"".join(lines)
    assert len(data) > 5_000_000
    told = (await heard.end()).decode().split("\n")[1]
    assert told == f"{len(data)} {hashlib.sha256(data).hexdigest()}"


@pytest.mark.parametrize("size", [10, 1_000_000])
async def test_nobody_who_reads_is_survived(size: int) -> None:
    read, write = os.pipe()
    os.close(read)
    sent = InputPipe(write)
    sent.write(b"x" * size)
    assert not _is_open(write)
    sent.write(b"more")
    sent.close()
    sent.abandon()


async def test_a_reader_that_goes_away_while_much_is_waiting_is_survived() -> None:
    with pipe() as (read, write):
        sent = InputPipe(write)
        sent.write(b"x" * 1_000_000)
        sent.write(b"y")
        os.close(read)
        # The loop finds it out by itself: then the end is closed.
        async with asyncio.timeout(LIMIT):
            while _is_open(write):  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0)
        sent.write(b"more")


async def test_an_abandoned_pipe_is_closed_now_whatever_waits() -> None:
    with pipe() as (_, write):
        sent = InputPipe(write)
        sent.write(b"x" * 1_000_000)
        sent.close()
        assert _is_open(write)
        sent.abandon()
        sent.abandon()
        assert not _is_open(write)


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
