"""A client of server-sent events over a plain socket, that reads them as the standard says."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec import Struct

LIMIT = 15.0


class Told(Struct, frozen=True):
    """One event; `last` is what the client would resume from after it."""

    name: str
    data: str
    last: str

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.data)


class Comment(Struct, frozen=True):
    text: str


class Sse:
    """An answer that was begun. `last` is the id to resume from."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._rest = b""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.last = ""
        self.retry = 0
        self.is_over = False

    async def begin(self) -> None:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        self.status = int(head[0].split()[1])
        pairs = (line.split(": ", 1) for line in head[1:] if line)
        self.headers = {name.lower(): value for name, value in pairs}

    async def body(self) -> bytes:
        """All of an answer that ends."""
        if length := self.headers.get("content-length"):
            return await self._reader.readexactly(int(length))
        parts = []
        while part := await self._part():
            parts.append(part)
        return b"".join(parts)

    async def _part(self) -> bytes:
        """A chunk of HTTP; empty at the end."""
        size = int((await self._reader.readline()).strip() or b"0", 16)
        data = await self._reader.readexactly(size + 2)
        return data[:-2]

    async def _block(self) -> bytes:
        while b"\n\n" not in self._rest:
            part = await self._part()
            if not part:
                self.is_over = True
                return b""
            self._rest += part
        found, self._rest = self._rest.split(b"\n\n", 1)
        return found

    async def next(self, *, comments: bool = False) -> Told | Comment | None:
        """The next event, or comment where these are wanted; None at a clean end."""
        async with asyncio.timeout(LIMIT):
            while True:
                block = await self._block()
                if self.is_over:
                    return None
                found = self._read(block.decode())
                if isinstance(found, Told) or (found and comments):
                    return found

    def _read(self, block: str) -> Told | Comment | None:
        name, data = "message", []
        for line in block.split("\n"):
            assert "\r" not in line
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            match field:
                case "":
                    return Comment(value)
                case "id":
                    self.last = value
                case "event":
                    name = value
                case "data":
                    data.append(value)
                case "retry":
                    self.retry = int(value)
                case other:
                    raise AssertionError(f"no such field: {other!r}")
        return Told(name, "\n".join(data), self.last) if data else None

    async def joined(self) -> None:
        """Until it is one of those who are told what comes."""
        async with asyncio.timeout(LIMIT):
            assert self._read((await self._block()).decode()) is None
        assert self.retry

    async def told(self) -> Told:
        found = await self.next()
        assert isinstance(found, Told), "the stream has ended"
        return found

    async def take(self, count: int) -> list[Told]:
        return [await self.told() for _ in range(count)]

    async def until(self, name: str) -> Told:
        while (found := await self.told()).name != name:
            pass
        return found

    def cut(self) -> None:
        """Break the connection, at once."""
        self._writer.transport.abort()


@asynccontextmanager
async def ask(
    port: int, path: str, headers: Mapping[str, str] | None = None, *, is_narrow: bool = False
) -> AsyncIterator[Sse]:
    """GET of any address below the API's prefix. `is_narrow`: what is not read is soon too much."""
    connection = socket.socket()
    if is_narrow:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
    limit = 4096 if is_narrow else 1 << 26
    reader, writer = await asyncio.open_connection(sock=connection, limit=limit)
    lines = [f"GET /api/v1{path} HTTP/1.1", f"Host: localhost:{port}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    sse = Sse(reader, writer)
    try:
        async with asyncio.timeout(LIMIT):
            await sse.begin()
        yield sse
    finally:
        writer.transport.abort()


@asynccontextmanager
async def follow(port: int, path: str, last: str = "", **options: Any) -> AsyncIterator[Sse]:
    """A stream; `last` is the id of the event that the client has."""
    headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
    async with ask(port, path, headers, **options) as sse:
        assert sse.status == 200, (sse.status, await sse.body())
        yield sse
