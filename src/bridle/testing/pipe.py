"""A CLI over plain pipes with a `Connection` beside it: enough to drive one in a test.

Owns the child process and the list of its events; decides nothing. Every wait has a limit, and
leaving the `async with` leaves no process behind.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from ..errors import KitError, TimedOut
from ..process.arguments import ASK_US, MARKER, STREAM_JSON
from ..process.recording import Recorder
from ..process.stop import Ladder, uncancelled
from ..process.transport import Exit, StopLimits
from ..protocol.blocks import KnownBlock, TextBlock
from ..protocol.connection import Connection
from ..protocol.control import Answer
from ..protocol.events import (
    Asked,
    Event,
    Failure,
    MessageReceived,
    RequestReceived,
    RequestUnreadable,
    ResponseReceived,
    StreamEnded,
    Success,
)
from ..protocol.messages import Assistant, Message, Result
from ..protocol.requests import OutboundRequest
from ..protocol.unknown import Unknown
from .install import InstalledCli

READ_SIZE = 64 * 1024
LIMIT_SECONDS = 60.0
POLL_SECONDS = 0.01
#: A test has no time for politeness: after these, what is left is killed.
STOP = StopLimits(graceful=3.0, signal=0.2, total=8.0)

#: Answers a request of the CLI at once, or gives None to leave it to the test.
Responder = Callable[[RequestReceived], Answer | None]

_M = TypeVar("_M", bound=Message)


class PipedCli:
    """One CLI process: what it says is in `events`, in order.

    `command` may be what `install_cli` gave. `flags` follow the `arguments` that make a CLI speak
    the protocol. `respond` answers requests at once; what it raises comes out of the next wait.
    """

    def __init__(
        self,
        command: Sequence[str] | InstalledCli,
        *,
        env: dict[str, str],
        cwd: Path | str,
        arguments: Sequence[str] = (*STREAM_JSON, *ASK_US),
        flags: Sequence[str] = (),
        respond: Responder | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        version = command.version if isinstance(command, InstalledCli) else None
        program = command.command if isinstance(command, InstalledCli) else command
        if isinstance(program, str) or not program:
            raise KitError(f"a command is a list, such as ['claude'], not {program!r}")
        self._argv = [*program, *arguments, *flags]
        self.launch = secrets.token_hex(8)
        self._env = {**env, MARKER: self.launch}
        self._cwd = Path(cwd)
        self._respond = respond
        self._recorder = recorder
        self._cursor = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Condition()
        self._process: asyncio.subprocess.Process | None = None
        self._broken: Exception | None = None
        self.connection = Connection(nonce=secrets.token_hex(4), version=version)
        self.events: list[Event] = []
        self.stderr = ""

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process, "the CLI has not been started"
        return self._process

    async def __aenter__(self) -> Self:
        if not self._cwd.is_dir():
            raise KitError(f"can't start a CLI in {self._cwd}: there is no such folder")
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
        self._note({"argv": self._argv, "cwd": str(self._cwd)})
        self._tasks = [
            asyncio.create_task(self._read_stdout()),
            asyncio.create_task(self._read_stderr()),
        ]
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        # Whoever cancels us, however often, must not leave a process behind; it is bounded.
        await uncancelled(self._stop())
        if kind is None and self._broken:
            raise self._broken

    async def _stop(self) -> None:
        """EOF, some time to end by itself, then kill all that it has started."""
        try:
            self.close_stdin()
            await Ladder(self, STOP).descend("eof")
            await self.exited(STOP.total)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            # asyncio would keep the pipes open for as long as anybody holds their other ends.
            self.process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
        self._note({"exit": self.process.returncode})

    # --- what the ladder asks

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def exit(self) -> Exit | None:
        code = self.process.returncode
        return None if code is None else Exit(code=code) if code >= 0 else Exit(signal=-code)

    async def exited(self, limit: float) -> bool:
        """Wait until the process is gone."""
        # Not process.wait(): that waits for the pipes too, which a grandchild may hold.
        deadline = time.monotonic() + limit
        while self.process.returncode is None and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)
        return self.process.returncode is not None

    def _note(self, value: Any) -> None:
        if self._recorder and self._recorder.is_open:
            self._recorder.note(value)

    # --- to the CLI

    def write(self, line: bytes) -> None:
        """Put bytes on the CLI's stdin, whatever they are."""
        if self._recorder and self._recorder.is_open:
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
        """Send a control request and wait for its answer; after the limit it is withdrawn."""
        request_id, line = self.connection.request(request)
        self.write(line)
        try:
            _, event = await self._find(
                0,
                lambda e: isinstance(e, ResponseReceived) and e.request_id == request_id,
                f"an answer to {type(request).__name__}",
                limit,
            )
        except TimedOut:
            self.write(self.connection.cancel(request_id))
            raise
        assert isinstance(event, ResponseReceived)
        return event.outcome

    def close_stdin(self) -> None:
        stdin = self.process.stdin
        if stdin and not stdin.is_closing() and self.process.returncode is None:
            self._note("stdin closed")
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
        if not await self.exited(limit) or self.process.returncode is None:
            raise TimedOut(f"the CLI closed its output and did not end in {limit:g} s")
        return self.process.returncode

    def messages(self, kind: type[_M]) -> list[_M]:
        """All messages of this kind so far."""
        said = (e.message for e in self.events if isinstance(e, MessageReceived))
        return [message for message in said if isinstance(message, kind)]

    def said(self) -> list[str]:
        """All texts of the agent so far."""
        blocks = (block for m in self.messages(Assistant) for block in m.message.content)
        return [block.text for block in blocks if isinstance(block, TextBlock)]

    async def _find(
        self, start: int, match: Callable[[Event], bool], what: str, limit: float
    ) -> tuple[int, Event]:
        seen = start
        try:
            async with asyncio.timeout(limit), self._changed:
                while True:
                    for at in range(seen, len(self.events)):
                        if match(self.events[at]):
                            return at, self.events[at]
                    if self._broken:
                        raise self._broken
                    if self.events and isinstance(self.events[-1], StreamEnded):
                        raise KitError(f"the CLI ended before {what} came; {self._last_words()}")
                    seen = len(self.events)
                    await self._changed.wait()
        except TimeoutError:
            earlier = sum(match(event) for event in self.events[:start])
            hint = f" ({earlier} such came before what was last waited for)" if earlier else ""
            words = f"{what} did not come in {limit:g} s{hint}; {self._last_words()}"
            raise TimedOut(words) from None

    def _last_words(self) -> str:
        last = ", ".join(_name(event) for event in self.events[-5:]) or "none"
        pending = ", ".join(_name(event) for event in self.connection.pending.values()) or "none"
        return f"its last events: {last}; pending: {pending}; its stderr: {self.stderr[-500:]!r}"

    async def _read_stdout(self) -> None:
        assert self.process.stdout
        data = b"?"
        while data:
            data = await self.process.stdout.read(READ_SIZE)
            async with self._changed:
                try:
                    self._read(data)
                except Exception as error:  # noqa: BLE001 - a full disk under the recorder, say
                    self._broken = self._broken or error
                self._changed.notify_all()

    def _read(self, data: bytes) -> None:
        if self._recorder and self._recorder.is_open:
            self._recorder.received(data) if data else self._recorder.end_of("out")
        for event in self.connection.receive(data) if data else self.connection.receive_eof():
            self._take(event)

    def _take(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, RequestUnreadable):
            self.fail(event, event.reason)
        elif isinstance(event, RequestReceived) and self._respond:
            try:
                answer = self._respond(event)
                if answer is not None:
                    self.answer(event, answer)
            except Exception as error:  # noqa: BLE001 - whatever it is, the test must see it
                self._broken = self._broken or error
                if event.request_id in self.connection.pending:
                    self.fail(event, f"the responder failed: {error!r}")

    async def _read_stderr(self) -> None:
        assert self.process.stderr
        while data := await self.process.stderr.read(READ_SIZE):
            text = data.decode("utf-8", "replace")
            self.stderr += text
            if self._recorder and self._recorder.is_open:
                self._recorder.stderr(text)


def _name(event: Event) -> str:
    """What an event is, in a word or two."""
    match event:
        case MessageReceived(message=Unknown(type=name)):
            return f"unknown {name}"
        case MessageReceived(message=message) | RequestReceived(request=message):
            return type(message).__name__
        case _:
            return type(event).__name__
