"""A person at a shell: the `bridle` command as a process of its own, in a home of its own.

Owns what it starts: a server, agents. All of it carries a mark, and is ended by its pid.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from bridle.testing import FakeCli
from tests.process.children import MARK, marked

from . import forks

COMMAND = (sys.executable, "-m", "bridle.cli")
LIMIT = 60.0

Step = dict[str, Any]
PROMPT: Step = {"prompt": True}
INIT: Step = {"init": {}}
#: One whole turn.
TURN: tuple[Step, ...] = (PROMPT, INIT, {"say": "hello"}, {"result": "done"})


def call(tool: str, given: dict[str, Any], id_: str = "t1") -> tuple[Step, ...]:
    """A tool that is asked for."""
    return (
        {"tool_use": {"name": tool, "id": id_, "input": given}},
        {"ask": {"tool_name": tool, "input": given, "tool_use_id": id_}, "id": f"ask-{id_}"},
    )


def asks(tool: str = "Bash", **given: Any) -> tuple[Step, ...]:
    """A turn that asks for something."""
    return (PROMPT, INIT, *call(tool, given or {"command": "rm x"}), {"result": "done"}, PROMPT)


class Shell:
    """One person, one home."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.work = folder / "work"
        self.mark = mark
        self.python = sys.executable
        self._made = 0
        self._server: forks.Command | None = None
        for made in (self.work, folder / "user"):
            made.mkdir()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "user"),
            "CLAUDE_CONFIG_DIR": str(folder / "user" / ".claude"),
            "BRIDLE_HOME": str(self.home),
            MARK: mark,
        }

    # --- commands

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, *words], cwd=self.work, env=self.env, text=True, **options
        )

    def done(
        self, *words: str, stdin: str = "", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        env = self.env | (env or {})
        return forks.run(words, cwd=self.work, env=env, stdin=stdin, limit=LIMIT)

    def run(self, *words: str, code: int = 0, stdin: str = "") -> str:
        """What it printed; on stderr, if it was to fail."""
        done = self.done(*words, stdin=stdin)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        if code:
            assert done.stderr.startswith("bridle: "), done.stderr
            return done.stderr
        return done.stdout

    def json(self, *words: str, code: int = 0) -> Any:
        done = self.done(*words, "--json")
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def until(self, *words: str, holds: Callable[[Any], bool]) -> Any:
        """What a command says, looked at again whenever the server has news, until it is so."""
        socket, end = (
            httpx.HTTPTransport(uds=str(self.home / "bridle.sock"), verify=False),
            time.monotonic(),
        )
        headers = {"Accept": "text/event-stream"}
        with (
            httpx.Client(transport=socket, timeout=LIMIT) as client,
            client.stream("GET", "http://localhost/api/v1/events", headers=headers) as news,
        ):
            assert news.status_code == 200, news.read()
            for _ in news.iter_raw():
                found = self.json(*words)
                if holds(found):
                    return found
                assert time.monotonic() < end + LIMIT, f"{words} stays {found}"
        raise AssertionError(f"the server has ended before {words} was so")

    def session(self, name: str, *states: str) -> Any:
        """A session, once it is in one of these states; idle only when no prompt waits for it."""

        def is_there(one: Any) -> bool:
            is_so = one["name"] == name and one["state"] in states
            return is_so and not (one["state"] == "idle" and one["waiting"])

        found = self.until("ps", "--all", holds=lambda found: any(map(is_there, found)))
        return next(one for one in found if is_there(one))

    def approval(self) -> Any:
        """The one that waits, once it does."""
        return self.until("approvals", holds=bool)[0]

    # --- the server, and what it starts

    def claude(self, *steps: Step, **settings: Any) -> FakeCli:
        """From now on agents play this."""
        self._made += 1
        fake = FakeCli(steps, self.folder / "fakes", f"cli-{self._made}", **settings)
        self.env["BRIDLE_CLAUDE"] = shlex.join(fake.command)
        return fake

    def up(self, *words: str) -> Any:
        """A server; what it says when it is ready."""
        return self.up_with("up", "--json", "--port", "0", *words)

    def up_with(self, *words: str) -> Any:
        """The same by another command."""
        told, told_end = os.pipe()
        # What it says at the end goes where what the test says goes.
        self._server = forks.Command(words, (0, told_end, 2), self.work, self.env)
        os.close(told_end)
        line = read_line(told)
        self._stdout = told
        assert line, "the server has ended"
        return json.loads(line)

    def kill_server(self) -> None:
        self.end_server(signal.SIGKILL)

    def end_server(self, by: signal.Signals = signal.SIGINT) -> int:
        """Ctrl-C, or another signal; the exit code."""
        assert self._server
        self._server.send_signal(by)
        code = self._server.wait(LIMIT)
        os.close(self._stdout)
        self._server = None
        return code

    def end(self) -> list[int]:
        """End all that is left; what that was, beside the server and its agents."""
        if self._server:
            self.kill_server()
        left = marked(self.mark)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return left


def read_line(fd: int) -> str:
    """The first line, or nothing if it ends before."""
    return next(lines_of(fd), "")


def lines_of(fd: int) -> Iterator[str]:
    """Each line as it comes; none may take longer than the limit."""
    data = b""
    while True:
        assert select.select([fd], [], [], LIMIT)[0], f"nothing came but {data!r}"
        more = os.read(fd, 65536)
        if not more:
            return
        *lines, data = (data + more).split(b"\n")
        yield from (line.decode() for line in lines)
