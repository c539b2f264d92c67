"""Serving a home, from the first socket to the last request.

Owns the order. At the start: that we are no agent's ourselves, then the TCP port (if another has
it, nothing else is touched), then the home with its lock and its agents, then the socket in the
home, which only the lock's owner may replace, then requests. At the end the same backwards: streams
are told to end, requests may come to theirs for some seconds, and agents run on unless they are to
be stopped.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn
from msgspec import Struct

from .. import __version__
from ..home.address import Address, remove_address, write_address
from ..supervisor import Supervisor, open_supervisor
from .app import make_app
from .bodies import BodyLimits
from .door import Door
from .guards import Names, host_name
from .house import House, open_house
from .inside import check_stored, launches_outside
from .login import login_url
from .mounts import Mount, Mounts, no_mounts
from .outsiders import match_tokens
from .peers import Lookout
from .protocol import ConnectionLimits, DoorProtocol, protocol_with
from .sockets import addresses_of, bound_socket, bound_tcp, is_loopback
from .token_file import keep_first_token, login_name

HOST = "127.0.0.1"
PORT = 7717
#: How long requests may take to come to their end, when the server does.
GRACE_SECONDS = 5
KEEP_ALIVE_SECONDS = 5
#: How long those may take that were cut off.
CUT_SECONDS = 1.0
SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: Addresses that stand for all of a machine's, and what to call the machine by then.
_ALL = {"0.0.0.0": "127.0.0.1", "::": "::1"}

_log = logging.getLogger(__name__)


class ServeSettings(Struct, frozen=True, kw_only=True):
    """How a home is served. `allowed_hosts` are further names of the server that a browser may
    have in its address; a host that other machines reach needs `allow_remote`. `allow_unseen` lets
    in who comes from this machine by a process that can't be seen."""

    home: Path
    host: str = HOST
    port: int = PORT
    allow_remote: bool = False
    allow_unseen: bool = False
    allowed_hosts: tuple[str, ...] = ()
    stop_agents: bool = False
    limits: ConnectionLimits = ConnectionLimits()
    bodies: BodyLimits = BodyLimits()


