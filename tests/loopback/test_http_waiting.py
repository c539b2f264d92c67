"""Who waits is told again and again, and what they wait for ends with them."""

from __future__ import annotations

import asyncio

import pytest

from bridle.loopback.http.waiting import ended, telling

LIMIT = 20.0


async def test_who_waits_is_told_how_long_until_there_is_an_answer() -> None:
    told: list[float] = []
    may_end = asyncio.Event()

    async def work() -> str:
        await may_end.wait()
        return "done"

    async def tell(seconds: float) -> None:
        told.append(seconds)
        if len(told) == 3:
            may_end.set()

    began = asyncio.get_running_loop().time()
    assert await asyncio.wait_for(telling(work(), 0.01, tell), LIMIT) == "done"
    assert told == sorted(told)
    assert 0.005 < told[0] < told[2] <= asyncio.get_running_loop().time() - began


async def test_what_is_there_at_once_is_given_and_nobody_is_told() -> None:
    async def work() -> int:
        return 7

    async def tell(_: float) -> None:
        raise AssertionError("nobody has waited")

    assert await telling(work(), LIMIT, tell) == 7


@pytest.mark.parametrize("who", ["the work", "who is told"])
async def test_what_goes_wrong_is_raised_and_ends_the_work(who: str) -> None:
    is_over = asyncio.Event()

    async def work() -> None:
        try:
            if who == "the work":
                raise ZeroDivisionError(who)
            await asyncio.Event().wait()
        finally:
            is_over.set()

    async def tell(_: float) -> None:
        raise ZeroDivisionError(who)

    with pytest.raises(ZeroDivisionError, match=who):
        await asyncio.wait_for(telling(work(), 0.01, tell), LIMIT)
    assert is_over.is_set()


async def test_who_is_cancelled_waits_until_the_work_has_ended_too() -> None:
    ends: list[str] = []
    began = asyncio.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ends.append("work")

    async def tell(_: float) -> None: ...

    waiting = asyncio.ensure_future(telling(work(), LIMIT, tell))
    await began.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ends == ["work"]


async def test_all_are_ended_whatever_goes_wrong_in_them() -> None:
    ends: list[str] = []

    async def work(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ends.append(name)
            if name == "wrong":
                raise ZeroDivisionError(name)

    tasks = [asyncio.ensure_future(work(name)) for name in ("right", "wrong", "also right")]
    await asyncio.sleep(0)
    await ended(*tasks)
    assert ends == ["right", "wrong", "also right"]
    assert all(task.done() for task in tasks)
