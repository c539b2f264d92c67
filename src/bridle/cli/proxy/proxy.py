"""Each message of the client is one POST, sent again until it is answered.

Owns the calls that are underway: many at once, each ended by its answer, by the client's word, or
with the proxy. A server that is killed or restarted is waited for, and gets the same message with
the same id again, so that what it had done already is not done twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any

from ...errors import words_of
from ...protocol.framing import Oversize
from .messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    REFUSED,
    Answer,
    Headers,
    Id,
    Notice,
    Request,
    Told,
    Unreadable,
    Withdrawn,
    error_line,
    moved_on,
    progress_line,
    read_answer,
    read_line,
    refusal_line,
)
from .pipes import Pipes
from .way import Gone, Turned, Way

#: The longest line; the server takes no message that is longer.
LONGEST = 64 * 1024 * 1024
FIRST_PAUSE, LAST_PAUSE = 0.05, 1.0
#: How long a call that waits for a server may be silent: clients give up what says nothing.
PROGRESS_SECONDS = 20.0
#: How long calls may take that are underway when the client ends: one who only asks what there is
#: has closed its end before the answer.
GRACE_SECONDS = 1.0

WAITING = "waiting for Bridle's server: `bridle up` starts it"


class Proxy:
    """Runs until the client has said its last. `note` is told what a person may want to know."""

    def __init__(self, way: Way, pipes: Pipes, note: Callable[[str], None]) -> None:
        self._way, self._pipes, self._note = way, pipes, note
        #: What waits for an answer that the client wants.
        self._calls: dict[Id, asyncio.Task[None]] = {}
        #: These, notices, and calls that were withdrawn and are about to end.
        self._underway: set[asyncio.Task[None]] = set()
        #: The protocol that client and server have agreed upon; it is said with each message.
        self._version = ""
        self._is_lost = False

    async def run(self) -> None:
        try:
            while (line := await self._pipes.line()) is not None:
                await self._take(line)
            if self._underway:
                await asyncio.wait(self._underway, timeout=GRACE_SECONDS)
        finally:
            for task in self._underway:
                task.cancel()
            await asyncio.gather(*self._underway, return_exceptions=True)

    async def _take(self, line: bytes | Oversize) -> None:
        if isinstance(line, Oversize):
            words = f"a line of {line.length} bytes is longer than is taken ({LONGEST})"
            await self._say(error_line(None, INVALID_REQUEST, words))
            return
        match read_line(line):
            case Request() as request if request.id in self._calls:
                words = "a request with this id is underway already"
                await self._say(error_line(request.id, INVALID_REQUEST, words))
            case Request() as request:
                self._calls[request.id] = self._begin(self._answered(request))
            case Notice() as notice:
                self._begin(self._passed(notice))
            case Withdrawn(id_) if id_ in self._calls:
                # Nobody waits for it any more: the server is told by the end of the connection. The
                # id is free at once, for the next line may use it again.
                self._calls.pop(id_).cancel()
            case Unreadable(code, words, id_):
                await self._say(error_line(id_, code, words))

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._underway.add(task)
        task.add_done_callback(self._underway.discard)
        return task

    async def _say(self, line: bytes) -> None:
        try:
            await self._pipes.write(line)
        except BrokenPipeError:
            return  # there is nobody to tell, and the pipes say so themselves

    # --- notices

    async def _passed(self, notice: Notice) -> None:
        """Once: a server that was not there knows nothing that it would be about."""
        try:
            post = self._way.post(notice.body, self._headers(notice.headers))
            async with aclosing(post) as messages:
                async for _ in messages:
                    pass
        except (Gone, Turned):
            return

    # --- calls

    async def _answered(self, request: Request) -> None:
        try:
            line = await self._answer(request)
        except Turned as turned:
            if turned.error is not None:
                line = refusal_line(request.id, turned.error)
            else:
                line = error_line(request.id, REFUSED, str(turned))
        except Exception as error:  # noqa: BLE001 - whoever waits must not wait for ever
            line = error_line(request.id, INTERNAL_ERROR, words_of(error))
        # Before it is said: who has heard it may use the id again sooner than we go on.
        self._calls.pop(request.id, None)
        await self._say(line)

    async def _answer(self, request: Request) -> bytes:
        pace, pause = _Pace(request), FIRST_PAUSE
        while True:
            try:
                if line := await self._asked_once(request, pace):
                    return line
                self._lost("it ended before it had answered")
            except Gone as gone:
                self._lost(str(gone))
            if line := pace.waiting():
                await self._say(line)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LAST_PAUSE)

    async def _asked_once(self, request: Request, pace: _Pace) -> bytes | None:
        """The answer; None if all has come that will, and it was not among it."""
        post = self._way.post(request.body, self._headers(request.headers))
        async with aclosing(post) as messages:
            async for data in messages:
                self._found()
                match read_answer(data, request):
                    case Answer(line, version):
                        self._version = version or self._version
                        return line
                    case Told(line, progress):
                        await self._say(pace.passed(line, progress))
        return None

    def _headers(self, headers: Headers) -> Headers:
        if headers or not self._version:
            return headers
        return {"mcp-protocol-version": self._version}

    def _lost(self, why: str) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._note(f"{why}; {WAITING}")

    def _found(self) -> None:
        if self._is_lost:
            self._is_lost = False
            self._note("the server is back")


class _Pace:
    """How one call goes on, in numbers that only rise: a server that was restarted begins again."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._last = 0.0
        self._at = asyncio.get_running_loop().time()

    def passed(self, line: bytes, progress: float | None) -> bytes:
        """What the server says of it."""
        if progress is None:
            return line
        self._at = asyncio.get_running_loop().time()
        if progress > self._last:
            self._last = progress
            return line
        self._last += 1
        return moved_on(line, self._last)

    def waiting(self) -> bytes | None:
        """A word of our own, if it is time and somebody wants it."""
        now = asyncio.get_running_loop().time()
        if self._request.progress is None or now - self._at < PROGRESS_SECONDS:
            return None
        self._at = now
        self._last += 1
        return progress_line(self._request, self._last, WAITING)
