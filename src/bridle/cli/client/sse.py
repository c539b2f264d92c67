"""Server-sent events: split from bytes, and followed over breaks.

Owns the format and the going on where it was (`Last-Event-ID`, with longer and longer pauses);
what an event means is for whoever asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from ..errors import NoServer

if TYPE_CHECKING:
    import httpx

#: A server says something at least this often: a comment, if nothing else.
SILENCE_SECONDS = 45.0
FIRST_PAUSE, LAST_PAUSE = 0.1, 5.0
#: How long it is tried to reach a server that has gone.
PATIENCE_SECONDS = 120.0


class ServerEvent(Struct, frozen=True):
    """`id` is "" for what is not kept: it will not come again."""

    id: str
    event: str
    data: bytes


class Splitter:
    """Events from bytes in any pieces. `last_id` is where to go on after a break."""

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        self._half = b""
        self._event = ""
        self._id: str | None = None
        self._data: list[bytes] = []

    def add(self, data: bytes) -> list[ServerEvent]:
        """The events that these bytes complete."""
        *lines, self._half = (self._half + data).split(b"\n")
        events: list[ServerEvent] = []
        for line in (line.removesuffix(b"\r") for line in lines):
            if line:
                self._take(line)
            else:
                events += self._made()
        return events

    def forget_half(self) -> None:
        """The connection broke: what was not whole comes again."""
        self._half, self._event, self._id = b"", "", None
        self._data.clear()

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")

    def _made(self) -> list[ServerEvent]:
        """What a block says. One without data has no event, but its id counts."""
        if self._id is not None:
            self.last_id = self._id
        data, event = b"\n".join(self._data), self._event or "message"
        made = [ServerEvent(self._id or "", event, data)] if self._data else []
        self._event, self._id = "", None
        self._data.clear()
        return made


async def follow(
    open_stream: Callable[[Mapping[str, str]], AsyncIterator[bytes]],
    last_id: str = "",
    on_break: Callable[[str], None] = lambda _: None,
    patience: float = PATIENCE_SECONDS,
) -> AsyncIterator[ServerEvent]:
    """Each event once, over breaks of the connection, until the reader has enough.

    `open_stream` gets headers and gives bytes; `on_break` is told each time that it broke. NoServer
    when nothing could be reached for as long as `patience` says.
    """
    splitter = Splitter(last_id)
    pause, lost_at = FIRST_PAUSE, asyncio.get_running_loop().time()
    while True:
        headers = {"Accept": "text/event-stream"}
        if splitter.last_id:
            headers["Last-Event-ID"] = splitter.last_id
        why = "the stream has ended"
        try:
            async for data in open_stream(headers):
                pause, lost_at = FIRST_PAUSE, asyncio.get_running_loop().time()
                for event in splitter.add(data):
                    yield event
        except NoServer as error:
            why = error.words
        splitter.forget_half()
        if asyncio.get_running_loop().time() - lost_at > patience:
            raise NoServer(f"the server has not come back for {patience:g} s")
        on_break(why)
        await asyncio.sleep(pause)
        pause = min(pause * 2, LAST_PAUSE)


async def stream_of(
    http: httpx.AsyncClient, path: str, params: Mapping[str, str], headers: Mapping[str, str]
) -> AsyncIterator[bytes]:
    """The bytes of one answer; whatever breaks it is told as NoServer, a refusal as such."""
    import httpx

    from .talk import check

    limits = httpx.Timeout(10.0, read=SILENCE_SECONDS)
    try:
        async with http.stream(
            "GET", path, params=params, headers=headers, timeout=limits
        ) as answer:
            if answer.status_code != 200:
                await answer.aread()
                check(answer)
            async for data in answer.aiter_raw():
                yield data
    except httpx.HTTPError as error:
        raise NoServer(f"the connection broke: {error or type(error).__name__}") from error