class Stopping:
    """How a server is told to end: the first time in good order, the second time at once."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._again = asyncio.Event()

    def ask(self) -> None:
        (self._again if self._asked.is_set() else self._asked).set()

    async def asked(self) -> None:
        await self._asked.wait()

    async def at_once(self) -> None:
        await self._again.wait()


class Ready(Struct, frozen=True):
    """It serves. `login` opens a browser as the person who runs it, once, for 10 minutes."""

    url: str
    socket: str
    login: str
    house: House
    stopping: Stopping

    def new_login(self) -> str:
        """Another one, for a browser of this machine."""
        return login_url(self.url, self.house.tickets.make(login_name(), is_here=True))


OnReady = Callable[[Ready], None]


async def serve(
    settings: ServeSettings,
    on_ready: OnReady = lambda _: None,
    *,
    signals: tuple[signal.Signals, ...] = SIGNALS,
    mounts: Mounts = no_mounts,
    **supervisor: Any,
) -> None:
    """Serve until a signal says that it is enough, or somebody asks (`Ready.stopping`).

    `mounts` opens further applications, to be served beside ours. Other keywords are for
    `open_supervisor`. AddressInUse, AddressRefused, HomeInUse, InsideAgent.
    """
    stopping = Stopping()
    launches = await launches_outside(settings.home)
    async with AsyncExitStack() as stack:
        tcp = stack.enter_context(
            bound_tcp(settings.host, settings.port, allow_remote=settings.allow_remote)
        )
        port = tcp.getsockname()[1]
        stack.enter_context(_heeding(signals, stopping))
        await check_stored(settings.home, launches)
        addresses = addresses_of(settings.home, settings.host, port)
        agents = await stack.enter_async_context(
            open_supervisor(settings.home, addresses=addresses, **supervisor)
        )
        stack.push_async_callback(_end_agents, agents, settings)
        local = stack.enter_context(bound_socket(settings.home))
        house = await stack.enter_async_context(open_house(settings.home, agents))
        house.bodies = settings.bodies
        house.url = f"http://{host_name(_ALL.get(settings.host, settings.host))}:{port}"
        await keep_first_token(settings.home, house.tokens)
        await match_tokens(house)
        beside = await stack.enter_async_context(mounts(house))
        await _Serving(settings, house, beside, (tcp, local), stopping, on_ready).run()


async def _end_agents(supervisor: Supervisor, settings: ServeSettings) -> None:
    if settings.stop_agents:
        await supervisor.stop_all()


class _Serving:
    """From the first request to the last."""

    def __init__(
        self,
        settings: ServeSettings,
        house: House,
        mounts: Sequence[Mount],
        sockets: tuple[socket.socket, socket.socket],
        stopping: Stopping,
        on_ready: OnReady,
    ) -> None:
        self._settings = settings
        self._house = house
        self._sockets = sockets
        self._stopping = stopping
        self._on_ready = on_ready
        names = Names(settings.host, sockets[0].getsockname()[1], settings.allowed_hosts)
        door = Door(make_app(house, mounts=mounts), house, names)
        self._server = _Server(
            uvicorn.Config(
                door,
                http=protocol_with(settings.limits, Lookout(allow_unseen=settings.allow_unseen)),
                ws="none",
                lifespan="off",
                loop="none",
                interface="asgi3",
                log_config=None,
                log_level=logging.WARNING,
                access_log=False,
                server_header=False,
                # What a client says of who it is, is nothing that we go by.
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
            ),
            self._started,
        )

    async def run(self) -> None:
        ending = asyncio.ensure_future(self._end())
        try:
            await self._server.serve(sockets=list(self._sockets))
        finally:
            self._house.closing.set()
            ending.cancel()
            remove_address(self._house.home)
            for listening in getattr(self._server, "servers", ()):
                listening.close()  # where it was cancelled, nobody has
            self._cut_off()
            for task in self._server.server_state.tasks:
                task.cancel()
            await asyncio.wait([ending, *self._server.server_state.tasks], timeout=CUT_SECONDS)

    def _started(self) -> None:
        settings, url = self._settings, self._house.url
        path = self._sockets[1].getsockname()
        address = Address(
            pid=os.getpid(),
            url=url,
            socket=path,
            version=__version__,
            started=self._house.started_at,
        )
        try:
            write_address(self._house.home, address)
        except OSError as error:  # a hint is missed; on a full disk it is not the worst
            _log.warning("where the server is can't be written down: %s", error)
        if not is_loopback(settings.host):
            _log.warning(
                "other machines can reach %s, and what they say is not encrypted:"
                " docs/security.md says what that means",
                url,
            )
        ticket = self._house.tickets.make(login_name())
        login = login_url(url, ticket)
        self._on_ready(Ready(url, path, login, self._house, self._stopping))

    async def _end(self) -> None:
        await self._stopping.asked()
        # Streams have no end of their own, and would be waited for.
        self._house.closing.set()
        self._server.end()
        await self._stopping.at_once()
        self._server.force_exit = True
        self._cut_off()

    def _cut_off(self) -> None:
        """Whoever is still there does not listen."""
        for connection in list(self._server.server_state.connections):
            if isinstance(connection, DoorProtocol):
                connection.transport.abort()


class _Server(uvicorn.Server):
    """uvicorn's, with signals left to us, and with a word when it has started."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._told = started
        self._is_to_end = asyncio.Event()

    def end(self) -> None:
        self.should_exit = True
        self._is_to_end.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        """Until it is to end; each second there is another date to be told. (uvicorn's looks ten
        times a second.)"""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._is_to_end.wait()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._told()


@contextmanager
def _heeding(signals: tuple[signal.Signals, ...], stopping: Stopping) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in signals:
        loop.add_signal_handler(number, stopping.ask)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
