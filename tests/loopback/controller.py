"""A controller that is killed: `python -m tests.loopback.controller HOME`. It only looks after the
agents of the home and gives them our tools; it says when it is up."""

from __future__ import annotations

import asyncio
import sys

from bridle.loopback import tools_of
from bridle.supervisor import open_supervisor


async def main(home: str) -> None:
    async with open_supervisor(home, loopback=tools_of):
        sys.stdout.write("up\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
