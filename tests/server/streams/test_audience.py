"""All who follow: their signs of life, who is stuck, who may not listen any more, and the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from bridle.server.access import Caller
from bridle.server.streams.audience import BYE, GONE, Audience, Listener
from tests.supervisor.streams import session

LIMIT = 20.0
PERSON = Caller(role="person", name="me")
#: Longer than any test takes.
LONG = 3_600.0


class Hall:
    """An audience, and what came of it."""

    def __init__(self, *, heartbeat: float = LONG, stalled: float = LONG) -> None:
        self.tokens = {"t1", "t2"}
        self.dropped: list[str] = []
        self.looks = asyncio.Semaphore(0)
        self.has_more = False
        self.audience = Audience(heartbeat, stalled, lambda: self.tokens, self._tick)

    def _tick(self) -> bool:
        self.looks.release()
        return self.has_more

    def listener(self, name: str, caller: Caller = PERSON, follows: str = "") -> Listener:
        listener = Listener(caller, follows, lambda: self.dropped.append(name))
        self.audience.add(listener)
        return listener

    async def looked(self, times: int = 1) -> None:
        async with asyncio.timeout(LIMIT):
            for _ in range(times):
                await self.looks.acquire()


@pytest.fixture
def hall() -> Iterator[Callable[..., Hall]]:
    made: list[Hall] = []

    def make(**seconds: float) -> Hall:
        made.append(Hall(**seconds))
        return made[-1]

    yield make
    for one in made:
        one.audience.stop()


async def test_a_sign_of_life_is_due_to_who_was_sent_nothing_for_long(
    hall: Callable[..., Hall],
) -> None:
    one = hall(heartbeat=0.02)
    quiet, busy, sending = (one.listener(name) for name in ("quiet", "busy", "sending"))
    busy.sent_at = asyncio.get_running_loop().time() + LONG
    sending.sending_since = sending.sent_at
    async with asyncio.timeout(LIMIT):
        await quiet.bell.wait()
    assert [found.is_due for found in (quiet, busy, sending)] == [True, False, False]
    assert one.dropped == []


async def test_who_takes_nothing_any_more_is_dropped_and_counted(hall: Callable[..., Hall]) -> None:
    one = hall(stalled=0.02)
    now = asyncio.get_running_loop().time()
    one.listener("idle")
    one.listener("stuck").sending_since = now - 1
    one.listener("also stuck").sending_since = now - 1
    one.listener("slow").sending_since = now + LONG
    await one.looked()
    assert (one.dropped, one.audience.dropped) == (["stuck", "also stuck"], 2)


async def test_who_came_with_a_token_that_holds_no_more_is_sent_away(
    hall: Callable[..., Hall],
) -> None:
    one = hall(heartbeat=0.02)
    callers = [Caller(role="reader", name="r", token=token) for token in ("t1", "t2", "")]
    first, second, local = (one.listener(f"{n}", caller) for n, caller in enumerate(callers))
    await one.looked()
    assert [found.ending for found in (first, second, local)] == [None] * 3
    one.tokens.remove("t1")
    await one.looked(2)
    assert [found.ending for found in (first, second, local)] == [GONE, None, None]


async def test_who_follows_what_is_gone_is_told_and_nobody_else(hall: Callable[..., Hall]) -> None:
    one = hall()
    followers = [one.listener(name, follows=name) for name in ("a", "b", "a", "")]
    one.audience.gone("a")
    assert [found.ending for found in followers] == [GONE, None, GONE, None]


async def test_an_agent_follows_no_longer_what_was_handed_over_to_others(
    hall: Callable[..., Hall],
) -> None:
    one = hall()
    root = Caller(role="agent", name="an agent", session="root")
    follower, other = one.listener("f", root, "child"), one.listener("o", root, "other")
    person = one.listener("p", PERSON, "child")
    one.audience.changed(session("child", "root").record)
    assert follower.ending is None
    one.audience.changed(session("child", "elsewhere").record)
    assert [found.ending for found in (follower, other, person)] == [GONE, None, None]


async def test_at_the_end_everybody_is_told_to_come_again(hall: Callable[..., Hall]) -> None:
    one = hall()
    early, gone = one.listener("early"), one.listener("gone", follows="a")
    one.audience.gone("a")
    waiting = asyncio.ensure_future(early.bell.wait())
    await asyncio.sleep(0)
    one.audience.close()
    await asyncio.wait_for(waiting, LIMIT)
    late = one.listener("late")
    assert [found.ending for found in (early, gone, late)] == [BYE, GONE, BYE]
    one.audience.remove(gone)
    one.audience.remove(gone)
    assert list(one.audience) == [early, late]
    assert len(one.audience) == 2


async def test_it_looks_while_there_is_anything_to_look_at(hall: Callable[..., Hall]) -> None:
    one = hall(heartbeat=0.02)
    assert one.audience._timer is None
    one.audience.watch()
    one.has_more = True
    await one.looked(3)
    one.has_more = False
    await one.looked()
    assert one.audience._timer is None
    listener = one.listener("one")
    await one.looked(2)
    one.audience.remove(listener)
    await one.looked()
    assert one.audience._timer is None
