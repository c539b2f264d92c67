"""Stopping a session ends what its tools have started, in the foreground and behind `nohup`."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

import bridle
from bridle.errors import CliUnavailable
from bridle.process.census import see
from bridle.process.child import ChildProcess
from bridle.process.transport import Exit
from bridle.process.tree import find_tree
from bridle.protocol.capabilities import TESTED_VERSIONS
from bridle.testing import (
    Conversation,
    InstalledCli,
    ScriptedModel,
    Turn,
    install_cli,
    tool_use,
)
from bridle.testing.node import find_node

LIMIT = 60.0
#: What guarantee 7 promises.
STOP_SECONDS = 12.0

#: Each tells its pid on one pipe, and holds the other open for as long as it lives.
SLEEP = "sh -c 'echo $$ > {news}; exec sleep 600'"
FOREGROUND = f"exec 9> {{life}}; {SLEEP}"
BEHIND = f"exec 9> {{life}}; nohup {SLEEP} > /dev/null 2>&1 &"
OWN_SESSION = f"exec 9> {{life}}; setsid -f {SLEEP} > /dev/null 2>&1"


class Pipes:
    """`news`: the pids of the commands. `life`: held open by every one of them that is alive."""

    def __init__(self, folder: Path) -> None:
        self.news, self.life = folder / "news", folder / "life"
        for path in (self.news, self.life):
            os.mkfifo(path)
        # For reading and writing, so that it has no end while one command follows another.
        self._news = os.open(self.news, os.O_RDWR | os.O_NONBLOCK)
        self._life = os.open(self.life, os.O_RDONLY | os.O_NONBLOCK)

    def close(self) -> None:
        os.close(self._news)
        os.close(self._life)

    async def pids(self, count: int) -> list[int]:
        """Wait until so many commands run."""
        came, data = asyncio.Event(), bytearray()
        loop = asyncio.get_running_loop()

        def read() -> None:
            data.extend(os.read(self._news, 1000))
            if data.count(b"\n") >= count:
                came.set()

        loop.add_reader(self._news, read)
        try:
            await asyncio.wait_for(came.wait(), LIMIT)
        finally:
            loop.remove_reader(self._news)
        return [int(pid) for pid in data.split()]

    def anybody_lives(self) -> bool:
        try:
            os.read(self._life, 1)
        except BlockingIOError:
            return True
        return False


@pytest.fixture
def pipes(tmp_path: Path) -> Iterator[Pipes]:
    pipes = Pipes(tmp_path)
    yield pipes
    pipes.close()


@pytest.fixture
def mark() -> Iterator[str]:
    """In the environment of all that the test starts: what outlives it is ended."""
    mark = secrets.token_hex(8)
    yield mark
    for process in psutil.process_iter():
        try:
            if process.environ().get("BRIDLE_TEST") == mark:
                process.kill()
        except psutil.Error:
            continue


@pytest.fixture(params=TESTED_VERSIONS)
def cli(request: pytest.FixtureRequest) -> InstalledCli:
    try:
        return install_cli(request.param)
    except CliUnavailable as error:
        if find_node() is None and not os.environ.get("CI"):
            pytest.skip(str(error))
        raise


@asynccontextmanager
async def agent(
    cli: InstalledCli, tmp_path: Path, pipes: Pipes, mark: str, *commands: str
) -> AsyncIterator[tuple[bridle.Session, bridle.Turn]]:
    """A session of a real CLI that runs these commands, one after the other, in one turn."""
    written = [command.format(news=pipes.news, life=pipes.life) for command in commands]
    turns = [Turn(tool_use("Bash", command=command, description="run")) for command in written]
    work = tmp_path / "work"
    work.mkdir()
    # What a CLI says when it is interrupted is none of this test's business: hence the `then`.
    async with (
        ScriptedModel(Conversation(turns, then="Done.")) as model,
        bridle.connect(
            command=cli.command,
            cwd=work,
            inherit_env=False,
            env={**model.environment(tmp_path / "home"), "BRIDLE_TEST": mark},
            approver=lambda _: bridle.Allow(),
        ) as session,
    ):
        turn = await session.send("go")
        turn.discard()
        yield session, turn


async def stop(session: bridle.Session, pipes: Pipes, pids: list[int]) -> bridle.Stopped:
    """Stop it, in time; see that all of these lived until then, and nothing does any more."""
    child = session._transport
    assert isinstance(child, ChildProcess)
    assert set(pids) < {p.pid for p in find_tree(child.pid, child.launch)}
    assert pipes.anybody_lives()
    start = time.monotonic()
    stopped = await session.stop()
    assert time.monotonic() - start < STOP_SECONDS
    assert not pipes.anybody_lives()
    assert find_tree(child.pid, child.launch) == []
    assert not any(map(see, pids))
    assert stopped.survivors == ()
    return stopped


@pytest.mark.slow
async def test_a_command_that_runs_and_those_behind_it_end_with_the_session(
    cli: InstalledCli, pipes: Pipes, tmp_path: Path, mark: str
) -> None:
    commands = (BEHIND, OWN_SESSION, FOREGROUND)
    async with agent(cli, tmp_path, pipes, mark, *commands) as (session, _):
        await stop(session, pipes, await pipes.pids(3))


@pytest.mark.slow
async def test_orphans_end_with_a_session_that_is_idle(
    cli: InstalledCli, pipes: Pipes, tmp_path: Path, mark: str
) -> None:
    async with agent(cli, tmp_path, pipes, mark, BEHIND, OWN_SESSION) as (session, turn):
        pids = await pipes.pids(2)
        await asyncio.wait_for(turn.result(), LIMIT)
        stopped = await stop(session, pipes, pids)
    # The CLI ended by itself: what had to be signalled are the orphans alone.
    assert (stopped.step, stopped.exit) == ("SIGTERM", Exit(code=0))
