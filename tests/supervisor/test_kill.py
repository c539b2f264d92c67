"""Controllers that are killed at random moments: nothing is lost, doubled or orphaned."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.levels import tries

from .accounts import Account, check_all
from .controller import Order
from .killing import Run, controllers
from .leftovers import no_leftovers
from .plans import NEW, OLD, planned, write_plan

KILLS = tries(10, 300, 1_000)
AGENTS = 8


class Luck:
    """When the next controller is killed, or asked to close."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._starts = [0.1]

    def order(self, number: int) -> Order:
        ends = "close" if number % 10 == 9 else "kill"
        if number % 5 == 4:  # while it starts
            seconds = self._random.uniform(0, self._starts[-1] * 1.1)
            return Order(seconds=seconds, is_from_up=False)
        return Order(seconds=self._random.uniform(0.005, 0.25), ends=ends)  # type: ignore[arg-type]

    def started_in(self, seconds: float | None) -> None:
        if seconds is not None:
            self._starts.append(seconds)


async def kill_again_and_again(run: Run, times: int, seed: int) -> list[str]:
    luck, said = Luck(seed), []
    for number in range(times):
        one = await run(luck.order(number))
        luck.started_in(one.up_seconds)
        said += one.lines
    return said


@pytest.mark.slow
@pytest.mark.timeout(60 + KILLS * 2)
async def test_agents_of_killed_controllers_lose_and_repeat_nothing(tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")  # noqa: T201 - shown where it fails
    turns = 40 + KILLS * 2
    agents = [
        planned(tmp_path, f"a{number}", turns, OLD if number < 2 else NEW, large=7 + number)
        for number in range(AGENTS)
    ]
    write_plan(tmp_path, agents)
    async with no_leftovers(tmp_path), controllers(tmp_path) as run:
        said = await kill_again_and_again(run, KILLS, seed)
        last = await run(Order(prompts=12))
        assert last.lines[-1] == "done"
        accounts = await check_all(tmp_path, [*said, *last.lines], is_running=True)
        await run(Order(task="stop"))
        await check_all(tmp_path, [], is_running=False)
    check_that_it_was_worth_it(accounts)


def check_that_it_was_worth_it(accounts: list[Account]) -> None:
    """The kills came while agents were at work, and states were saved in between."""
    for account in accounts:
        assert account.record.turns >= 10
        assert account.record.turns < account.agent.turns
        if len(account.events) > 2500:
            assert account.saved_seq > len(account.events) / 2
