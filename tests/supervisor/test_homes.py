"""One home has one supervisor; and the program around it, which says what it does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator

import pytest

from bridle.errors import HomeInUse, HomeNotPrivate
from bridle.process.wake import open_wakes
from bridle.supervisor import SessionRecord, open_supervisor
from bridle.supervisor.__main__ import main
from bridle.views import stream
from tests.process.spools import until_spool

from .homes import ASKS, LIMIT, TURN, WORKS, Home, asked, bodies, until


class Runner:
    """`python -m bridle.supervisor`, as a process of the test."""

    def __init__(self, process: Process) -> None:
        self.process = process

    async def line(self) -> str:
        assert self.process.stdout
        async with asyncio.timeout(LIMIT):
            return (await self.process.stdout.readline()).decode().rstrip("\n")

    async def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Its status, and what it said last, on both."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)
        return await self.ended()

    async def ended(self) -> tuple[int, str, str]:
        async with asyncio.timeout(LIMIT):
            out, errors = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, out.decode(), errors.decode()


@contextlib.asynccontextmanager
async def run(home: Home, *words: str) -> AsyncIterator[Runner]:
    command = [sys.executable, "-m", "bridle.supervisor", "--home", str(home.folder), *words]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    try:
        yield Runner(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def killed(home: Home, record: SessionRecord) -> None:
    """Its CLI, and its shim knows."""
    spool = home.spool(record)
    cli = spool.cli()
    assert cli
    os.kill(cli.pid, signal.SIGKILL)
    with contextlib.closing(await open_wakes(home.folder / "spool")) as wakes:
        await until_spool(wakes, spool, lambda: spool.exit() is not None)


async def test_a_home_has_one_supervisor_at_a_time(home: Home) -> None:
    async with home.open() as supervisor:
        with pytest.raises(HomeInUse) as used:
            async with open_supervisor(home.folder):
                pass
        assert used.value.pid == os.getpid()
        assert supervisor.list() == []
    async with home.open():
        pass


async def test_the_program_says_in_one_line_that_a_home_is_in_use(home: Home) -> None:
    async with home.open(), run(home) as runner:
        code, out, errors = await runner.ended()
    assert code == 1
    assert out == ""
    assert errors.count("\n") == 1
    assert f"is in use by process {os.getpid()}" in errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_its_end_keeps_the_agents_and_its_start_says_what_was_found(
    home: Home, number: int
) -> None:
    async with home.open(keep=True) as supervisor:
        record = await home.start(supervisor, *ASKS, name="asks")
        await asked(supervisor, record.id)
        await home.start(supervisor, *WORKS, name="dies")
        dies = await until(supervisor, "dies", "running")
    await killed(home, dies)
    async with run(home) as runner:
        assert await runner.line() == f"looking after the agents of {home.folder}"
        assert (await runner.line()).startswith(
            "1 agents were found at work, 1 had ended, 1 approvals wait"
        )
        assert dies.id in await runner.line()
        code, out, errors = await runner.end(number)
        assert (code, out, errors) == (0, "ended; 1 agents run on\n", "")
    assert home.alive()
    async with home.open() as supervisor:
        assert supervisor.get("asks").state == "awaiting approval"
        await until(supervisor, "dies", "failed")


async def test_it_ends_the_agents_where_it_is_told_to(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        await home.start(supervisor, *TURN, name="a")
        await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
    async with run(home, "--stop-agents") as runner:
        await runner.line()
        assert (await runner.line()).startswith("1 agents were found at work, 0 had ended")
        assert (await runner.end())[:2] == (0, "ended; no agents run on\n")
    assert home.alive() == []
    async with home.open() as supervisor:
        [ended] = await bodies(supervisor, "a", stream.ENDED)
        assert ended.how == "stopped"


async def test_a_home_that_can_not_be_is_one_line(home: Home) -> None:
    home.folder.write_text("a file")
    async with run(home) as runner:
        code, _, errors = await runner.ended()
    assert code == 1
    assert errors.count("\n") == 1
    assert str(home.folder) in errors


async def test_a_home_that_others_can_read_is_closed_to_them(home: Home) -> None:
    home.folder.mkdir(mode=0o755)
    async with home.open():
        assert stat.S_IMODE(home.folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o702])
@pytest.mark.parametrize("is_asleep", [False, True])
async def test_a_home_that_others_can_write_to_is_not_opened(
    home: Home, mode: int, is_asleep: bool
) -> None:
    home.folder.mkdir()
    home.folder.chmod(mode)
    with pytest.raises(HomeNotPrivate, match=r"others can write to it.*`chmod 700`"):
        async with open_supervisor(home.folder, is_asleep=is_asleep):
            pass
    assert list(home.folder.iterdir()) == []


async def test_nor_one_of_another_user(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.folder.mkdir(mode=0o700)
    uid = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: uid + 1)
    with pytest.raises(HomeNotPrivate, match="it belongs to another user"):
        async with home.open():
            pass
    assert list(home.folder.iterdir()) == []


def test_a_unit_is_printed_for_the_home(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--home", str(home.folder), "--unit"]) == 0
    unit = capsys.readouterr().out
    assert str(home.folder) in unit
    assert sys.executable in unit
    assert "KillMode=process" in unit
    assert "@HOME@" not in unit
