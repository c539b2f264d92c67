"""Agents that run agents, put together for a server: the tools of those that we start, and the
doors for those that somebody else does.

Owns nothing: the tools and what is behind the doors are `bridle.loopback`'s, who is let in is
`bridle.server`'s to say.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..server.house import House
    from ..server.mounts import Mount


def loopback_options() -> dict[str, Any]:
    """For `serve`."""
    from ..loopback import tools_of

    return {"loopback": tools_of, "mounts": doors_of}


@asynccontextmanager
async def doors_of(house: House) -> AsyncIterator[Sequence[Mount]]:
    """`/mcp`, `/mcp/permit` and `/rpc` of this house, until it closes."""
    from ..loopback import loopback_of
    from ..loopback.http import DoorSettings, open_doors
    from ..server.mounts import Mount

    settings = DoorSettings(max_body=house.bodies.large)
    tools = loopback_of(house.supervisor).veiled(house.redactor.bytes)
    opening = open_doors(tools, closing=house.closing, settings=settings)
    async with opening as doors:
        yield [Mount(one.path, one.app, one.methods, one.roles) for one in doors]
