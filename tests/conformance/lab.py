"""One laboratory for each test: a real CLI of one version, a scripted model, its own empty home."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from bridle.process.arguments import ASK_US, STREAM_JSON
from bridle.protocol.answers import Initialized
from bridle.protocol.capabilities import parse_version
from bridle.protocol.content import tool_output, tool_results
from bridle.protocol.control import CanUseTool
from bridle.protocol.events import RequestReceived, Success
from bridle.protocol.messages import User
from bridle.protocol.permissions import Allow
from bridle.protocol.requests import Initialize
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

#: A shell command that every version asks about (2.0.75 thinks a lone `echo > file` safe).
COMMAND = "touch t.txt && echo hi > x.txt"
BASH = tool_use("Bash", command=COMMAND, description="write x")


class Run(Struct):
    """A CLI that is running, and the model that it talks to."""

    cli: PipedCli
    model: ScriptedModel
    initialized: Initialized | None = None


class Lab:
    """What a scenario needs; `saw` is what goes into the table of docs/conformance.md."""

    def __init__(self, version: str, folder: Path, recordings: Path | None) -> None:
        self.version = version
        self.cli: InstalledCli = install_cli(version)
        self.home = folder / "home"
        self.cwd = folder / "work"
        self.cwd.mkdir()
        self.observations: list[str] = []
        self._recordings = recordings
        self._runs = 0

    @property
    def is_old(self) -> bool:
        number = parse_version(self.version)
        assert number
        return number < (2, 1, 325)

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
                    run = Run(cli, model)
                    if initialize is not None:
                        run.initialized = await answered(cli, initialize)
                    yield run

    def _recorder(self, stack: ExitStack) -> Recorder | None:
        if self._recordings is None:
            return None
        self._runs += 1
        name = os.environ["PYTEST_CURRENT_TEST"].split("::")[-1].split("[")[0]
        path = self._recordings / self.version / f"{name.removeprefix('test_')}.{self._runs}.ndjson"
        return stack.enter_context(Recorder(path))


async def answered(cli: PipedCli, request: Any) -> Any:
    """The answer to a request that must succeed."""
    outcome = await cli.ask(request)
    assert isinstance(outcome, Success), outcome
    return outcome.answer


def allow(event: RequestReceived) -> Allow | None:
    """Allows every tool, as it was asked."""
    return Allow() if isinstance(event.request, CanUseTool) else None


def asked_tool(event: RequestReceived) -> CanUseTool:
    assert isinstance(event.request, CanUseTool), event.request
    return event.request


def last_output(cli: PipedCli) -> tuple[str, bool]:
    """The text of the newest tool result, and whether it is an error."""
    results = [block for message in cli.messages(User) for block in tool_results(message)]
    output = tool_output(results[-1])
    text = getattr(output, "text", repr(output))
    return text, bool(results[-1].is_error)


def settings(**members: Any) -> str:
    return f"--settings={json.dumps(members)}"


class Fifo:
    """A named pipe that a command writes to: how a test learns that the command runs."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._path = path

    async def read(self, limit: float = 60) -> str:
        # Opened for both ways, so that opening does not block and no end of file comes early.
        end = os.open(self._path, os.O_RDWR | os.O_NONBLOCK)
        readable = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(end, readable.set)
        try:
            await asyncio.wait_for(readable.wait(), limit)
            return os.read(end, 1024).decode().strip()
        finally:
            loop.remove_reader(end)
            os.close(end)
