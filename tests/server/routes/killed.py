"""A server that kills itself at a named point of one request.

Up to there it is the real thing: each point wraps one call, in this process alone.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bridle.approvals.policies import Policies
from bridle.server.house import House, open_house
from bridle.supervisor import open_supervisor
from bridle.supervisor.pen import Pen
from tests.server.conftest import PERSON, client_of


class Order(Struct):
    """One request, and where it ends."""

    home: str
    point: str
    path: str
    body: dict[str, Any]
    key: str


def _kill_after(owner: Any, name: str) -> None:
    real = getattr(owner, name)

    async def call(*args: Any, **named: Any) -> Any:
        await real(*args, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, call)


def stop_at(point: str, house: House) -> None:
    match point:
        case "the intent is written":
            _kill_after(house.keys._records, "create")
        case "the policy is applied":
            _kill_after(Policies, "apply")
        case "it is done":
            _kill_after(Pen, "stored")
        case "it is noted":
            _kill_after(house.keys._records, "change")


async def main(order: Order) -> None:
    async with (
        open_supervisor(Path(order.home), size=0) as supervisor,
        open_house(Path(order.home), supervisor) as house,
        client_of(house, PERSON) as client,
    ):
        stop_at(order.point, house)
        headers = {"Idempotency-Key": order.key}
        answer = await client.post(order.path, json=order.body, headers=headers)
        sys.exit(f"it was not killed: {answer.status_code} {answer.text}")


if __name__ == "__main__":
    asyncio.run(main(msgspec.json.decode(sys.stdin.buffer.read(), type=Order)))
