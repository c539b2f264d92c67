"""The way out: in order, waited for by nobody who must not wait."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator

import pytest

from bridle.cli.terminal.outlet import MOST_BEHIND, Outlet

LIMIT = 20.0


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for fd in (reading, writing):
        with contextlib.suppress(OSError):
            os.close(fd)


async def read_all(fd: int) -> bytes:
    def read() -> bytes:
        data = b""
        while piece := os.read(fd, 65536):
            data += piece
        return data

    return await asyncio.to_thread(read)


async def test_all_is_written_in_order(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    got = asyncio.ensure_future(read_all(reading))
    async with Outlet(writing) as outlet:
        for number in range(10_000):
            outlet.write(f"{number} é\n")
            if number % 100 == 0:
                await outlet.room()
    os.close(writing)
    assert (await got).decode() == "".join(f"{number} é\n" for number in range(10_000))


async def test_who_shows_much_waits_for_room_and_nobody_else_does(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    async with Outlet(writing) as outlet:
        outlet.write("x" * (2 * MOST_BEHIND))
        outlet.write("the end")
        waiting = asyncio.ensure_future(outlet.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        got = asyncio.ensure_future(read_all(reading))
        async with asyncio.timeout(LIMIT):
            await waiting
    os.close(writing)
    assert (await got).endswith(b"the end")


async def test_a_reader_who_reads_nothing_is_not_waited_for_at_the_end(
    pipe: tuple[int, int],
) -> None:
    _, writing = pipe
    async with asyncio.timeout(LIMIT), Outlet(writing) as outlet:
        outlet.patience = 0.01
        outlet.write("x" * 1_000_000)


async def test_what_is_written_late_never_goes_to_another_file_of_the_same_number(
    pipe: tuple[int, int],
) -> None:
    reading, writing = pipe
    async with asyncio.timeout(LIMIT), Outlet(writing) as outlet:
        outlet.patience = 0.01
        outlet.write("x" * 1_000_000)
        outlet.write("the end")
    other, end = os.pipe()
    os.dup2(end, writing)  # the descriptor has another file now
    os.close(end)
    data = await read_all(reading)
    os.close(writing)
    assert data.endswith(b"xthe end")
    assert await read_all(other) == b""
    os.close(other)


async def test_a_reader_who_has_gone_is_told_and_nobody_waits_for_them(
    pipe: tuple[int, int],
) -> None:
    reading, writing = pipe
    async with asyncio.timeout(LIMIT), Outlet(writing) as outlet:
        os.close(reading)
        outlet.write("x")
        await outlet.gone.wait()
        outlet.write("y" * (2 * MOST_BEHIND))
        await outlet.room()


async def test_what_can_not_be_encoded_is_replaced(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    async with Outlet(writing) as outlet:
        outlet.write("half \ud800")
    os.close(writing)
    assert await read_all(reading) == b"half ?"
