"""A home on a disk that is full, or write-protected: real mounts. What was acknowledged is kept,
and what stops something works all the time."""

from __future__ import annotations

import asyncio
import os

import pytest

from bridle.approvals import Approve, Reject
from bridle.errors import BridleError, JournalUnusable, JournalUnwritable
from bridle.process.census import see
from bridle.supervisor import SessionRecord, Supervisor, open_supervisor
from bridle.views import stream
from tests.journal.sqlite.disks import Disk

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

MB = 1 << 20
DRIPS: tuple[Step, ...] = (PROMPT, INIT, {"drip": 100_000})


def is_stopped(pid: int) -> bool:
    found = see(pid)
    return found is not None and found.is_still()


async def stands_still(pid: int) -> None:
    async with asyncio.timeout(LIMIT):
        while not is_stopped(pid):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


def cli_of(home: Home, record: SessionRecord) -> int:
    cli = home.spool(record).cli()
    assert cli
    return cli.pid


async def dripping(home: Home, supervisor: Supervisor, name: str = "a") -> SessionRecord:
    await home.start(supervisor, command=home.wild(*DRIPS), name=name)
    record = await until(supervisor, name, "running")
    return await supervisor.wait(name, lambda r: r.seq > record.seq + 5, LIMIT)


@pytest.mark.slow
async def test_with_little_room_agents_stand_still_until_there_is_more(
    small_home: Home, disk: Disk
) -> None:
    async with small_home.open(free_bytes=4 * MB) as supervisor:
        record = await dripping(small_home, supervisor)
        disk.fill(leave=2 * MB)
        paused = await until(supervisor, "a", "paused")
        assert paused.facts.pauses == ("disk",)
        [pause] = await bodies(supervisor, "a", stream.PAUSED)
        assert "make room" in pause.words
        assert str(small_home.folder) in pause.words
        await stands_still(cli_of(small_home, record))
        # Nobody else begins to write either.
        await small_home.start(supervisor, *TURN, name="late")
        assert supervisor.get("late").launches == 0
        disk.free()
        record = await until(supervisor, "a", "running")
        assert not is_stopped(cli_of(small_home, record))
        await supervisor.wait("a", lambda r: r.seq > record.seq + 10, LIMIT)
        await supervisor.wait("late", lambda r: r.turns == 1, LIMIT)


def look_again(supervisor: Supervisor, free_bytes: int) -> None:
    """At the disk, which has enough room from so many bytes on."""
    supervisor._guards._free_bytes = free_bytes
    supervisor._guards._look_at_disk()


async def test_all_stand_still_while_there_is_little_room_and_all_go_on_after_it(
    home: Home,
) -> None:
    async with home.open(free_bytes=0) as supervisor:
        clis = []
        for name in ("a", "b"):
            await home.start(supervisor, *WORKS, name=name)
            clis.append(cli_of(home, await until(supervisor, name, "running")))
        assert supervisor._guards.has_room()
        look_again(supervisor, 1 << 62)
        for name, cli in zip("ab", clis, strict=True):
            paused = await until(supervisor, name, "paused")
            assert paused.facts.pauses == ("disk",)
            await stands_still(cli)
        [pause] = await bodies(supervisor, "b", stream.PAUSED)
        assert pause.words.endswith(f"MB are free on the disk of {home.folder}: make room")
        look_again(supervisor, 1 << 62)  # they are told once
        await home.start(supervisor, *TURN, name="late")
        assert (supervisor._guards.has_room(), supervisor.get("late").launches) == (False, 0)
        look_again(supervisor, 0)
        for name, cli in zip("ab", clis, strict=True):
            record = await until(supervisor, name, "running")
            assert (record.facts.pauses, is_stopped(cli)) == ((), False)
            assert len(await bodies(supervisor, name, stream.PAUSED)) == 1
        await supervisor.wait("late", lambda r: r.turns == 1, LIMIT)


