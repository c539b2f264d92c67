"""A CLI over plain pipes with a `Connection` beside it: enough to drive one in a test.

Owns the child process and the list of its events; decides nothing. Every wait has a limit, and
leaving the `async with` leaves no process behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import psutil

from ..errors import KitError
from ..protocol.blocks import KnownBlock
from ..protocol.connection import Connection
from ..protocol.control import Answer
from ..protocol.events import (
    Asked,
    Event,
    Failure,
    LineOversized,
    MessageReceived,
    RequestReceived,
    RequestUnreadable,
    ResponseReceived,
    StreamEnded,
    Success,
)
from ..protocol.messages import Message, Result
from ..protocol.requests import OutboundRequest
from .recording import Recorder

#: The arguments with which every CLI speaks the control protocol.
STREAM_JSON = (
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
)
ASK_US = ("--permission-prompt-tool", "stdio")

READ_SIZE = 64 * 1024
LIMIT_SECONDS = 60.0
EXIT_SECONDS = 10.0

#: Answers a request of the CLI at once, or gives None to leave it to the test.
Responder = Callable[[RequestReceived], Answer | None]

_M = TypeVar("_M", bound=Message)


class Timeout(KitError):
    """What a test waited for did not come."""


class PipedCli:
    """One CLI process: what it says is in `events`, in order."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: dict[str, str],
        cwd: Path,
        arguments: Sequence[str] = (*STREAM_JSON, *ASK_US),
        respond: Responder | None = None,
        recorder: Recorder | None = None,
        version: str | None = None,
    ) -> None:
        self._argv = [*command, *arguments]
        self._env = env
        self._cwd = cwd
        self._respond = respond
        self._recorder = recorder
        self._cursor = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Condition()
        self._process: asyncio.subprocess.Process | None = None
        self.connection = Connection(nonce=secrets.token_hex(4), version=version)
        self.events: list[Event] = []
        self.stderr = ""

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process, "the CLI has not been started"
        return self._process

    async def __aenter__(self) -> Self:
        pipe = asyncio.subprocess.PIPE
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._argv,
                env=self._env,
                cwd=self._cwd,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                start_new_session=True,
            )
        except OSError as error:
            raise KitError(f"can't start {self._argv[0]}: {error.strerror}") from error
        if self._recorder:
            self._recorder.note({"argv": self._argv, "cwd": str(self._cwd)})
        self._tasks = [
            asyncio.create_task(self._read_stdout()),
            asyncio.create_task(self._read_stderr()),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        tree = _tree(self.process.pid)
        self.close_stdin()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), EXIT_SECONDS)
        for process in tree:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        await self.process.wait()
        for task in self._tasks:
            # A grandchild may hold the pipe open; what it would still say does not matter now.
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._recorder:
            self._recorder.note({"exit": self.process.returncode})

    # --- to the CLI

    def write(self, line: bytes) -> None:
        """Put bytes on the CLI's stdin, whatever they are."""
        if self._recorder:
            self._recorder.sent(line)
        assert self.process.stdin
        self.process.stdin.write(line)

    def prompt(self, content: str | list[KnownBlock], **options: Any) -> None:
        self.write(self.connection.prompt(content, **options))

    def answer(self, request: Asked, answer: Answer) -> None:
        self.write(self.connection.answer(request.request_id, answer))

    def fail(self, request: Asked, error: object) -> None:
        self.write(self.connection.fail(request.request_id, error))

    async def ask(
        self, request: OutboundRequest, limit: float = LIMIT_SECONDS
    ) -> Success | Failure:
        """Send a control request and wait for its answer."""
        request_id, line = self.connection.request(request)
        self.write(line)
        event = await self._find(
            0,
            lambda e: isinstance(e, ResponseReceived) and e.request_id == request_id,
            f"an answer to {type(request).__name__}",
            limit,
        )
        assert isinstance(event[1], ResponseReceived)
        return event[1].outcome

    def close_stdin(self) -> None:
        stdin = self.process.stdin
        if stdin and not stdin.is_closing():
            if self._recorder:
                self._recorder.note("stdin closed")
            stdin.close()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    # --- from the CLI

    async def expect(
        self,
        match: Callable[[Event], bool],
        what: str = "the event",
        limit: float = LIMIT_SECONDS,
    ) -> Event:
        """The next event that matches; those before it are passed over (and stay in `events`)."""
        at, event = await self._find(self._cursor, match, what, limit)
        self._cursor = at + 1
        return event

    async def request(
        self, match: Callable[[RequestReceived], bool] | None = None, limit: float = LIMIT_SECONDS
    ) -> RequestReceived:
        """The next thing that the CLI asks."""
        event = await self.expect(
            lambda e: isinstance(e, RequestReceived) and (match is None or match(e)),
            "a request",
            limit,
        )
        assert isinstance(event, RequestReceived)
        return event

    async def message(
        self,
        kind: type[_M],
        match: Callable[[_M], bool] | None = None,
        limit: float = LIMIT_SECONDS,
    ) -> _M:
        """The next message of this kind."""
        event = await self.expect(
            lambda e: (
                isinstance(e, MessageReceived)
                and isinstance(e.message, kind)
                and (match is None or match(e.message))
            ),
            f"a message of type {kind.__name__}",
            limit,
        )
        assert isinstance(event, MessageReceived)
        assert isinstance(event.message, kind)
        return event.message

    async def result(self, limit: float = LIMIT_SECONDS) -> Result:
        """The end of the turn."""
        return await self.message(Result, limit=limit)

    async def exit_code(self, limit: float = LIMIT_SECONDS) -> int:
        """Wait until the process has gone and all of its output is in `events`."""
        await self._find(0, lambda e: isinstance(e, StreamEnded), "the end of the output", limit)
        return await asyncio.wait_for(self.process.wait(), limit)

    def messages(self, kind: type[_M]) -> list[_M]:
        """All messages of this kind so far."""
        said = (e.message for e in self.events if isinstance(e, MessageReceived))
        return [message for message in said if isinstance(message, kind)]

    async def _find(
        self, start: int, match: Callable[[Event], bool], what: str, limit: float
    ) -> tuple[int, Event]:
        try:
            async with asyncio.timeout(limit), self._changed:
                while True:
                    for at in range(start, len(self.events)):
                        if match(self.events[at]):
                            return at, self.events[at]
                    if self.events and isinstance(self.events[-1], StreamEnded):
                        raise KitError(f"the CLI ended before {what} came; {self._last_words()}")
                    start = len(self.events)
                    await self._changed.wait()
        except TimeoutError:
            raise Timeout(f"{what} did not come in {limit:g} s; {self._last_words()}") from None

    def _last_words(self) -> str:
        last = [type(event).__name__ for event in self.events[-5:]]
        return f"its last events: {', '.join(last) or 'none'}; its stderr: {self.stderr[-500:]!r}"

    async def _read_stdout(self) -> None:
        assert self.process.stdout
        while True:
            data = await self.process.stdout.read(READ_SIZE)
            events = self.connection.receive(data) if data else self.connection.receive_eof()
            async with self._changed:
                for event in events:
                    self._take(event)
                self._changed.notify_all()
            if not data:
                return

    def _take(self, event: Event) -> None:
        if self._recorder and not isinstance(event, StreamEnded | LineOversized) and event.raw:
            self._recorder.received(event.raw)
        self.events.append(event)
        if isinstance(event, RequestUnreadable):
            self.write(self.connection.fail(event.request_id, event.reason))
        elif isinstance(event, RequestReceived) and self._respond:
            answer = self._respond(event)
            if answer is not None:
                self.answer(event, answer)

    async def _read_stderr(self) -> None:
        assert self.process.stderr
        while data := await self.process.stderr.read(READ_SIZE):
            text = data.decode("utf-8", "replace")
            self.stderr += text
            if self._recorder:
                self._recorder.stderr(text)


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [*root.children(recursive=True), root]
    except psutil.NoSuchProcess:
        return []
