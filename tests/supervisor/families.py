"""Agents below agents for one test: each plays the same steps when it is told to go, and asks."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import Struct

from bridle.approvals import Agent, Approval
from bridle.policy.delegable import delegable
from bridle.policy.policy import Policy
from bridle.supervisor import SessionRecord, Supervisor

from .homes import ASKS, LIMIT, ME, Home, Step, asked

#: Under this an agent may remove files, and have others do it.
MAY = Policy("ask", allow=["Bash(rm:*)"])
#: Under this it asks first, and so may grant it to nobody.
ASK = Policy("ask")


def limited(**limits: Any) -> Policy:
    """It may have others remove files, but not for ever."""
    return Policy("ask", delegate=[delegable(["Bash(rm:*)"], **limits)])


class Family(Struct):
    """The root was made by a person, those below by those above them. The last one is at work."""

    supervisor: Supervisor
    members: list[SessionRecord]
    approval: Approval

    @property
    def root(self) -> str:
        return self.members[0].id

    @property
    def parent(self) -> str:
        return self.members[-2].id

    @property
    def child(self) -> str:
        return self.members[-1].id


async def family(
    home: Home,
    supervisor: Supervisor,
    *policies: Policy,
    steps: tuple[Step, ...] = ASKS,
    orphans: str = "stop",
    **options: Any,
) -> Family:
    """One under each policy, below the one before; and below them a child, which asks."""
    command, members = home.cli(*steps).command, list[SessionRecord]()
    for policy in policies:
        made = await _made(home, supervisor, members, command, policy=policy, orphans=orphans)
        members.append(made)
    last = await _made(home, supervisor, members, command, prompt="go", policy=ASK, **options)
    members.append(last)
    return Family(supervisor, members, await asked(supervisor, last.id))


async def _made(
    home: Home,
    supervisor: Supervisor,
    above: list[SessionRecord],
    command: list[str],
    **options: Any,
) -> SessionRecord:
    if above:
        return await supervisor.create(cwd=home.work, by=Agent(above[-1].id), **options)
    return await supervisor.create(cwd=home.work, by=ME, command=command, loopback=True, **options)


async def put_to(supervisor: Supervisor, approval_id: str, who: str) -> Approval:
    """An approval, once this one is asked ("": people)."""
    async with asyncio.timeout(LIMIT):
        async for _ in supervisor.approvals.watch():
            found = await supervisor.approvals.get(approval_id)
            assert found.status == "pending", found
            if found.asked == who:
                return found
    raise AssertionError("the approvals were closed")
