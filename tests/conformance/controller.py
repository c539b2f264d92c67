"""A controller that is there to be killed: `python -m tests.conformance.controller ORDER`.

It opens a home, makes its agents where there are none yet, sends what the log does not have yet,
and says on its output what it sees, a line each. By itself it never ends. Hooks and tools are here
too: whoever takes the home up afterwards must have the same.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from bridle.approvals import Approve, Person
from bridle.errors import UnknownSession
from bridle.process.spool import Spool
from bridle.process.transport import StopLimits
from bridle.protocol.hooks import PreToolUse
from bridle.session.hooks import Hooks
from bridle.session.images import image
from bridle.supervisor.opening import open_supervisor
from bridle.supervisor.prompts import Said
from bridle.supervisor.record import SessionRecord
from bridle.supervisor.supervisor import Supervisor

ADA = Person("ada", "test")
LIMIT_SECONDS = 60.0
#: A line of this size is one with pictures.
LARGE = 1 << 20


class Place(Struct, kw_only=True):
    """Where it all is, for every controller the same. What hooks and tools do is a line in
    `effects`; the first that does something never comes to its end."""

    home: str
    cwd: str
    effects: str
    command: list[str]
    environ: dict[str, str]
    policy: str = "ask"
    has_hook: bool = False


class Order(Struct, kw_only=True):
    """`agents`: which there are to be, each with the prompt that it is made with ("": none).
    `sends`: to whom the large prompt goes, when all are idle. `is_torn`: half of it is written.
    `approves`: all that is asked."""

    place: Place
    agents: dict[str, str] = {}
    sends: str = ""
    pictures: list[str] = []
    is_torn: bool = False
    approves: bool = False


def say(*words: str) -> None:
    os.write(1, " ".join(words).encode() + b"\n")


@asynccontextmanager
async def opened(
    place: Place, say: Callable[..., None] = lambda *_: None
) -> AsyncIterator[Supervisor]:
    effects = Effects(Path(place.effects), say)
    async with open_supervisor(
        place.home,
        hooks=effects.hooks if place.has_hook else None,
        tools=effects.tools,
        environ=place.environ,
        stop_limits=StopLimits(3.0, 1.0, 8.0),
    ) as supervisor:
        yield supervisor


class Effects:
    """What hooks and tools do to the world."""

    def __init__(self, path: Path, say: Callable[..., None]) -> None:
        self._path = path
        self._say = say

    async def _have(self, what: str) -> None:
        with self._path.open("a") as file:
            file.write(f"{what}\n")
        self._say("effect", what)
        if len(self._path.read_text().splitlines()) == 1:
            await asyncio.Event().wait()

    def hooks(self, _: SessionRecord) -> Hooks:
        hooks = Hooks()

        @hooks.on(PreToolUse, matcher="Bash")
        async def look(event: PreToolUse) -> None:
            await self._have(f"looked {event.tool_use_id}")

        return hooks

    def tools(self, _: SessionRecord) -> list[Callable[..., object]]:
        async def note(words: str) -> str:
            """Note something."""
            await self._have(f"noted {words}")
            return f"{words}: noted"

        return [note]


# --- the program


async def control(order: Order) -> None:
    say("opens")
    async with opened(order.place, say) as supervisor:
        say("up", *supervisor.recovered.pending)
        for name, prompt in order.agents.items():
            await make(supervisor, order.place, name, prompt)
        async with asyncio.TaskGroup() as group:
            group.create_task(tell(supervisor, approves=order.approves))
            if order.sends:
                for name in order.agents:
                    await supervisor.wait(name, is_settled, LIMIT_SECONDS)
                if order.is_torn:
                    tear()
                say("sends")
                await send_large(supervisor, order.sends, order.pictures)
                say("sent")


async def tell(supervisor: Supervisor, *, approves: bool) -> None:
    async for changes in supervisor.approvals.watch():
        for approval in changes:
            if approval.status == "pending":
                say("asked", approval.id)
                if approves:
                    await supervisor.approvals.decide(approval.id, Approve(), by=ADA)


async def make(supervisor: Supervisor, place: Place, name: str, prompt: str) -> None:
    try:
        supervisor.get(name)
    except UnknownSession:
        await supervisor.create(
            cwd=place.cwd,
            by=ADA,
            name=name,
            prompt=prompt or None,
            policy=place.policy,
            command=place.command,
        )


def is_settled(record: SessionRecord) -> bool:
    """It has shaken hands."""
    return record.launch is not None and record.launch.ready_at is not None


async def send_large(supervisor: Supervisor, name: str, pictures: list[str]) -> None:
    """Unless the log has it."""
    record = supervisor.get(name)
    if not (record.turns or record.unanswered or record.waiting):
        await supervisor.send(name, large_prompt(name, pictures))


def large_prompt(name: str, pictures: list[str]) -> Said:
    text = f"<{name} begins>" + "lorem ipsum " * (500_000 // 12) + f"<{name} ends>"
    return [text, *map(image, pictures)]


def tear() -> None:
    """Have this process write half of what is large, and die of it. (Not before all are settled:
    what an earlier controller left to be written is large, too.)"""
    real = Spool.append

    def append(spool: Spool, data: bytes) -> None:
        if len(data) < LARGE:
            real(spool, data)
            return
        real(spool, data[: len(data) // 2])
        spool.ring()
        say("torn")
        os.kill(os.getpid(), signal.SIGKILL)

    Spool.append = append  # type: ignore[assignment, method-assign]


if __name__ == "__main__":
    asyncio.run(control(msgspec.json.decode(sys.argv[1], type=Order)))
