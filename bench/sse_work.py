"""One process of the measurement of streams: a server of either sort, or all of its clients.

    python bench/sse_work.py ours|bare|gathering|clients OPTIONS-AS-JSON

A server says in a line of JSON where it is, makes events once it is told to (a line of its stdin),
and serves until it is ended. Owns what each side does; `sse.py` runs them and compares.
"""

from __future__ import annotations

import asyncio
import json
import re
import select
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from figures import percentiles

Options = dict[str, Any]

#: In each event: its number, and when it was made.
MARK = re.compile(rb"@(\d+):(\d+)@")
SIZE = 300


def text(number: int) -> str:
    return f"@{number}:{time.monotonic_ns()}@".ljust(SIZE - 40, "x")


async def paced(options: Options, make: Callable[[int], None]) -> None:
    """Make so many events, each in its time."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.readline()
    start = loop.time()
    for number in range(options["events"]):
        await asyncio.sleep(start + number / options["rate"] - loop.time())
        make(number)
    await asyncio.Event().wait()


def say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


# --- ours


async def ours(options: Options) -> None:
    """The server as it is: its door, its log on the disk, secrets hidden."""
    from bridle.approvals import Person
    from bridle.server.serving import Ready, ServeSettings, serve

    home = Path(options["folder"]) / "home"
    is_ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
    settings = ServeSettings(home=home, port=0)
    serving = asyncio.ensure_future(serve(settings, is_ready.set_result))
    await asyncio.wait((serving, is_ready), return_when=asyncio.FIRST_COMPLETED)
    house = is_ready.result().house
    made = await house.supervisor.create(cwd=options["folder"], by=Person("bench"), start=False)
    token = (home / "token").read_text().strip()
    path = f"/api/v1/sessions/{made.id}/events?after=tip"
    say(port=int(house.url.rpartition(":")[2]), path=path, token=token)
    await paced(options, _appending(house.supervisor, made.id))


def _appending(supervisor: Any, session: str) -> Callable[[int], None]:
    import msgspec

    from bridle.journal import NewEvent
    from bridle.views import stream

    owner = supervisor._means.owners.of(session)  # noqa: SLF001 - the agent that would write

    def append(number: int) -> None:
        body = msgspec.json.encode(stream.Stderr(launch="l", end=0, text=text(number)))
        owner.append([NewEvent(stream.STDERR, body)])

    return append


# --- a bare one


async def bare(options: Options) -> None:
    """As people write it: a queue and a generator for each client, one send for each event."""

    async def each(queue: asyncio.Queue[bytes]) -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"
        while True:
            yield await queue.get()

    await _starlette(options, each)


async def gathering(options: Options) -> None:
    """The same, but what waits in the queue is sent together."""

    async def each(queue: asyncio.Queue[bytes]) -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"
        while True:
            parts = [await queue.get()]
            while not queue.empty():
                parts.append(queue.get_nowait())
            yield b"".join(parts)

    await _starlette(options, each)


async def _starlette(
    options: Options, each: Callable[[asyncio.Queue[bytes]], AsyncIterator[bytes]]
) -> None:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    queues: set[asyncio.Queue[bytes]] = set()

    async def answer(_: Request) -> StreamingResponse:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        queues.add(queue)
        return StreamingResponse(each(queue), media_type="text/event-stream")

    def tell(number: int) -> None:
        data = {"seq": number, "at": time.time(), "kind": "agent.stderr"}
        data["body"] = {"launch": "l", "end": 0, "text": text(number)}
        encoded = json.dumps(data, separators=(",", ":"))
        frame = f"id: {number}\nevent: agent.stderr\ndata: {encoded}\n\n".encode()
        for queue in queues:
            queue.put_nowait(frame)

    listening = socket.create_server(("127.0.0.1", 0), backlog=512)
    app = Starlette(routes=[Route("/", answer)])
    config = uvicorn.Config(app, loop="none", lifespan="off", log_config=None, access_log=False)
    serving = asyncio.ensure_future(uvicorn.Server(config).serve([listening]))
    say(port=listening.getsockname()[1], path="/", token="")
    await paced(options, tell)
    await serving


# --- the clients


class Client:
    """One connection; notes how long each event took, and that none is missing."""

    def __init__(self, port: int, head: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.sendall(head)
        self.socket.setblocking(False)
        self.next = 0
        self.is_begun = False
        self._rest = b""

    def read(self) -> Iterator[float]:
        data = self.socket.recv(1 << 18)
        now = time.monotonic_ns()
        if not data:
            sys.exit("a server has ended a stream")
        data = self._rest + data
        self.is_begun = self.is_begun or b"retry:" in data
        end = 0
        for found in MARK.finditer(data):
            if int(found[1]) != self.next:
                sys.exit(f"event {found[1]!r} came where {self.next} was to come")
            self.next += 1
            end = found.end()
            yield (now - int(found[2])) / 1000
        self._rest = data[max(end, len(data) - 60) :]


def clients(options: Options) -> None:
    head = f"GET {options['path']} HTTP/1.1\r\nHost: localhost:{options['port']}\r\n"
    head += "Accept: text/event-stream\r\n"
    head += f"Authorization: Bearer {options['token']}\r\n" if options["token"] else ""
    poll = select.epoll()
    found = {}
    for _ in range(options["clients"]):
        client = Client(options["port"], f"{head}\r\n".encode())
        found[client.socket.fileno()] = client
        poll.register(client.socket, select.EPOLLIN)
    times: list[float] = []
    is_told, left = False, set(found)
    while left:
        for number, _ in poll.poll(60) or sys.exit("nothing came for a minute"):
            client = found[number]
            times += client.read()
            if client.next == options["events"]:
                left.discard(number)
        if not is_told and all(client.is_begun for client in found.values()):
            is_told = True
            say(begun=len(found))
    say(**percentiles(times), told=len(times))


WORKS = {"ours": ours, "bare": bare, "gathering": gathering}


if __name__ == "__main__":
    side, given = sys.argv[1], json.loads(sys.argv[2])
    if side == "clients":
        clients(given)
    else:
        asyncio.run(WORKS[side](given))
