"""A home with agents for one test: fake CLIs, a supervisor, and what its streams say."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bridle.approvals import Approval, Person
from bridle.process.spool import Spool
from bridle.process.transport import StopLimits
from bridle.process.wake import open_wakes
from bridle.supervisor import SessionRecord, Supervisor, open_supervisor
from bridle.testing import FakeCli, fake_claude
from bridle.views import stream
from tests.process.children import marked
from tests.process.spools import until_spool

ME = Person("me", "test")
LIMIT = 15.0
#: An agent that is told to end does so at once; one that does not is not waited for.
SOON = StopLimits(graceful=1.0, signal=0.3, total=5.0)

Step = dict[str, Any]

PROMPT: Step = {"prompt": True}
INIT: Step = {"init": {}}
DONE: Step = {"result": "done"}
#: One whole turn.
TURN: tuple[Step, ...] = (PROMPT, INIT, {"say": "hello"}, DONE)
#: A turn that never comes to its end.
WORKS: tuple[Step, ...] = (PROMPT, INIT, {"say": "at it"})
#: A turn that asks.
ASKS: tuple[Step, ...] = (
    PROMPT,
    INIT,
    {"tool_use": {"name": "Bash", "id": "t1", "input": {"command": "rm x"}}},
    {"ask": {"tool_name": "Bash", "input": {"command": "rm x"}, "tool_use_id": "t1"}, "id": "q1"},
    DONE,
)


class Home:
    """All below one folder; `mark` is in the environment of all that it starts."""

    def __init__(self, folder: Path, mark: str, home: Path | None = None) -> None:
        self.folder = home or folder / "home"
        self.work = folder / "work"
        self.work.mkdir()
        self._fakes = folder / "fakes"
        self._mark = mark
        self._made = 0

    def cli(self, *steps: Step, **settings: Any) -> FakeCli:
        self._made += 1
        return FakeCli(steps, self._fakes, f"cli-{self._made}", **settings)

    def wild(self, *steps: Step) -> list[str]:
        """The command of a CLI that knows the steps of `wild_claude` too."""
        self._made += 1
        self._fakes.mkdir(exist_ok=True)
        scenario = self._fakes / f"wild-{self._made}.json"
        scenario.write_bytes(msgspec.json.encode(steps))
        program = Path(__file__).with_name("wild_claude.py")
        words = [sys.executable, "-I", "-S", str(program), str(Path(fake_claude.__file__).parent)]
        report = scenario.with_suffix(".report")
        return [*words, "--scenario", str(scenario), "--report", str(report)]

    async def reported(self, words: str) -> None:
        """Until one of the CLIs has reported this."""
        spool = Spool(self._fakes)

        def is_there() -> bool:
            return any(words in file.read_text() for file in self._fakes.glob("*.report*"))

        with contextlib.closing(await open_wakes(self._fakes)) as wakes:
            await until_spool(wakes, spool, is_there)

    @contextlib.asynccontextmanager
    async def open(self, *, keep: bool = False, **options: Any) -> AsyncIterator[Supervisor]:
        """A supervisor; its agents are stopped with it, unless they are to be kept."""
        async with open_supervisor(self.folder, **{"stop_limits": SOON, **options}) as supervisor:
            try:
                yield supervisor
            finally:
                if not keep:
                    await supervisor.stop_all("the test")

    async def start(
        self, supervisor: Supervisor, *steps: Step, settings: Step | None = None, **options: Any
    ) -> SessionRecord:
        """A session with a CLI of its own that plays these steps; told to go, unless it is not."""
        if "command" not in options:
            options["command"] = self.cli(*steps, **(settings or {})).command
        return await supervisor.create(cwd=self.work, by=ME, **{"prompt": "go", **options})

    def spool(self, record: SessionRecord) -> Spool:
        """Where the present launch of a session is."""
        assert record.launch
        return Spool(self.folder / "spool" / record.launch.id)

    def alive(self) -> list[int]:
        """All that this test has started and that is alive."""
        return [pid for pid in marked(self._mark) if pid != os.getpid()]

    def end_all(self) -> list[int]:
        """End what was left behind; what that was."""
        left = self.alive()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return left


async def until(supervisor: Supervisor, session: str, *states: str) -> SessionRecord:
    return await supervisor.wait(session, lambda record: record.state in states, LIMIT)


async def asked(supervisor: Supervisor, session: str) -> Approval:
    """What it asks, once it does."""
    async with asyncio.timeout(LIMIT):
        async for news in supervisor.approvals.watch():
            for approval in news:
                if approval.session == session and approval.status == "pending":
                    return approval
    raise AssertionError("the approvals were closed")


async def settled(supervisor: Supervisor, approval: str) -> Approval:
    """An approval, once it is not pending any more."""
    async with asyncio.timeout(LIMIT):
        async for _ in supervisor.approvals.watch():
            found = await supervisor.approvals.get(approval)
            if found.status != "pending":
                return found
    raise AssertionError("the approvals were closed")


async def bodies(supervisor: Supervisor, session: str, kind: str) -> list[Any]:
    """What the events of one kind say, in order."""
    decode, name = stream.BODIES[kind], supervisor.get(session).id
    events = await supervisor.journal.log.read(name, 0, 10_000)
    return [msgspec.json.decode(event.body, type=decode) for event in events if event.kind == kind]


async def first_of(supervisor: Supervisor, session: str, kind: str) -> list[Any]:
    """The first of them, once it is there."""
    async with asyncio.timeout(LIMIT):
        async for batch in supervisor.journal.log.follow(supervisor.get(session).id):
            if any(event.kind == kind for event in batch.stored):
                return (await bodies(supervisor, session, kind))[:1]
    raise AssertionError("the log was closed")


async def kinds(supervisor: Supervisor, session: str) -> list[str]:
    name = supervisor.get(session).id
    return [event.kind for event in await supervisor.journal.log.read(name, 0, 10_000)]


async def states(supervisor: Supervisor, session: str) -> list[str]:
    """Every state that was published, the first one too."""
    changes: Sequence[stream.StateChanged] = await bodies(supervisor, session, stream.STATE)
    for before, after in itertools.pairwise(changes):
        assert before.now == after.was, changes
    return [change.now for change in changes]


async def published(supervisor: Supervisor, session: str, state: str) -> list[str]:
    """The same, once this is the last of them."""
    await supervisor.wait(session, lambda record: record.state == record.published == state, LIMIT)
    return await states(supervisor, session)
