"""A home with supervised agents for one scenario: controllers that are killed, and what is left.

The scripted model is in the test's own process and outlives every controller; the last controller
is the test itself.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bridle.journal import Event, verify
from bridle.process.spool import Spool
from bridle.process.tree import Tree, find_tree
from bridle.protocol.blocks import TextBlock, ToolUseBlock
from bridle.protocol.careful import read_line
from bridle.protocol.messages import Assistant, Message
from bridle.supervisor import SessionRecord, Supervisor
from bridle.testing import Conversation, ScriptedModel, Turn
from bridle.views import stream

from .controller import LIMIT_SECONDS, Order, Place, opened
from .lab import Lab

REPO = Path(__file__).parents[2]
#: What a CLI says that is stored; pieces of messages are not.
HEARD = (stream.SAID, stream.ASKED, stream.WITHDREW, stream.ANSWERED, stream.IGNORED)
#: Seconds between two looks at a file.
LOOK_SECONDS = 0.005


class Killable:
    """A controller that runs in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._heard: list[list[str]] = []

    async def said(self, word: str) -> list[str]:
        """Wait until it says this; the words after it."""
        assert self._process.stdout
        async with asyncio.timeout(LIMIT_SECONDS):
            while not (found := [line for line in self._heard if line[0] == word]):
                line = await self._process.stdout.readline()
                assert line, f"it has ended: {self._heard}"
                self._heard.append(line.decode().split())
        return found[0][1:]

    async def kill(self, within: float = 0.0) -> None:
        """kill -9: now, or at some moment in so many seconds."""
        seconds = random.uniform(0, within)
        print(f"killed after {seconds:.4f} s: {self._heard}")  # noqa: T201 - shown where it fails
        await asyncio.sleep(seconds)
        self._process.kill()
        await self.killed()

    async def killed(self) -> None:
        """Wait for its end: nothing but a SIGKILL has ended it."""
        async with asyncio.timeout(LIMIT_SECONDS):
            assert await self._process.wait() == -signal.SIGKILL

    def end(self) -> None:
        if self._process.returncode is None:
            self._process.kill()


class House:
    """The place of one scenario, and all controllers that were started there."""

    def __init__(self, lab: Lab, model: ScriptedModel, place: Place) -> None:
        self._lab = lab
        self._started: list[Killable] = []
        self.model = model
        self.place = place
        self.launches: set[str] = set()

    @property
    def effects(self) -> list[str]:
        path = Path(self.place.effects)
        return path.read_text().splitlines() if path.exists() else []

    async def start(self, **order: Any) -> Killable:
        """A controller in a process of its own."""
        text = msgspec.json.encode(Order(place=self.place, **order)).decode()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.conformance.controller", text),
            cwd=REPO,
            stdout=asyncio.subprocess.PIPE,
        )
        self._started.append(Killable(process))
        return self._started[-1]

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Supervisor]:
        """The test itself is the controller."""
        async with opened(self.place) as supervisor:
            yield supervisor

    def spool(self, launch: str = "") -> Spool:
        """Of this launch, or of the only one."""
        [found] = [self._spools / launch] if launch else self._spools.iterdir()
        return Spool(found)

    @property
    def _spools(self) -> Path:
        return Path(self.place.home) / "spool"

    def end_all(self) -> None:
        """End whatever still runs."""
        for controller in self._started:
            controller.end()
        for spool in self._spools.iterdir() if self._spools.exists() else ():
            Tree(0, spool.name).kill()

    def check_that_nothing_is_left(self) -> None:
        assert [*self._spools.iterdir()] == []
        assert [find_tree(0, launch) for launch in self.launches] == [[] for _ in self.launches]


@asynccontextmanager
async def house(
    lab: Lab,
    *scripts: Sequence[Turn | str] | Conversation,
    policy: str = "ask",
    has_hook: bool = False,
) -> AsyncIterator[House]:
    """At the end every agent must have been stopped."""
    lab.by_session = True
    async with ScriptedModel(*scripts) as model:
        place = Place(
            home=str(lab.home.parent / "bridle"),
            cwd=str(lab.cwd),
            effects=str(lab.home.parent / "effects"),
            command=list(lab.cli.command),
            environ=model.environment(lab.home),
            policy=policy,
            has_hook=has_hook,
        )
        here = House(lab, model, place)
        try:
            yield here
            here.check_that_nothing_is_left()
        finally:
            here.end_all()


