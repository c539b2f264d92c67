"""Agents of agents: how many there may be, and what becomes of them when their parent ends."""

from __future__ import annotations

import asyncio

import pytest

from bridle.errors import BudgetTooSmall, LimitReached, NotPossible
from bridle.supervisor import Limits, LineageLimits, SessionRecord, Supervisor
from bridle.views import stream

from .homes import ASKS, LIMIT, TURN, WORKS, Home, asked, bodies, until


async def family(home: Home, supervisor: Supervisor, orphans: str = "stop") -> list[SessionRecord]:
    """A root, its child and a grandchild; all at work."""
    made: list[SessionRecord] = []
    for name in ("root", "child", "grandchild"):
        parent = made[-1].id if made else None
        record = await home.start(supervisor, *WORKS, name=name, parent=parent, orphans=orphans)
        made.append(await until(supervisor, record.id, "running"))
    return made


async def test_children_are_limited_in_number_and_in_depth(home: Home) -> None:
    limits = LineageLimits(depth=2, children=1, per_root=2)
    async with home.open(lineage=limits) as supervisor:
        root, child, grandchild = await family(home, supervisor)
        assert grandchild.lineage == (root.id, child.id)
        with pytest.raises(LimitReached, match="live children"):
            await home.start(supervisor, *TURN, parent="root")
        with pytest.raises(LimitReached, match="depth"):
            await home.start(supervisor, *TURN, parent="grandchild")
        assert len(supervisor.list()) == 3


async def test_children_that_are_born_at_the_same_time_are_limited_too(home: Home) -> None:
    async with home.open(lineage=LineageLimits(children=2)) as supervisor:
        await home.start(supervisor, *WORKS, name="root")
        made = await asyncio.gather(
            *(home.start(supervisor, *WORKS, parent="root") for _ in range(4)),
            return_exceptions=True,
        )
        assert sum(isinstance(one, LimitReached) for one in made) == 2


async def test_one_that_has_ended_has_no_more_children(home: Home) -> None:
    async with home.open() as supervisor:
        await home.start(supervisor, *TURN, start=False, name="root")
        with pytest.raises(NotPossible, match="resume it first"):
            await home.start(supervisor, *TURN, parent="root")


async def test_when_a_parent_is_stopped_those_below_it_are(home: Home) -> None:
    async with home.open() as supervisor:
        root, child, grandchild = await family(home, supervisor)
        await supervisor.stop("root")
        for record in (root, child, grandchild):
            await until(supervisor, record.id, "stopped")
        [stop] = await bodies(supervisor, "grandchild", stream.STOP_ASKED)
        assert root.id in stop.words
        assert home.alive() == []


async def test_when_a_parent_is_stopped_its_children_can_be_handed_over(home: Home) -> None:
    async with home.open() as supervisor:
        root, child, _ = await family(home, supervisor, "hand over")
        await supervisor.stop("child")
        moved = await supervisor.wait("grandchild", lambda r: r.lineage == (root.id,), LIMIT)
        assert (moved.state, moved.parent) == ("running", root.id)
        [body] = await bodies(supervisor, "grandchild", stream.HANDED_OVER)
        assert child.id in body.words


@pytest.mark.parametrize("end", ["exits", "is killed"])
async def test_the_children_of_a_parent_that_ends_by_itself_are_stopped(
    home: Home, end: str
) -> None:
    last = {"exit": 0} if end == "exits" else {"die": "SIGKILL"}
    async with home.open() as supervisor:
        await home.start(supervisor, *TURN, {"prompt": True}, last, name="root")
        await supervisor.wait("root", lambda r: r.turns == 1, LIMIT)
        await home.start(supervisor, *WORKS, name="child", parent="root")
        await until(supervisor, "child", "running")
        await supervisor.send("root", "end")
        await until(supervisor, "root", "stopped", "failed")
        await until(supervisor, "child", "stopped")
        assert home.alive() == []


async def test_the_children_of_a_parent_that_ends_by_itself_can_be_handed_over(home: Home) -> None:
    async with home.open() as supervisor:
        steps = (*TURN, {"prompt": True}, {"exit": 0})
        await home.start(supervisor, *steps, name="root", orphans="hand over")
        await supervisor.wait("root", lambda r: r.turns == 1, LIMIT)
        await home.start(supervisor, *TURN, *ASKS, name="child", parent="root")
        await supervisor.wait("child", lambda r: r.turns == 1, LIMIT)
        await supervisor.send("root", "end")
        moved = await supervisor.wait("child", lambda r: r.lineage == (), LIMIT)
        assert moved.state == "idle"
        assert len(await bodies(supervisor, "child", stream.HANDED_OVER)) == 1
        await supervisor.send("child", "go on")
        assert (await asked(supervisor, moved.id)).lineage == (), "nobody is above it any more"


async def test_a_childs_limits_are_taken_from_its_parents(home: Home) -> None:
    async with home.open() as supervisor:
        await home.start(supervisor, *WORKS, name="root", limits=Limits(turns=10, cost_usd=1.0))
        await until(supervisor, "root", "running")
        limits = Limits(turns=6, cost_usd=0.5)
        await home.start(supervisor, *WORKS, name="child", parent="root", limits=limits)
        with pytest.raises(BudgetTooSmall) as small:
            await home.start(supervisor, *WORKS, parent="root", limits=Limits(turns=5))
        assert (small.value.measure, small.value.left) == ("turns", 4)
        await supervisor.stop("child")
        await until(supervisor, "child", "stopped")
        again = await home.start(supervisor, *WORKS, parent="root", limits=Limits(turns=5))
        assert again.limits.turns == 5


async def test_the_number_below_one_is_limited_by_its_budget(home: Home) -> None:
    async with home.open() as supervisor:
        await home.start(supervisor, *WORKS, name="root", limits=Limits(concurrency=1))
        await home.start(supervisor, *WORKS, name="child", parent="root")
        with pytest.raises(BudgetTooSmall) as small:
            await home.start(supervisor, *WORKS, parent="root")
        assert small.value.measure == "concurrency"
        await supervisor.stop("child")
        await until(supervisor, "child", "stopped")
        await home.start(supervisor, *WORKS, parent="root")
