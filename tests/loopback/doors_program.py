"""A server with the doors for agents, as a process of its own: doors_program.py HOME PORT

Says when it serves, and whether what takes long to be loaded is loaded by then.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bridle.loopback import loopback_of, tools_of
from bridle.loopback.http import open_doors
from bridle.server.house import House
from bridle.server.mounts import Mount
from bridle.server.serving import Ready, ServeSettings, serve


@asynccontextmanager
async def doors(house: House) -> AsyncIterator[Sequence[Mount]]:
    async with open_doors(loopback_of(house.supervisor), closing=house.closing) as found:
        yield [Mount(one.path, one.app, one.methods, one.roles) for one in found]


def told(ready: Ready) -> None:
    heavy = [name for name in ("mcp", "mcp_types", "sse_starlette") if name in sys.modules]
    sys.stdout.write(f"{ready.url} {' '.join(heavy)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    settings = ServeSettings(home=Path(sys.argv[1]), port=int(sys.argv[2]))
    asyncio.run(serve(settings, told, mounts=doors, loopback=tools_of))