async def until(is_so: Callable[[], bool]) -> None:
    """Look until it is so: for what no event tells, because nobody is there to write one."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)


async def turned(supervisor: Supervisor, turns: int, name: str = "a") -> SessionRecord:
    """Wait for the end of this turn."""
    try:
        return await supervisor.wait(
            name, lambda record: record.turns >= turns and record.state == "idle", LIMIT_SECONDS
        )
    except TimeoutError:
        kinds = (await log_of(supervisor, name)).kinds
        raise AssertionError(f"{supervisor.get(name)} after {kinds}") from None


async def stopped(here: House, supervisor: Supervisor, *names: str) -> None:
    """Stop these, which have done what they were to do: nothing was lost on the way."""
    for name in names:
        launch = supervisor.get(name).launch
        assert launch
        await check_log(supervisor, name, here.spool(launch.id))
        here.launches.update((await log_of(supervisor, name)).launches)
        await supervisor.stop(name)
        record = await supervisor.wait(name, lambda r: r.state == "stopped", LIMIT_SECONDS)
        assert record.launch
        assert (record.launch.how, record.launch.code) == ("stopped", 0)


# --- the log


class Log(Struct):
    """A session's stream, as it was read."""

    events: list[Event]
    payloads: list[bytes]

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    @property
    def launches(self) -> list[str]:
        return [body.launch for body in self.bodies(stream.INTENDED)]

    def bodies(self, *kinds: str) -> list[Any]:
        return [
            stream.body_of(stream.Entry(event.seq, event.at, event.kind, payload))
            for event, payload in zip(self.events, self.payloads, strict=True)
            if event.kind in kinds
        ]

    def messages(self) -> list[Message]:
        lines = (read_line(bytes(body.line)).decoded for body in self.bodies(stream.SAID))
        return [message for message in lines if isinstance(message, Message)]

    def said(self) -> list[str]:
        """What the agent said, and the names of the tools that it used."""
        said = [message for message in self.messages() if isinstance(message, Assistant)]
        uuids = [message.uuid for message in said]
        assert len(uuids) == len(set(uuids))
        blocks = [block for message in said for block in message.message.content]
        return [
            block.text if isinstance(block, TextBlock) else block.name
            for block in blocks
            if isinstance(block, TextBlock | ToolUseBlock)
        ]

    def of_launch(self, launch: str) -> Log:
        """What one process said."""
        name = f'"launch":"{launch}"'.encode()
        pairs = [pair for pair in zip(self.events, self.payloads, strict=True) if name in pair[1]]
        return Log([event for event, _ in pairs], [payload for _, payload in pairs])

    def of_approvals(self) -> list[str]:
        return [kind for kind in self.kinds if kind.startswith("approval.")]


async def log_of(supervisor: Supervisor, name: str = "a") -> Log:
    """All of it; its audit chain is intact."""
    journal, session, events = supervisor.journal, supervisor.get(name).id, list[Event]()
    while page := await journal.log.read(session, len(events), 500):
        events += page
    verdict = await verify(journal, session)
    assert verdict.is_intact, verdict
    return Log(events, [await journal.payload(event) for event in events])


async def check_log(supervisor: Supervisor, name: str, spool: Spool) -> None:
    """Each line that the latest process wrote or was told is there once, and in order."""
    output, inbox = spool.read("stdout", 0, 1 << 30), spool.read_inbox(0, 1 << 30)
    record = await supervisor.wait(name, lambda r: read_of(r) >= len(output), LIMIT_SECONDS)
    log = await log_of(supervisor, name)
    assert record.launch
    launch = log.of_launch(record.launch.id)
    check_lines(launch.bodies(*HEARD), output)
    check_lines(launch.bodies(stream.WROTE), inbox)
    assert [event.seq for event in log.events] == list(range(1, len(log.events) + 1))
    requests = [body.id for body in log.bodies(stream.ASKED)]
    assert len(requests) == len(set(requests))


def read_of(record: SessionRecord) -> int:
    return record.launch.output_end if record.launch else 0


def check_lines(logged: list[stream.Line] | list[stream.Wrote], there: bytes) -> None:
    """A CLI may have said more since. What was given back to the disk reads as zeros."""
    lines = b"".join(bytes(body.line) + b"\n" for body in logged)[: len(there)]
    rest = there.lstrip(b"\0")
    assert len(lines) == len(there), f"{len(lines)} bytes logged, {len(there)} there"
    assert lines.endswith(rest)
