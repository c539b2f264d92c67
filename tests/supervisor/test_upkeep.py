"""What agents leave behind: given back to the disk, and nothing done while nobody does anything."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bridle.approvals import Approve
from bridle.journal import Document
from bridle.supervisor import Supervisor, open_supervisor
from bridle.supervisor.takeover import EVERY_LINES, PUNCH_BYTES, Saved

from .homes import ASKS, DONE, INIT, LIMIT, ME, PROMPT, SOON, TURN, Home, asked, until

MEGABYTE = 1024 * 1024


def spool_of(home: Home, supervisor: Supervisor, session: str) -> Path:
    launch = supervisor.get(session).launch
    assert launch
    return home.folder / "spool" / launch.id


def used(file: Path) -> int:
    return file.stat().st_blocks * 512


async def saved_of(supervisor: Supervisor, session: str) -> Saved:
    """The state that is saved of it, once one is."""
    async with asyncio.timeout(LIMIT):
        async for changes in supervisor.journal.bucket("takeovers", Saved).watch(session):
            for change in changes:
                if isinstance(change, Document) and change.value.session:
                    return change.value
    raise AssertionError("the journal was closed")


async def test_output_that_was_read_is_given_back_to_the_disk(home: Home) -> None:
    loud = {"repeat": 24, "steps": [{"big": MEGABYTE}]}
    async with home.open() as supervisor:
        await home.start(supervisor, PROMPT, INIT, loud, DONE, PROMPT, name="a")
        await supervisor.wait("a", lambda record: record.turns == 1, LIMIT * 2)
        # This is written behind all that was said, so all of that is stored and was given back.
        await supervisor.send("a", "more")
        output = spool_of(home, supervisor, "a") / "stdout"
        assert output.stat().st_size > 24 * MEGABYTE
        assert used(output) < PUNCH_BYTES + MEGABYTE


async def test_a_spool_is_removed_when_its_launch_has_ended(home: Home) -> None:
    async with home.open() as supervisor:
        await home.start(supervisor, *TURN, {"exit": 0}, name="a")
        spool = spool_of(home, supervisor, "a") if supervisor.get("a").launch else None
        await until(supervisor, "a", "stopped")
    assert spool is None or not spool.exists()
    assert list((home.folder / "spool").iterdir()) == []


async def test_a_state_is_saved_so_that_a_restart_need_not_read_all(home: Home) -> None:
    talk = {"repeat": EVERY_LINES + 50, "steps": [{"say": "on and on"}]}
    async with home.open(keep=True) as supervisor:
        made = await home.start(supervisor, PROMPT, INIT, talk, DONE, *ASKS, PROMPT, name="a")
        await supervisor.wait("a", lambda record: record.turns == 1, LIMIT)
        assert (await saved_of(supervisor, made.id)).seq > EVERY_LINES // 2
        await supervisor.send("a", "more")
        approval = await asked(supervisor, made.id)
    async with home.open() as supervisor:
        assert supervisor.recovered.alive == (made.id,)
        await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        record = await supervisor.wait("a", lambda record: record.turns == 2, LIMIT)
        assert (record.state, record.claude_session_id is not None) == ("idle", True)


async def test_nothing_is_done_while_agents_are_idle(home: Home) -> None:
    async with home.open() as supervisor:
        for name in ("a", "b"):
            await home.start(supervisor, *TURN, PROMPT, name=name)
            await until(supervisor, name, "idle")
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        timers = [one for one in loop._scheduled if not one.cancelled()]  # type: ignore[attr-defined]
        assert timers == []


async def test_a_deleted_session_leaves_nothing(home: Home) -> None:
    async with home.open() as supervisor:
        made = await home.start(supervisor, *ASKS, name="a")
        approval = await asked(supervisor, made.id)
        await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        await supervisor.wait("a", lambda record: record.turns == 1, LIMIT)
        await supervisor.stop("a")
        await until(supervisor, "a", "stopped")
        await supervisor.delete("a")
        assert supervisor.list() == []
        assert await supervisor.approvals.list() == []
        assert await supervisor.journal.log.read(made.id) == []
    async with open_supervisor(home.folder, stop_limits=SOON) as supervisor:
        assert supervisor.list() == []
        again = await home.start(supervisor, *TURN, {"exit": 0}, name="a")
        await supervisor.wait(again.id, lambda record: record.state == "stopped", LIMIT)
