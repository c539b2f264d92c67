"""A place where somebody runs agents by the command: a folder, fake CLIs, a home of its own.

Owns the environment of what is started there; nothing of the user's own is in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bridle.process.spool import Spool
from bridle.process.wake import open_wakes
from bridle.testing import FakeCli
from tests.cli import forks
from tests.process.children import MARK, marked
from tests.process.spools import until_spool

from .windows import COMMAND, LIMIT, Window, window

Step = dict[str, Any]

PROMPT: Step = {"prompt": True}
INIT: Step = {"init": {}}
DONE: Step = {"result": {"result": "ok", "total_cost_usd": 0.0421, "duration_ms": 12_345}}
#: What comes of an interrupt.
INTERRUPTED: tuple[Step, ...] = (
    {"await_request": "interrupt"},
    {
        "result": {
            "subtype": "error_during_execution",
            "is_error": True,
            "terminal_reason": "aborted_streaming",
        }
    },
)


def calls(name: str, given: Step, id_: str = "t1") -> Step:
    return {"tool_use": {"name": name, "id": id_, "input": given}}


def asks(name: str, given: Step, id_: str = "t1") -> tuple[Step, Step]:
    """A call that the CLI asks about; the request has the id of the call."""
    question = {"tool_name": name, "input": given, "tool_use_id": id_}
    return calls(name, given, id_), {"ask": question, "id": id_}


def judged(name: str, given: Step, id_: str = "t1") -> tuple[Step, Step]:
    """A call that only the gate's hook hears of."""
    return calls(name, given, id_), {
        "hook": {"tool_name": name, "tool_input": given, "tool_use_id": id_}
    }


def gives(id_: str, text: str, *, is_error: bool = False) -> Step:
    """The result of a call that needed no approval."""
    block = {"type": "tool_result", "tool_use_id": id_, "content": text, "is_error": is_error}
    return {"message": {"type": "user", "message": {"role": "user", "content": [block]}}}


class Place:
    """All below one folder; `mark` is in the environment of all that is started here."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        (folder / "user").mkdir()
        self._mark = mark
        self._made = 0
        self._server: forks.Command | None = None
        inherited = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.env = {
            **inherited,
            MARK: mark,
            "HOME": str(folder / "user"),
            "USER": "ada",
            "LOGNAME": "ada",
            "CLAUDE_CONFIG_DIR": str(folder / "user" / ".claude"),
            "BRIDLE_HOME": str(folder / "home"),
        }

    def cli(self, *steps: Step, **settings: Any) -> FakeCli:
        """One that plays these steps; the next agent here is this one."""
        self._made += 1
        cli = FakeCli(steps, self.folder / "fakes", f"cli-{self._made}", **settings)
        self.env["BRIDLE_CLAUDE"] = shlex.join(cli.command)
        return cli

    @asynccontextmanager
    async def window(self, *words: str, **options: Any) -> AsyncIterator[Window]:
        """`bridle WORDS` at a terminal."""
        env = {**self.env, **options.pop("env", {})}
        async with window(*words, cwd=self.work, env=env, **options) as opened:
            yield opened

    async def piped(self, *words: str, given: bytes = b"", **env: str) -> Piped:
        """`bridle WORDS` without any terminal, from its start to its end."""
        done = await asyncio.to_thread(
            forks.run,
            words,
            cwd=self.work,
            env={**self.env, **env},
            stdin=given.decode(),
            limit=LIMIT,
        )
        return Piped(done.returncode, done.stdout, done.stderr)

    async def start(self, *words: str, **env: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *COMMAND,
            *words,
            cwd=self.work,
            env={**self.env, **env},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def reported(self, words: str) -> None:
        """Until one of the CLIs has reported this."""
        fakes = self.folder / "fakes"

        def is_there() -> bool:
            return any(words in file.read_text() for file in fakes.glob("*.report*"))

        with contextlib.closing(await open_wakes(fakes)) as wakes:
            await until_spool(wakes, Spool(fakes), is_there)

    # --- a server

    async def up(self) -> None:
        """Start the server; until it says where it is. Agents end with it, unless it is killed."""
        words, env = ("up", "--json", "--port", "0"), {**self.env, "BRIDLE_STOP_AGENTS": "1"}
        told, told_end = os.pipe()
        with os.fdopen(told) as out:
            self._server = forks.Command(words, (0, told_end, 2), self.work, env)
            os.close(told_end)
            assert await asyncio.to_thread(out.readline), "the server has ended"

    async def kill_server(self) -> None:
        """kill -9."""
        await self._end(signal.SIGKILL)

    async def down(self) -> None:
        if self._server:
            await self._end(signal.SIGTERM)

    async def _end(self, by: signal.Signals) -> None:
        assert self._server
        self._server.send_signal(by)
        await asyncio.to_thread(self._server.wait, LIMIT)
        self._server = None

    async def agent(self, *steps: Step, name: str = "fixer") -> FakeCli:
        """An agent that the server looks after, and that was told to go."""
        cli = self.cli(*steps)
        command = f"command={json.dumps(cli.command)}"
        started = await self.piped("start", "Go", "--name", name, "--option", command)
        assert started.code == 0, started.err
        return cli

    async def state_of(self, session: str) -> str:
        shown = await self.piped("ps", "--all", "--json")
        (found,) = [one for one in json.loads(shown.out) if session in (one["name"], one["id"])]
        return str(found["state"])

    def alive(self) -> list[int]:
        return [pid for pid in marked(self._mark) if pid != os.getpid()]

    def end_all(self) -> list[int]:
        """End what was left behind; what that was."""
        left = self.alive()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return left


class Piped:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
