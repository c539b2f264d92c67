"""Budgets and pauses while agents run: at a limit they stand still, and go on when it is raised."""

from __future__ import annotations

import asyncio

import pytest

from bridle.errors import InvalidLimit, NotPossible
from bridle.supervisor import Limits
from bridle.views import stream

from .homes import DONE, INIT, LIMIT, ME, PROMPT, TURN, WORKS, Home, Step, bodies, until

USED: Step = {"result": {"result": "x", "usage": {"input_tokens": 700, "output_tokens": 400}}}
DEAR: Step = {"result": {"result": "x", "total_cost_usd": 0.75}}
INTERRUPTED: Step = {
    "result": {"subtype": "error_during_execution", "terminal_reason": "aborted_tools"}
}

#: The limit, what the agent does, what is said of it, and a limit that is enough.
REACHED: dict[str, tuple[Limits, Step, str, Limits]] = {
    "turns": (Limits(turns=1), DONE, "used 1 of 1 turns", Limits(turns=2)),
    "cost": (Limits(cost_usd=0.5), DEAR, "used $0.75 of $0.50", Limits(cost_usd=5)),
    "tokens": (Limits(tokens=1000), USED, "used 1,100 of 1,000 tokens", Limits(tokens=9000)),
}


@pytest.mark.parametrize("measure", REACHED)
async def test_at_a_limit_an_agent_is_paused_until_it_is_raised(home: Home, measure: str) -> None:
    limits, result, words, more = REACHED[measure]
    async with home.open() as supervisor:
        await home.start(supervisor, PROMPT, INIT, result, *TURN, name="a", limits=limits)
        record = await until(supervisor, "a", "paused")
        assert record.facts.pauses == ("budget",)
        assert (await bodies(supervisor, "a", stream.PAUSED))[0].words == words
        await supervisor.send("a", "more")
        assert supervisor.get("a").turns == 1
        assert supervisor.get("a").waiting
        await supervisor.set_limits("a", more, by="me")
        await supervisor.wait("a", lambda r: r.turns == 2, LIMIT)
        [change] = await bodies(supervisor, "a", stream.BUDGET)
        assert (change.limits, change.by) == (more, "me")


async def test_prompts_that_wait_are_not_told_beyond_a_limit(home: Home) -> None:
    async with home.open(size=1) as supervisor:
        await home.start(supervisor, *WORKS, name="first")
        await home.start(supervisor, *TURN * 4, name="a", limits=Limits(turns=1))
        for words in ("two", "three", "four"):
            await supervisor.send("a", words)
        await supervisor.stop("first")
        record = await until(supervisor, "a", "paused")
        assert (record.turns, len(record.waiting)) == (1, 3)
        await supervisor.set_limits("a", Limits(turns=3), by="me")
        record = await supervisor.wait("a", lambda r: (r.turns, r.state) == (3, "paused"), LIMIT)
        assert len(record.waiting) == 1
        await supervisor.set_limits("a", Limits(), by="me")
        await supervisor.wait("a", lambda r: r.turns == 4, LIMIT)


@pytest.mark.slow
async def test_when_the_time_is_over_the_turn_is_interrupted(home: Home) -> None:
    cli = home.cli(*WORKS, {"await_request": "interrupt"}, INTERRUPTED, *TURN)
    async with home.open() as supervisor:
        made = {"cwd": home.work, "by": ME, "command": cli.command, "name": "a", "prompt": "go"}
        await supervisor.create(limits=Limits(seconds=1.0), **made)  # type: ignore[arg-type]
        await until(supervisor, "a", "running")
        record = await until(supervisor, "a", "paused")
        record = await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        assert (record.state, record.outcome) == ("paused", "cancelled")
        assert record.seconds == pytest.approx(1.0, abs=0.5)
        assert "of 1 s" in (await bodies(supervisor, "a", stream.PAUSED))[0].words
        await supervisor.set_limits("a", Limits(seconds=60), by="me")
        await supervisor.send("a", "go on")
        await supervisor.wait("a", lambda r: r.turns == 2, LIMIT)


async def test_the_limit_of_a_parent_pauses_all_who_share_it(home: Home) -> None:
    async with home.open() as supervisor:
        await home.start(supervisor, *WORKS, name="root", limits=Limits(turns=2))
        await home.start(supervisor, *TURN * 3, name="child", parent="root")
        await supervisor.wait("child", lambda r: r.turns == 1, LIMIT)
        await supervisor.send("child", "again")
        await until(supervisor, "child", "paused")
        await until(supervisor, "root", "paused")
        await supervisor.set_limits("root", Limits(turns=5), by="me")
        await until(supervisor, "child", "idle")
        await until(supervisor, "root", "running")


async def test_who_is_at_a_limit_is_found_so_by_a_later_supervisor(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        await home.start(supervisor, *TURN * 2, name="a", limits=Limits(turns=1))
        await until(supervisor, "a", "paused")
        await supervisor.send("a", "more")
    async with home.open() as supervisor:
        record = supervisor.get("a")
        assert (record.state, len(record.waiting)) == ("paused", 1)
        await supervisor.set_limits("a", Limits(), by="me")
        await supervisor.wait("a", lambda r: r.turns == 2, LIMIT)


async def test_a_limit_that_is_none_is_refused(home: Home) -> None:
    async with home.open() as supervisor:
        for limits in (Limits(turns=-1), Limits(cost_usd=float("nan")), Limits(tokens=0)):
            with pytest.raises(InvalidLimit):
                await home.start(supervisor, *TURN, limits=limits)
        assert supervisor.list() == []


async def test_a_person_pauses_a_turn_and_lets_it_go_on(home: Home) -> None:
    async with home.open() as supervisor:
        steps = (*WORKS, {"await_request": "interrupt"}, INTERRUPTED, *TURN)
        await home.start(supervisor, *steps, name="a")
        await until(supervisor, "a", "running")
        await supervisor.pause("a", by="me")
        record = await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        assert (record.state, record.outcome) == ("paused", "cancelled")
        await supervisor.send("a", "later")
        assert supervisor.get("a").waiting
        await supervisor.unpause("a", by="me")
        await supervisor.wait("a", lambda r: r.turns == 2, LIMIT)
        with pytest.raises(NotPossible):
            await supervisor.unpause("a")


async def test_a_pause_outlives_the_process_and_the_supervisor(home: Home) -> None:
    async with home.open() as supervisor:
        await home.start(supervisor, *TURN * 2, name="a")
        await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        await supervisor.pause("a", by="me")
        await until(supervisor, "a", "paused")
        await supervisor.stop("a")
        await until(supervisor, "a", "stopped")
    async with home.open() as supervisor:
        await supervisor.resume("a", prompt="go")
        record = await until(supervisor, "a", "paused")
        assert record.launches == 1
        await supervisor.unpause("a")
        await supervisor.wait("a", lambda r: r.turns == 2, LIMIT)


async def test_a_stop_of_one_that_is_paused_stops_it(home: Home) -> None:
    async with home.open() as supervisor:
        await home.start(supervisor, *TURN, name="a", limits=Limits(turns=1))
        await until(supervisor, "a", "paused")
        await asyncio.wait_for(supervisor.stop("a"), LIMIT)
        await until(supervisor, "a", "stopped")
