"""A server for one test, with real sockets, in the test's own process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
from msgspec import Struct

from bridle.server.house import House
from bridle.server.mounts import Mounts, no_mounts
from bridle.server.serving import Ready, ServeSettings, serve
from bridle.supervisor import Supervisor
from tests.supervisor.homes import LIMIT, SOON


class Served(Struct, frozen=True):
    """A server that runs."""

    ready: Ready
    home: Path

    @property
    def house(self) -> House:
        return self.ready.house

    @property
    def supervisor(self) -> Supervisor:
        return self.house.supervisor

    @property
    def url(self) -> str:
        return self.ready.url

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def token(self) -> str:
        return (self.home / "token").read_text().strip()

    def client(self, token: str | None = None, **headers: str) -> httpx.AsyncClient:
        """Over TCP, with this token or with none."""
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        return httpx.AsyncClient(
            base_url=self.url, headers=headers, timeout=LIMIT, trust_env=False, verify=False
        )

    def local(self, **headers: str) -> httpx.AsyncClient:
        """Over the socket in the home."""
        transport = httpx.AsyncHTTPTransport(uds=self.ready.socket, verify=False)
        return httpx.AsyncClient(
            transport=transport, base_url="http://localhost", headers=headers, timeout=LIMIT
        )

    async def raw(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)


@contextlib.asynccontextmanager
async def served(home: Path, **settings: Any) -> AsyncIterator[Served]:
    """Its agents end with it, unless they are to be kept."""
    options = settings.pop("supervisor", {})
    mounts: Mounts = settings.pop("mounts", no_mounts)
    chosen = ServeSettings(**{"home": home, "port": 0, "stop_agents": True, **settings})
    ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(
        serve(
            chosen,
            ready.set_result,
            signals=(),
            mounts=mounts,
            **{"stop_limits": SOON, **options},
        )
    )
    either: list[asyncio.Future[Any]] = [task, ready]
    await asyncio.wait(either, timeout=LIMIT, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    told = ready.result()
    try:
        yield Served(told, home)
    finally:
        if not task.done():
            told.stopping.ask()
        async with asyncio.timeout(LIMIT):
            await task
