"""A server at the other end of the proxy that does what a test says, and the client before it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from bridle.cli.kept import keep
from bridle.home.files import write_private
from tests.cli import forks

LIMIT = 30.0
TOKEN = "bridle_a_test"


class Posted:
    """One message, as it came in; and its answer, piece by piece."""

    def __init__(
        self, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter, path: str
    ) -> None:
        self.headers, self.body, self.path = headers, body, path
        self.message: Any = json.loads(body)
        #: Set when the other end has hung up.
        self.left = asyncio.Event()
        self._writer = writer

    @property
    def key(self) -> str:
        """By which a call is known that comes again."""
        return str(self.message["params"]["_meta"]["bridle/requestId"])

    def head(self, status: int, kind: str, *more: str) -> None:
        lines = (f"HTTP/1.1 {status} X", f"content-type: {kind}", *more, "", "")
        self._writer.write("\r\n".join(lines).encode())

    async def json(self, value: Any, status: int = 200) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value, indent=1).encode()
        self.head(status, "application/json", f"content-length: {len(data)}")
        self._writer.write(data)
        await self._writer.drain()

    async def result(self, value: Any) -> None:
        await self.json(self.answer(value))

    def answer(self, value: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": self.message["id"], "result": value}

    def stream(self) -> None:
        """What comes now are events, until `end`."""
        self.head(200, "text/event-stream", "connection: close")

    async def event(self, value: Any, end: str = "\r\n\r\n") -> None:
        self._writer.write(f"event: message\r\ndata: {json.dumps(value)}{end}".encode())
        await self._writer.drain()

    async def progress(self, value: float) -> None:
        token = self.message["params"]["_meta"]["progressToken"]
        params = {"progressToken": token, "progress": value}
        method = "notifications/progress"
        await self.event({"jsonrpc": "2.0", "method": method, "params": params})

    async def end(self) -> None:
        self._writer.close()


class Home:
    """A home with a token in it, and a server that listens there, or another, or none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(mode=0o700)
        self.token = keep(self.home, "outside", TOKEN)
        #: What has come in.
        self.posted: asyncio.Queue[Posted] = asyncio.Queue()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._answer: Callable[[Posted], Awaitable[None]] | None = None

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "BRIDLE_HOME": str(self.home),
        }

    async def up(
        self, name: str = "a", answer: Callable[[Posted], Awaitable[None]] | None = None
    ) -> None:
        """Listen, as a server of this home does. Without an answer, the test takes each message
        with `next` and answers itself."""
        self._answer = answer
        path = self.home / f"{name}.sock"
        self._server = await asyncio.start_unix_server(self._serve, path, limit=2**26)
        told = {"pid": 1, "url": "", "socket": str(path), "version": "", "started": 0}
        write_private(self.home / "server.json", json.dumps(told))

    @property
    def is_up(self) -> bool:
        return self._server is not None

    def kill(self) -> None:
        """As `kill -9` does: its socket stays behind, and connections are cut."""
        assert self._server
        self._server.close()
        self._server = None
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def next(self) -> Posted:
        return await asyncio.wait_for(self.posted.get(), LIMIT)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        posted: Posted | None = None
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().strip().split("\r\n")
                pairs = (line.split(": ", 1) for line in lines)
                headers = {name.lower(): value for name, value in pairs}
                body = await reader.readexactly(int(headers["content-length"]))
                posted = Posted(headers, body, writer, first.split()[1])
                if self._answer:
                    await self._answer(posted)
                self.posted.put_nowait(posted)
        except (OSError, asyncio.IncompleteReadError):
            if posted:
                posted.left.set()
        finally:
            writer.close()


class Client:
    """A client that has started the proxy."""

    def __init__(self, child: forks.Piped) -> None:
        self.child = child
        self.stdin, self.stdout, self.stderr = child.stdin, child.stdout, child.stderr

    async def say(self, *messages: Any) -> None:
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.stdin.write(line + b"\n")
        await asyncio.wait_for(self.stdin.drain(), LIMIT)

    async def call(self, id_: int, name: str = "poll", **meta: Any) -> None:
        params = {"name": name, "arguments": {"n": id_}, **({"_meta": meta} if meta else {})}
        await self.say({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params})

    async def hear(self) -> Any:
        line = await asyncio.wait_for(self.stdout.readline(), LIMIT)
        assert line.endswith(b"\n"), line
        return json.loads(line)

    async def noted(self, words: str) -> str:
        """A line on stderr that has these words in it."""
        while line := (await asyncio.wait_for(self.stderr.readline(), LIMIT)).decode():
            if words in line:
                return line
        raise AssertionError(f"it has ended and not said {words!r}")

    async def end(self) -> int:
        """Nothing more to say; the exit code."""
        self.stdin.close()
        return await asyncio.wait_for(self.child.wait(), LIMIT)


@contextlib.asynccontextmanager
async def client_of(home: Home, *flags: str, **env: str) -> AsyncIterator[Client]:
    async with client_with(home.env | env, *flags) as client:
        yield client


@contextlib.asynccontextmanager
async def client_with(env: dict[str, str], *flags: str) -> AsyncIterator[Client]:
    child = await forks.Piped.start(("mcp", "stdio", *flags), Path.cwd(), env, 2**26)
    try:
        yield Client(child)
    finally:
        await child.close()
