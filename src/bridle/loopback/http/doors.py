"""The doors, put together: where each is, whom it is for, and that all end in time.

Owns their opening and closing. What is said behind them is in `rpc`, `mcp_servers` and `permit`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias

from msgspec import Struct

from ...supervisor import Supervisor
from ..service import Loopback
from .asgi import App
from .ending import ends_with
from .entry import for_permits, for_runners
from .lazy import lazily
from .rpc import Rpc
from .waiting import ended

MCP, PERMIT, RPC = "/mcp", "/mcp/permit", "/rpc"
MB = 1024 * 1024
#: All that is not a POST is for servers that remember who has called.
METHODS = ("POST",)

Who: TypeAlias = Literal["agent", "permit"]


class DoorSettings(Struct, frozen=True, kw_only=True):
    """`progress` are the seconds after which one who waits is told so, again and again; `patience`
    those that one who asked and went away has to come back; `max_body` is in bytes."""

    progress: float = 20.0
    patience: float = 30.0
    max_body: int = 32 * MB


class Door(Struct, frozen=True):
    """An application for just this path. `roles` are the kinds of tokens that it is for."""

    path: str
    app: App
    methods: tuple[str, ...]
    roles: tuple[Who, ...]


@asynccontextmanager
async def open_doors(
    loopback: Loopback,
    *,
    closing: asyncio.Event | None = None,
    settings: DoorSettings | None = None,
) -> AsyncIterator[list[Door]]:
    """The ways in to these tools. When `closing` is set, all that waits behind them is ended.

    What takes long to be loaded is loaded when somebody first comes.
    """
    chosen, over = settings or DoorSettings(), closing or asyncio.Event()
    supervisor, servers = loopback.supervisor, f"{__package__}.mcp_servers"

    def runners(app: App) -> App:
        return ends_with(over, for_runners(supervisor, app))

    async with (
        _holding(supervisor, over),
        lazily(
            servers,
            lambda m: m.served(m.tool_server(loopback, chosen.progress), chosen.max_body),
        ) as tools,
        lazily(
            servers,
            lambda m: m.served(
                m.permit_server(supervisor, chosen.progress, chosen.patience), chosen.max_body
            ),
        ) as permits,
    ):
        yield [
            Door(MCP, runners(tools), METHODS, ("agent",)),
            Door(PERMIT, ends_with(over, for_permits(supervisor, permits)), METHODS, ("permit",)),
            Door(RPC, runners(Rpc(loopback)), METHODS, ("agent",)),
        ]


@asynccontextmanager
async def _holding(supervisor: Supervisor, closing: asyncio.Event) -> AsyncIterator[None]:
    """Who is cut off because the server ends has not gone away."""

    async def hold() -> None:
        await closing.wait()
        supervisor.outside.hold()

    task = asyncio.ensure_future(hold())
    try:
        yield
    finally:
        await ended(task)
