"""The controller that is killed: opens a home, creates its agents once, prompts and decides.

It keeps nothing itself: which prompts were sent it learns from the log, as the supervisor tells it.
What it was told is done it says, one line each.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from bridle.approvals import AlreadyDecided, Approval, Approve, Person, Reject
from bridle.errors import UnknownSession
from bridle.process.transport import StopLimits
from bridle.protocol.hooks import PostToolUse
from bridle.session.hooks import Hooks
from bridle.supervisor.opening import open_supervisor
from bridle.supervisor.record import SessionRecord
from bridle.supervisor.states import ENDED
from bridle.supervisor.supervisor import Supervisor

from .plans import Planned, prompt_of, read_plan

ANN = Person("ann", "test")
LIMIT = 20.0
#: So many prompts of one agent are under way.
AHEAD = 2

Say = Callable[[str], None]


class Order(Struct, kw_only=True):
    """What one controller is to do, and when it is killed: so many seconds after it was started,
    or after it was up (`None`: not), or at a named point. `ends`: it is asked to close instead."""

    task: Literal["work", "stop", "look", "delete"] = "work"
    seconds: float | None = None
    is_from_up: bool = True
    point: str = ""
    ends: Literal["kill", "close"] = "kill"
    #: No more prompts than this for each agent; None is as planned.
    prompts: int | None = None
    #: Who looks waits until so many approvals of the agent `a` do.
    pending: int = 0


async def control(folder: Path, order: Order, say: Say) -> None:
    """Until all is done, or until it is told to close."""
    task = asyncio.current_task()
    assert task
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    logging.basicConfig(filename=folder / "controller.log", level=logging.WARNING)
    effects = Effects(folder / "effects")
    async with open_supervisor(
        folder / "home",
        hooks=effects.hooks,
        tools=effects.tools,
        stop_limits=StopLimits(2.0, 1.0, 6.0),
    ) as supervisor:
        say("up")
        match order.task:
            case "work":
                await Work(supervisor, folder, order, say).run()
            case "stop":
                await supervisor.stop_all("ann")
            case "delete":
                await supervisor.delete("a")
            case "look":
                if order.pending:
                    is_so = lambda record: len(record.approvals) == order.pending  # noqa: E731
                    await supervisor.wait("a", is_so, LIMIT)
                for record in supervisor.list():
                    say(f"sees {record.name} {record.turns}")
                say(f"sees {len(await supervisor.approvals.list())} approvals")
        say("done")


class Effects:
    """What hooks and tools do to the world: a line in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, what: str) -> None:
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(fd, what.encode() + b"\n")
        os.close(fd)

    def hooks(self, _: SessionRecord) -> Hooks:
        hooks = Hooks()

        @hooks.on(PostToolUse)
        async def ran(event: PostToolUse) -> None:
            self.add(f"done-{str(event.tool_use_id).removesuffix('-yes')}")
            await asyncio.sleep(0.002)  # it has something to do

        return hooks

    def tools(self, _: SessionRecord) -> list[Callable[..., object]]:
        async def note(agent: str, number: int) -> str:
            self.add(f"call-{agent}-{number}")
            await asyncio.sleep(0.002)
            return "noted"

        return [note]


class Work:
    """Prompts and decisions, for all agents."""

    def __init__(self, supervisor: Supervisor, folder: Path, order: Order, say: Say) -> None:
        self._supervisor = supervisor
        self._folder = folder
        self._order = order
        self._say = say

    async def run(self) -> None:
        deciding = asyncio.ensure_future(self._decide())
        try:
            async with asyncio.TaskGroup() as group:
                for agent in read_plan(self._folder).agents:
                    group.create_task(self._lead(agent))
        finally:
            deciding.cancel()
            await asyncio.wait([deciding])

    async def _lead(self, agent: Planned) -> None:
        record = await self._found(agent)
        # Every prompt that was ever stored is one of these.
        sent = record.turns + len(record.unanswered) + len(record.waiting)
        most = agent.turns if self._order.prompts is None else self._order.prompts
        while record.turns < max(sent, most):
            while sent < min(most, record.turns + AHEAD):
                await self._supervisor.send(agent.name, prompt_of(agent, sent + 1))
                sent += 1
                self._say(f"sent {agent.name} {sent}")
            record = await self._grown(agent, record.turns)
        await self._supervisor.wait(agent.name, lambda record: record.state == "idle", LIMIT)

    async def _found(self, agent: Planned) -> SessionRecord:
        try:
            return self._supervisor.get(agent.name)
        except UnknownSession:
            return await self._supervisor.create(
                cwd=self._folder / "work",
                by=ANN,
                name=agent.name,
                command=agent.command,
                disallowed_tools=["WebFetch"],
            )

    async def _grown(self, agent: Planned, turns: int) -> SessionRecord:
        try:
            record = await self._supervisor.wait(
                agent.name, lambda record: record.turns > turns or record.state in ENDED, LIMIT
            )
        except TimeoutError:
            record = self._supervisor.get(agent.name)
            raise RuntimeError(f"{agent.name} stays {record.state} in turn {turns + 1}") from None
        if record.state in ENDED:
            words = record.launch.words if record.launch else ""
            raise RuntimeError(f"{agent.name} is {record.state}: {words}")
        return record

    async def _decide(self) -> None:
        async for approvals in self._supervisor.approvals.watch():
            for approval in approvals:
                if approval.status == "pending":
                    await self._decide_one(approval)

    async def _decide_one(self, approval: Approval) -> None:
        is_yes = approval.input["command"].startswith("touch")
        try:
            decided = await self._supervisor.approvals.decide(
                approval.id, Approve() if is_yes else Reject("no"), by=ANN
            )
        except AlreadyDecided:
            return
        self._say(f"{decided.status} {approval.id}")
