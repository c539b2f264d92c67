"""What is done to agents, their tools and their shims from outside: each ends in a state that says
so, and nothing that was acknowledged is lost."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from bridle.approvals import Approve
from bridle.process.spool import Spool
from bridle.supervisor import SessionRecord, Supervisor
from bridle.views import stream
from tests.process.children import is_alive

from .homes import (
    ASKS,
    DONE,
    INIT,
    LIMIT,
    ME,
    PROMPT,
    TURN,
    WORKS,
    Home,
    Step,
    asked,
    bodies,
    kinds,
    settled,
    until,
)

SPAWNS = (PROMPT, INIT, {"spawn": {"seconds": 600}}, {"say": "started it"})


def cli_of(spool: Spool) -> int:
    found = spool.cli()
    assert found
    return found.pid


def shim_of(spool: Spool) -> int:
    found = spool.shim()
    assert found
    return found.pid


async def working(home: Home, supervisor: Supervisor) -> SessionRecord:
    await home.start(supervisor, *WORKS, name="a")
    return await until(supervisor, "a", "running")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
async def test_an_agent_that_is_killed_has_failed_and_can_go_on(home: Home, number: int) -> None:
    async with home.open() as supervisor:
        record = await home.start(supervisor, *TURN * 2, name="a")
        record = await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        os.kill(cli_of(home.spool(record)), number)
        record = await until(supervisor, "a", "failed")
        assert record.launch
        assert (record.launch.how, record.launch.signal) == ("killed", number)
        assert record.turns == 1
        await supervisor.resume("a", prompt="again")
        await supervisor.wait("a", lambda r: r.turns == 2, LIMIT)


async def test_an_approval_of_an_agent_that_is_killed_is_withdrawn(home: Home) -> None:
    async with home.open() as supervisor:
        record = await home.start(supervisor, *ASKS, name="a")
        approval = await asked(supervisor, record.id)
        record = await until(supervisor, "a", "awaiting approval")
        os.kill(cli_of(home.spool(record)), signal.SIGKILL)
        record = await until(supervisor, "a", "failed")
        assert record.outcome == "lost"
        assert record.approvals == []
        assert (await settled(supervisor, approval.id)).status == "cancelled"


async def test_a_tool_that_is_killed_changes_nothing_for_its_agent(home: Home) -> None:
    cli = home.cli(*SPAWNS, DONE, *TURN)
    async with home.open() as supervisor:
        made = {"cwd": home.work, "by": ME, "name": "a", "command": cli.command}
        await supervisor.create(prompt="go", **made)  # type: ignore[arg-type]
        await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        [tool] = [entry["spawned"] for entry in cli.report() if "spawned" in entry]
        os.kill(tool, signal.SIGKILL)
        await supervisor.send("a", "and?")
        await supervisor.wait("a", lambda r: r.turns == 2, LIMIT)


async def test_without_its_shim_an_agent_ends_and_is_said_to_be_lost(home: Home) -> None:
    async with home.open() as supervisor:
        record = await working(home, supervisor)
        os.kill(shim_of(home.spool(record)), signal.SIGKILL)
        record = await until(supervisor, "a", "lost")
        assert record.outcome == "lost"
        assert home.alive() == []
        await supervisor.resume("a")
        await until(supervisor, "a", "idle")


async def test_a_shim_is_deaf_to_the_signals_of_a_terminal(home: Home) -> None:
    async with home.open() as supervisor:
        record = await home.start(supervisor, *TURN * 2, name="a")
        record = await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(shim_of(home.spool(record)), number)
        await supervisor.send("a", "again")
        await supervisor.wait("a", lambda r: r.turns == 2, LIMIT)


@pytest.mark.parametrize("whose", ["agent", "shim"])
async def test_what_stands_still_is_told_when_it_goes_on(home: Home, whose: str) -> None:
    async with home.open() as supervisor:
        record = await home.start(supervisor, *TURN * 2, name="a")
        record = await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        spool = home.spool(record)
        pid = cli_of(spool) if whose == "agent" else shim_of(spool)
        os.kill(pid, signal.SIGSTOP)
        await supervisor.send("a", "again")
        record = await until(supervisor, "a", "running")
        assert record.turns == 1
        os.kill(pid, signal.SIGCONT)
        await supervisor.wait("a", lambda r: r.turns == 2, LIMIT)


@pytest.mark.slow
@pytest.mark.parametrize("whose", ["agent", "shim", "both"])
async def test_what_stands_still_is_stopped_all_the_same(home: Home, whose: str) -> None:
    async with home.open() as supervisor:
        record = await working(home, supervisor)
        spool = home.spool(record)
        pids = {"agent": [cli_of(spool)], "shim": [shim_of(spool)]}
        for pid in pids.get(whose) or [*pids["agent"], *pids["shim"]]:
            os.kill(pid, signal.SIGSTOP)
        await asyncio.wait_for(supervisor.stop("a"), LIMIT)
        record = await until(supervisor, "a", "stopped")
        assert home.alive() == []


@pytest.mark.slow
async def test_an_interrupt_of_one_that_stands_still_ends_in_time(home: Home) -> None:
    async with home.open() as supervisor:
        record = await working(home, supervisor)
        os.kill(cli_of(home.spool(record)), signal.SIGSTOP)
        with pytest.raises(TimeoutError):
            await supervisor.interrupt("a", timeout=0.2)
        await asyncio.wait_for(supervisor.stop("a"), LIMIT)


async def test_the_whole_tree_dies_on_stop_with_orphans_that_have_no_environment(
    home: Home, mark: str
) -> None:
    steps = ({"orphan": f"{mark}-1"}, {"orphan": f"{mark}-2"}, {"spawn": {"seconds": 600}})
    async with home.open() as supervisor:
        command = home.wild(PROMPT, INIT, *steps, {"ignore": ["SIGTERM", "SIGINT"]}, {"say": "ok"})
        await home.start(supervisor, command=command, name="a")
        await until(supervisor, "a", "running")
        said = 0
        async for _ in supervisor.watch():
            said = (await kinds(supervisor, "a")).count(stream.SAID)
            if said >= 5:
                break
        assert len(home.alive()) >= 5, "a shim, a CLI, two orphans and a tool"
        stopped = await asyncio.wait_for(supervisor.stop("a"), LIMIT)
        assert stopped
        assert stopped.survivors == ()
        assert home.alive() == []


async def test_orphans_of_an_agent_that_exits_by_itself_die_with_it(home: Home, mark: str) -> None:
    async with home.open() as supervisor:
        command = home.wild(PROMPT, INIT, {"orphan": mark}, DONE, {"exit": 0})
        await home.start(supervisor, command=command, name="a")
        record = await until(supervisor, "a", "stopped", "failed")
        assert record.state == "stopped"
        assert home.alive() == []


async def test_garbage_is_kept_and_shown_and_never_fatal(home: Home) -> None:
    words: list[Step] = [{"raw": "not json\n"}, {"raw": "[1,2]\n"}]
    garbage: list[Step] = [*words, {"bytes": "//79AAo="}, {"nonsense": 5000}]
    unknown = {"message": {"type": "surprise", "value": 1}}
    async with home.open() as supervisor:
        steps = (PROMPT, INIT, *garbage, unknown, DONE, *TURN)
        await home.start(supervisor, *steps, name="a")
        record = await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        assert (record.state, record.outcome) == ("idle", "complete")
        found = await kinds(supervisor, "a")
        assert found.count(stream.MALFORMED) >= 3
        said = await bodies(supervisor, "a", stream.SAID)
        assert [line.type for line in said if line.type == "surprise"]
        await supervisor.send("a", "again")
        await supervisor.wait("a", lambda r: r.turns == 2, LIMIT)


async def test_an_agent_that_closes_its_output_can_be_stopped(home: Home) -> None:
    async with home.open() as supervisor:
        await home.start(supervisor, *WORKS, {"close_stdout": True}, name="a")
        await until(supervisor, "a", "running")
        await asyncio.wait_for(supervisor.stop("a"), LIMIT)
        record = await until(supervisor, "a", "stopped")
        assert record.outcome == "cancelled"


@pytest.mark.slow
async def test_one_agent_that_floods_keeps_no_other_from_being_approved(home: Home) -> None:
    async with home.open() as supervisor:
        command = home.wild(PROMPT, INIT, {"flood": 60_000}, DONE)
        await home.start(supervisor, command=command, name="loud")
        await until(supervisor, "loud", "running")
        record = await home.start(supervisor, *ASKS, name="quiet")
        approval = await asked(supervisor, record.id)
        await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        await supervisor.wait("quiet", lambda r: r.turns == 1, LIMIT)
        assert supervisor.get("loud").turns == 0


async def test_an_agent_whose_spool_was_taken_away_can_be_stopped(home: Home) -> None:
    async with home.open() as supervisor:
        record = await working(home, supervisor)
        spool = home.spool(record)
        pids = [cli_of(spool), shim_of(spool)]
        spool.remove()
        await asyncio.wait_for(supervisor.stop("a"), LIMIT)
        await until(supervisor, "a", "stopped", "failed")
        assert not any(map(is_alive, pids))
