"""A small HTTP/1.1 server on 127.0.0.1, for the parts of the kit that a CLI talks to.

Owns sockets and HTTP framing (by h11); does not know what is served. A handler gives a whole
answer, or an answer whose body comes piece by piece.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Self

import h11
from msgspec import Struct

from ..errors import KitError, PortInUse

READ_SIZE = 64 * 1024
HIGHEST_PORT = 65535


class HttpRequest(Struct):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class HttpResponse(Struct):
    status: int
    body: bytes | AsyncGenerator[bytes, None]
    content_type: str = "application/json"
    headers: dict[str, str] = {}


class ConnectionDropped(Exception):
    """Raised by a handler's body to cut the connection in the middle of an answer."""


Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]


class HttpServer:
    """Serves one handler while it is entered. Port 0 takes any free one."""

    def __init__(self, handler: Handler, port: int = 0) -> None:
        if not 0 <= port <= HIGHEST_PORT:
            raise KitError(
                f"a port is a number from 0 (any free one) to {HIGHEST_PORT}, not {port}"
            )
        self._handler = handler
        self._port = port
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        if self._server is None:
            raise KitError("the server is not running yet: use it inside of `async with`")
        return int(self._server.sockets[0].getsockname()[1])

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortInUse(
                    f"port {self._port} on 127.0.0.1 is in use; stop what listens there, or "
                    "leave the port out to take any free one"
                ) from error
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._connections.add(task)
        try:
            await self._converse(reader, writer)
            writer.close()
            await writer.wait_closed()
        except (OSError, h11.RemoteProtocolError, ConnectionDropped, asyncio.CancelledError):
            # The client went away, or we did: either way there is nobody left to tell.
            return
        finally:
            self._connections.discard(task)
            # Not close(): that would wait for a client that does not read.
            writer.transport.abort()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        http = h11.Connection(h11.SERVER)
        while True:
            request = await _read_request(http, reader)
            if request is None:
                return
            await _write_response(http, writer, await self._handler(request))
            if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
                return
            http.start_next_cycle()


async def _read_request(http: h11.Connection, reader: asyncio.StreamReader) -> HttpRequest | None:
    request: h11.Request | None = None
    body = bytearray()
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await reader.read(READ_SIZE))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage) and request:
            headers = {name.decode(): value.decode("latin-1") for name, value in request.headers}
            return HttpRequest(
                request.method.decode(), request.target.decode(), headers, bytes(body)
            )
        else:
            return None


async def _write_response(
    http: h11.Connection, writer: asyncio.StreamWriter, response: HttpResponse
) -> None:
    headers = [("content-type", response.content_type), *response.headers.items()]
    if isinstance(response.body, bytes):
        headers.append(("content-length", str(len(response.body))))
    else:
        headers.append(("transfer-encoding", "chunked"))
    writer.write(http.send(h11.Response(status_code=response.status, headers=headers)) or b"")
    if isinstance(response.body, bytes):
        writer.write(http.send(h11.Data(data=response.body)) or b"")
    else:
        async with contextlib.aclosing(response.body) as pieces:
            async for piece in pieces:
                writer.write(http.send(h11.Data(data=piece)) or b"")
                await writer.drain()
    writer.write(http.send(h11.EndOfMessage()) or b"")
    await writer.drain()
