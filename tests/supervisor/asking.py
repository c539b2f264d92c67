"""A controller that is killed while a parent is asked: `python -m tests.supervisor.asking ORDER`.

It makes a parent and its child, says when the child's question is put to the parent, and waits.
"""

from __future__ import annotations

import asyncio
import sys

import msgspec
from msgspec import Struct

from bridle.approvals import Agent, Person
from bridle.policy.policy import Policy
from bridle.supervisor.opening import open_supervisor


class Order(Struct):
    """Where, with which CLI, and how long a parent has."""

    home: str
    work: str
    command: list[str]
    escalate_after: float


async def ask(order: Order) -> None:
    opening = open_supervisor(order.home, escalate_after=order.escalate_after)
    async with opening as supervisor:
        parent = await supervisor.create(
            cwd=order.work,
            by=Person("me"),
            policy=Policy("ask", allow=["Bash(rm:*)"]),
            loopback=True,
            orphans="hand over",
            command=order.command,
        )
        child = await supervisor.create(cwd=order.work, by=Agent(parent.id), prompt="go")
        async for news in supervisor.approvals.watch():
            for approval in news:
                if approval.session == child.id:
                    sys.stdout.buffer.write(msgspec.json.encode(approval) + b"\n")
                    sys.stdout.buffer.flush()
                    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(ask(msgspec.json.decode(sys.argv[1], type=Order)))
