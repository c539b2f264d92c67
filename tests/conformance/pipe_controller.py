"""A controller over pipes that is there to be killed: it is asked, says so, and never answers.

`python -m tests.conformance.pipe_controller ORDER`, with the options of its launch as JSON.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import msgspec

import bridle
from bridle.protocol.control import CanUseTool
from bridle.protocol.permissions import Allow


async def never(_: CanUseTool) -> Allow:
    sys.stdout.write("asked\n")
    sys.stdout.flush()
    await asyncio.Event().wait()
    return Allow()


async def main(options: dict[str, Any]) -> None:
    async with bridle.connect(approver=never, policy="ask", **options) as session:
        await (await session.send("go")).result()


if __name__ == "__main__":
    asyncio.run(main(msgspec.json.decode(sys.argv[1])))