async def test_room_that_is_barely_enough_is_not_enough_to_go_on(home: Home) -> None:
    async with home.open(free_bytes=1 << 62) as supervisor:
        await home.start(supervisor, *TURN, name="late")
        found = os.statvfs(home.folder)
        free = found.f_bavail * found.f_frsize
        look_again(supervisor, round(free / 1.1))
        assert not supervisor._guards.has_room()
        look_again(supervisor, free // 2)
        assert supervisor._guards.has_room()
        await supervisor.wait("late", lambda r: r.turns == 1, LIMIT)


@pytest.mark.slow
async def test_those_that_stand_still_go_on_under_a_later_supervisor(
    small_home: Home, disk: Disk
) -> None:
    async with small_home.open(free_bytes=4 * MB, keep=True) as supervisor:
        await dripping(small_home, supervisor)
        disk.fill(leave=2 * MB)
        await until(supervisor, "a", "paused")
    async with small_home.open(free_bytes=4 * MB, keep=True) as supervisor:
        assert supervisor.get("a").state == "paused"
    disk.free()
    async with small_home.open(free_bytes=4 * MB) as supervisor:
        record = await until(supervisor, "a", "running")
        await supervisor.wait("a", lambda r: r.seq > record.seq + 10, LIMIT)


@pytest.mark.slow
async def test_one_that_stands_still_can_be_stopped(small_home: Home, disk: Disk) -> None:
    async with small_home.open(free_bytes=4 * MB) as supervisor:
        await dripping(small_home, supervisor)
        disk.fill(leave=2 * MB)
        await until(supervisor, "a", "paused")
        await asyncio.wait_for(supervisor.stop("a"), LIMIT)
        assert small_home.alive() == []
        await until(supervisor, "a", "stopped")


async def filled(supervisor: Supervisor, disk: Disk, session: str) -> None:
    """Fill the disk until the log of this session can't be written."""
    for _ in range(20):
        disk.fill()
        try:
            async with asyncio.timeout(1.0):
                await supervisor.send(session, "x" * 10_000)
        except (JournalUnwritable, TimeoutError):
            return
    raise AssertionError("it can be written")


async def lost(home: Home, supervisor: Supervisor, disk: Disk) -> None:
    """Fill it until an agent loses words: the journal gives back some room first."""
    await home.start(supervisor, *TURN * 2, name="other")
    await supervisor.wait("other", lambda r: r.turns == 1, LIMIT)
    await filled(supervisor, disk, "other")
    disk.fill()
    await home.reported("No space left")


@pytest.mark.slow
async def test_without_any_room_what_stops_something_works(small_home: Home, disk: Disk) -> None:
    home = small_home
    cli = home.cli(*ASKS)
    async with home.open(free_bytes=0) as supervisor:
        made = {"cwd": home.work, "by": ME, "name": "asks", "command": cli.command}
        record = await supervisor.create(prompt="go", **made)  # type: ignore[arg-type]
        approval = await asked(supervisor, record.id)
        works = home.cli(*WORKS, {"await_request": "interrupt"}, DONE)
        await home.start(supervisor, command=works.command, name="works")
        await until(supervisor, "works", "running")
        await home.start(supervisor, *WORKS, name="stops")
        await until(supervisor, "stops", "running")
        await filled(supervisor, disk, "works")
        await asyncio.wait_for(
            supervisor.approvals.decide(approval.id, Reject("no room"), by=ME), LIMIT
        )
        # It is told, but what it answers can't be stored, so nobody hears of it yet.
        with pytest.raises(TimeoutError):
            await supervisor.interrupt("works", timeout=0.5)
        await asyncio.wait_for(supervisor.stop("stops"), LIMIT)
        assert "interrupt" in str(works.told())
        answer = cli.answer_to("q1")
        assert answer
        assert answer["response"]["behavior"] == "deny"
        disk.free()
        await until(supervisor, "stops", "stopped")
        await until(supervisor, "asks", "idle")
        assert (await settled(supervisor, approval.id)).status == "denied"
        wrote = await bodies(supervisor, "asks", stream.WROTE)
        assert [body.what for body in wrote if body.id == "q1"] == ["deny"]


@pytest.mark.slow
async def test_what_was_acknowledged_on_a_full_disk_is_done_when_there_is_room(
    small_home: Home, disk: Disk
) -> None:
    home = small_home
    cli = home.cli(*ASKS)
    async with home.open(free_bytes=0) as supervisor:
        made = {"cwd": home.work, "by": ME, "name": "asks", "command": cli.command}
        record = await supervisor.create(prompt="go", **made)  # type: ignore[arg-type]
        approval = await asked(supervisor, record.id)
        await home.start(supervisor, *TURN * 3, name="other")
        await supervisor.wait("other", lambda r: r.turns == 1, LIMIT)
        await filled(supervisor, disk, "other")
        try:
            async with asyncio.timeout(5):
                await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        except (BridleError, TimeoutError):
            # Not acknowledged: nobody may have been told, and it can be decided again.
            assert cli.answer_to("q1") is None
            disk.free()
            await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        else:
            disk.free()
        await supervisor.wait("asks", lambda r: r.turns == 1, LIMIT)
        answer = cli.answer_to("q1")
        assert answer
        assert answer["response"]["behavior"] == "allow"


@pytest.mark.slow
async def test_words_that_were_lost_on_a_full_disk_are_asked_for(
    small_home: Home, disk: Disk
) -> None:
    home = small_home
    async with home.open(free_bytes=0) as supervisor:
        command = home.wild(PROMPT, INIT, {"drip": 250}, DONE, *TURN)
        await home.start(supervisor, command=command, name="a")
        await until(supervisor, "a", "running")
        await lost(home, supervisor, disk)
        disk.free()
        record = await until(supervisor, "a", "idle")
        assert record.outcome in ("complete", "lost")
        found = await kinds(supervisor, "a")
        assert stream.MALFORMED in found
        assert stream.RESYNCED in found
        turns = record.turns
        await supervisor.send("a", "go on")
        await supervisor.wait("a", lambda r: r.turns == turns + 1, LIMIT)


@pytest.mark.slow
async def test_a_supervisor_can_be_closed_on_a_full_disk_and_the_next_one_goes_on(
    small_home: Home, disk: Disk
) -> None:
    home = small_home
    async with home.open(free_bytes=0, keep=True) as supervisor:
        await dripping(home, supervisor)
        await lost(home, supervisor, disk)
    disk.free()
    async with home.open(free_bytes=0) as supervisor:
        record = await until(supervisor, "a", "running")
        await supervisor.wait("a", lambda r: r.seq > record.seq + 10, LIMIT)
        assert supervisor.get("other").turns >= 1


async def test_a_home_that_is_write_protected_is_refused_with_words(
    small_home: Home, disk: Disk
) -> None:
    async with small_home.open() as supervisor:
        await small_home.start(supervisor, *TURN, start=False)
    disk.protect()
    with pytest.raises(JournalUnusable, match="make it writable"):
        async with open_supervisor(small_home.folder):
            pass


@pytest.mark.slow
async def test_a_new_session_on_a_full_disk_is_refused_or_waits(
    small_home: Home, disk: Disk
) -> None:
    async with small_home.open(free_bytes=0) as supervisor:
        await small_home.start(supervisor, *TURN, name="other")
        await supervisor.wait("other", lambda r: r.turns == 1, LIMIT)
        await filled(supervisor, disk, "other")
        with pytest.raises((BridleError, TimeoutError)):
            async with asyncio.timeout(2):
                await small_home.start(supervisor, *TURN, name="a")
        disk.free()
        await supervisor.wait("other", lambda r: r.turns >= 1 and not r.waiting, LIMIT)
