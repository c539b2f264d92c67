"""The application behind a real socket, and sessions whose streams grow as a test says."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from bridle.journal import Live, NewEvent
from bridle.server.access import Caller
from bridle.server.app import make_app
from bridle.server.house import House
from bridle.server.streams.sending import ABORT
from bridle.supervisor import SessionRecord, Supervisor
from bridle.views import stream
from tests.supervisor.homes import ME, Home

from .sse import Sse, follow

PERSON = Caller(role="person", name="me", via="terminal")
READER = Caller(role="reader", name="board")


def agent(session: str) -> Caller:
    return Caller(role="agent", name="agent", session=session)


class _Protocol(H11Protocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.app_state = {**self.app_state, ABORT: transport.abort}
        super().connection_made(transport)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # they are the test's


@asynccontextmanager
async def served(house: House, caller: Caller = PERSON, **options: Any) -> AsyncIterator[int]:
    """The port at which every request is this caller's."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listening:
        config = uvicorn.Config(
            make_app(house, caller),
            http=_Protocol,
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=5,
            **options,
        )
        server = _Server(config)
        serving = asyncio.ensure_future(server.serve([listening]))
        try:
            yield int(listening.getsockname()[1])
        finally:
            house.closing.set()
            server.should_exit = True
            async with asyncio.timeout(15):
                await serving


@asynccontextmanager
async def followed(
    house: House, path: str, last: str = "", caller: Caller = PERSON
) -> AsyncIterator[Sse]:
    """One stream of a server of its own."""
    async with served(house, caller) as port, follow(port, path, last) as stream:
        yield stream


async def silent(home: Home, supervisor: Supervisor, **options: Any) -> SessionRecord:
    """A session without an agent."""
    return await supervisor.create(cwd=home.work, by=ME, start=False, **options)


async def grow(supervisor: Supervisor, session: str, *texts: str) -> int:
    """Append an event for each of the texts; the number of the last."""
    owner = supervisor._means.owners.of(session)
    line = stream.Stderr(launch="l1", end=0, text="")
    bodies = [msgspec.structs.replace(line, text=text) for text in texts]
    return await owner.append([NewEvent(stream.STDERR, msgspec.json.encode(b)) for b in bodies])


def pass_by(supervisor: Supervisor, session: str, text: str) -> None:
    """A piece of a message that is being made."""
    live = Live(stream.DELTA, msgspec.json.encode({"text": text}))
    supervisor.journal.log.publish(session, [live])


def text_of(told: Any) -> str:
    """Of an event that `grow` has made."""
    return str(told.json["body"]["text"])
