"""One laboratory for each test: a real CLI of one version, a scripted model, its own empty home.

`session` runs the CLI under a `bridle.Session`; `run` over plain pipes, for what a session would
never write.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Unpack

import psutil
from msgspec import Struct

import bridle
from bridle.process.arguments import ASK_US, STREAM_JSON
from bridle.process.child import ChildProcess
from bridle.process.spec import LaunchOptions
from bridle.process.transport import Exit
from bridle.protocol.capabilities import parse_version
from bridle.protocol.control import CanUseTool
from bridle.protocol.events import RequestReceived, Success
from bridle.protocol.permissions import Allow
from bridle.protocol.requests import Initialize
from bridle.session.desk import Approver, Desk
from bridle.session.policies import PolicyLike
from bridle.session.tools import Tools
from bridle.testing import (
    Conversation,
    InstalledCli,
    PipedCli,
    Recorder,
    ScriptedModel,
    Turn,
    install_cli,
    tool_use,
)
from bridle.testing.pipe import Responder

from .talk import Talk, Wire

#: A shell command that every version asks about (2.0.75 thinks a lone `echo > file` safe).
COMMAND = "touch t.txt && echo hi > x.txt"
BASH = tool_use("Bash", command=COMMAND, description="write x")


class Run(Struct):
    """A CLI that is running, and the model that it talks to."""

    cli: PipedCli
    model: ScriptedModel


class Lab:
    """What a scenario needs; `saw` is what goes into the table of docs/conformance.md."""

    def __init__(self, version: str, folder: Path, recordings: Path | None) -> None:
        self.version = version
        self.cli: InstalledCli = install_cli(version)
        self.home = folder / "home"
        self.cwd = folder / "work"
        self.cwd.mkdir()
        self.observations: list[str] = []
        self.by_session = False
        #: Of the newest session, also of one that could not be started.
        self.wire = Wire(None)
        self._recordings = recordings
        self._runs = 0

    @property
    def is_old(self) -> bool:
        number = parse_version(self.version)
        assert number
        return number < (2, 1, 325)

    @property
    def config_dir(self) -> Path:
        """Where the CLI keeps its sessions."""
        return self.home / "claude"

    def saw(self, what: str) -> None:
        self.observations.append(what)

    def exists(self, name: str) -> bool:
        return (self.cwd / name).exists()

    @asynccontextmanager
    async def run(
        self,
        *scripts: Sequence[Turn | str] | Conversation,
        flags: Sequence[str] = (),
        ask_us: bool = True,
        env: dict[str, str] | None = None,
        initialize: Initialize | None = None,
        respond: Responder | None = None,
    ) -> AsyncIterator[Run]:
        """Start the CLI on a script; `initialize` is sent first and must succeed."""
        arguments = [*STREAM_JSON, *(ASK_US if ask_us else ()), *flags]
        async with ScriptedModel(*(scripts or [[]])) as model:
            with ExitStack() as stack:
                cli = PipedCli(
                    self.cli.command,
                    arguments=arguments,
                    env={**model.environment(self.home), **(env or {})},
                    cwd=self.cwd,
                    respond=respond,
                    recorder=self._recorder(stack),
                )
                async with cli:
                    if initialize is not None:
                        await answered(cli, initialize)
                    yield Run(cli, model)

    @asynccontextmanager
    async def session(
        self,
        *scripts: Sequence[Turn | str] | Conversation,
        approver: Approver | Desk | None = None,
        policy: PolicyLike | None = None,
        trust: bridle.Survey | None = None,
        hooks: bridle.Hooks | None = None,
        tools: Tools = (),
        agents: dict[str, bridle.Agent] | None = None,
        **launch: Unpack[LaunchOptions],
    ) -> AsyncIterator[Talk]:
        """Start the CLI under a session on a script; what it started must be gone at the end."""
        self.by_session = True
        async with ScriptedModel(*(scripts or [[]])) as model:
            with ExitStack() as stack:
                wire = self.wire = Wire(self._recorder(stack))
                connecting = bridle.connect(
                    approver=approver,
                    # Most scenarios are about what the CLI does by itself.
                    policy=policy or bridle.Ungated(),
                    trust=trust,
                    hooks=hooks,
                    tools=tools,
                    agents=agents,
                    log=wire.log,
                    on_stderr=wire.complained,
                    **self._launch(model, launch),
                )
                async with connecting as session:
                    process = session._transport
                    assert isinstance(process, ChildProcess)
                    assert session.capabilities.version == self.version
                    wire.note({"argv": process.argv, "cwd": str(self.cwd)})
                    yield Talk(session, model, process, wire, session.messages())
                stopped = await session.stop()
                assert stopped.survivors == ()
                counted = session.counters
                assert (counted.malformed, counted.unknown, counted.unreadable_requests) == (
                    0,
                    0,
                    0,
                )
                wire.note({"exit": _exit_code(stopped.exit)})

    def _launch(self, model: ScriptedModel, more: LaunchOptions) -> LaunchOptions:
        env = {**model.environment(self.home), **more.get("env", {})}
        ours: LaunchOptions = {"command": self.cli.command, "cwd": self.cwd, "inherit_env": False}
        return {**ours, **more, "env": env}

    def _recorder(self, stack: ExitStack) -> Recorder | None:
        if self._recordings is None:
            return None
        self._runs += 1
        name = os.environ["PYTEST_CURRENT_TEST"].split("::")[-1].split("[")[0]
        path = self._recordings / self.version / f"{name.removeprefix('test_')}.{self._runs}.ndjson"
        return stack.enter_context(Recorder(path))


def _exit_code(status: Exit | None) -> int | None:
    """As a recording has it: negative for a signal."""
    if status is None:
        return None
    return status.code if status.signal is None else -status.signal


async def answered(cli: PipedCli, request: Any) -> Any:
    """The answer to a request that must succeed."""
    outcome = await cli.ask(request)
    assert isinstance(outcome, Success), outcome
    return outcome.answer


def allow(event: RequestReceived) -> Allow | None:
    """Allows every tool, as it was asked."""
    return Allow() if isinstance(event.request, CanUseTool) else None


def edits(lab: Lab) -> list[Turn | str]:
    """A script that changes a file from "one" to "two"."""
    path = lab.cwd / "in.txt"
    path.write_text("one\n")
    read = tool_use("Read", file_path=str(path))
    edit = tool_use("Edit", file_path=str(path), old_string="one", new_string="two")
    return [Turn(read), Turn(edit), "Edited."]


def is_alive(process: psutil.Process) -> bool:
    # Whoever adopts an orphan may never reap it: a zombie is dead.
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


class Fifo:
    """A named pipe between a command and a test: each learns thus where the other is."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._path = path

    @contextmanager
    def open(self) -> Iterator[int]:
        # Opened for both ways, so that opening does not block and no end of file comes early.
        end = os.open(self._path, os.O_RDWR | os.O_NONBLOCK)
        try:
            yield end
        finally:
            os.close(end)

    async def read(self, limit: float = 60) -> str:
        """What the command writes."""
        readable = asyncio.Event()
        loop = asyncio.get_running_loop()
        with self.open() as end:
            loop.add_reader(end, readable.set)
            try:
                await asyncio.wait_for(readable.wait(), limit)
                return os.read(end, 1024).decode().strip()
            finally:
                loop.remove_reader(end)
