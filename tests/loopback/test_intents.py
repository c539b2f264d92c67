"""What is about to be done is noted once, and the same call is done once at a time."""

from __future__ import annotations

import asyncio
import time

from bridle.journal import memory_journal
from bridle.loopback.intents import KEPT_SECONDS, Intent, Intents, name_of


async def test_the_same_call_is_done_once_at_a_time_and_others_beside_it() -> None:
    async with memory_journal() as journal:
        intents, done = Intents(journal), list[str]()
        may_go = asyncio.Event()

        async def call(name: str, what: str) -> None:
            async with intents.turn(name):
                done.append(f"{what} begins")
                await may_go.wait()
                done.append(f"{what} ends")

        calls = [("a", "first"), ("a", "second"), ("a", "third"), ("b", "other")]
        tasks = [asyncio.ensure_future(call(*one)) for one in calls]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert done == ["first begins", "other begins"]
        tasks[1].cancel()
        may_go.set()
        await asyncio.wait(tasks)
        # Who comes while another waits waits for that one, and nothing is kept of them all.
        assert done[2:] == ["first ends", "other ends", "third begins", "third ends"]
        assert intents._turns == {}


async def test_what_was_noted_first_stays_and_what_is_old_is_forgotten() -> None:
    async with memory_journal() as journal:
        intents, now = Intents(journal), time.time()
        first = Intent(session="s", at=now - KEPT_SECONDS + 60, seq=1, count=2, turns=3)
        await intents.begin("recent", first)
        await intents.begin("recent", Intent(session="other", at=now))
        await intents.begin("old", Intent(session="s", at=now - KEPT_SECONDS - 60))
        assert await Intents(journal).get("recent") == first
        assert await Intents(journal).get("old") is None
        assert await Intents(journal).get("nobody's") is None


def test_a_name_is_of_one_call_of_one_caller() -> None:
    name = name_of("caller", "tool", "key")
    assert name == name_of("caller", "tool", "key")
    others = [name_of("other", "tool", "key"), name_of("caller", "key", "tool")]
    others += [name_of("caller", "toolkey"), name_of("callertool", "key")]
    assert len({name, *others}) == 5
