"""A CLI that is not there: a transport in memory, for tests of what a session does.

Owns both ends of the wire: what the session wrote is in `written`, and a test says what the CLI
would say. The session's requests are answered by themselves, as with the fake CLI.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import InvalidScript, TimedOut
from ..process.transport import Exit, Receiver, StopLimits, Stopped
from ..protocol.capabilities import NEWEST, OLDEST, parse_version

LIMIT_SECONDS = 10.0


class MemoryTransport:
    """`replies` has a response for each kind of request: None for never, {"error": …} for a no.

    What has no reply there is answered with an empty success; `initialize` also with what a CLI of
    this version says of itself.
    """

    def __init__(
        self,
        *,
        version: str | None = "2.1.325",
        replies: Mapping[str, dict[str, Any] | None] | None = None,
        stderr: str = "",
    ) -> None:
        self.version = version
        self.replies = dict(replies or {})
        self.stderr = stderr
        self.exit: Exit | None = None
        #: What the session wrote, line by line.
        self.written: list[dict[str, Any]] = []
        self.is_input_closed = False
        self._receiver: Receiver | None = None
        self._changed = asyncio.Condition()

    # --- what a session asks of a transport

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def write(self, data: bytes) -> None:
        for line in data.splitlines():
            message = msgspec.json.decode(line)
            self.written.append(message)
            if message["type"] == "control_request":
                self._reply(message["request_id"], message["request"]["subtype"])
        asyncio.ensure_future(self._notify())  # noqa: RUF006 - it only wakes those who wait

    def close_input(self) -> None:
        self.is_input_closed = True

    async def stop(self, limits: StopLimits, *, asked: bool = False) -> Stopped:  # noqa: ARG002
        self.end(Exit(code=0))
        return Stopped("asked" if asked else "eof", 0.0, self.exit)

    # --- what a test says in the CLI's place

    def say(self, *messages: dict[str, Any]) -> None:
        """Lines of the CLI's output, in one piece."""
        self.feed(b"".join(msgspec.json.encode(message) + b"\n" for message in messages))

    def feed(self, data: bytes) -> None:
        """Bytes of the CLI's output, whatever they are."""
        if self._receiver is None:
            raise InvalidScript("the session has not been started")
        self._receiver.received(data)

    def ask(self, request_id: str, **request: Any) -> None:
        """A request of the CLI: `ask("1", subtype="can_use_tool", tool_name="Bash", input={})`."""
        self.say({"type": "control_request", "request_id": request_id, "request": request})

    def end(self, status: Exit | None = None) -> None:
        """The output is over; again is nothing."""
        if self._receiver and not self.is_input_closed:
            self.is_input_closed = True
            self.exit = status
            self._receiver.ended()

    # --- what a test waits for

    def requests(self, subtype: str) -> list[dict[str, Any]]:
        """The session's requests of one kind so far."""
        asked = (m["request"] for m in self.written if m["type"] == "control_request")
        return [request for request in asked if request["subtype"] == subtype]

    def prompts(self) -> list[dict[str, Any]]:
        return [message for message in self.written if message["type"] == "user"]

    def answered(self, request_id: str) -> dict[str, Any] | None:
        """How the session has answered a request of the CLI; None while it has not."""
        for message in self.written:
            if message["type"] == "control_response":
                response: dict[str, Any] = message["response"]
                if response["request_id"] == request_id:
                    return response
        return None

    async def answer(self, request_id: str, limit: float = LIMIT_SECONDS) -> dict[str, Any]:
        """Wait for the session's answer."""
        try:
            async with asyncio.timeout(limit), self._changed:
                await self._changed.wait_for(lambda: self.answered(request_id))
        except TimeoutError:
            raise TimedOut(f"{request_id} was not answered in {limit:g} s") from None
        response = self.answered(request_id)
        assert response
        return response

    def _reply(self, request_id: str, subtype: str) -> None:
        body = self.replies.get(subtype, {})
        if body is None:
            return
        if subtype == "initialize":
            body = {**_says_of_itself(self.version), **body}
        if "error" in body:
            response = {"subtype": "error", "request_id": request_id, **body}
        else:
            response = {"subtype": "success", "request_id": request_id, "response": body}
        line = {"type": "control_response", "response": response}
        asyncio.get_running_loop().call_soon(self._say_if_open, line)

    def _say_if_open(self, line: dict[str, Any]) -> None:
        if not self.is_input_closed:
            self.say(line)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def _says_of_itself(version: str | None) -> dict[str, Any]:
    """Old CLIs say nothing."""
    if (parse_version(version) or OLDEST) < NEWEST:
        return {}
    return {"claude_code_version": version, "capabilities": ["ui_surface_v1"]}
