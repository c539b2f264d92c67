"""Many agents under one supervisor: what they wait for, what they cost, how they are found again.

Each measurement is a process of its own with a new home; the median of the rounds counts. The
figures go to bench/supervisor.md and bench/supervisor.json.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
from figures import arguments, measured_by, percentiles, rss_kb
from msgspec import Struct

HERE = Path(__file__).resolve().parent


class Row(Struct):
    """One line of the table."""

    name: str
    work: str
    options: dict[str, Any]
    figure: str
    unit: str
    most: float | None = None


class Measured(Struct):
    name: str
    unit: str
    value: float
    lowest: float
    highest: float
    wanted: str
    is_met: bool


def rows(scale: float) -> list[Row]:
    lines = {"lines": int(2000 * scale)}
    many = {"agents": max(2, int(100 * scale)), "seconds": 10 * min(1.0, scale * 2)}
    found = {"agents": max(2, int(200 * scale)), "lines": 200}
    fleet = f"{many['agents']} agents, 20 messages/s each, an approval every 2 s each: "
    return [
        Row("a line over a pipe, p50", "latency", lines, "pipe_p50_us", "µs"),
        Row("a line over a spool, p50", "latency", lines, "spool_p50_us", "µs"),
        Row("spool : pipe, p50", "latency", lines, "ratio_p50", "x", most=2.0),
        Row("a line over a pipe, p99", "latency", lines, "pipe_p99_us", "µs"),
        Row("a line over a spool, p99", "latency", lines, "spool_p99_us", "µs"),
        Row(fleet + "an approval at the agent, p50", "fleet", many, "approval_p50_ms", "ms"),
        Row(fleet + "an approval at the agent, p99", "fleet", many, "approval_p99_ms", "ms"),
        Row(fleet + "the supervisor's CPU per message", "fleet", many, "cpu_us", "µs"),
        Row(fleet + "the supervisor's memory per session", "fleet", many, "memory_kb", "KB"),
        Row(fleet + "the shim's own memory per session", "fleet", many, "shim_kb", "KB"),
        Row(
            f"{found['agents']} live agents are found again, {found['lines']} lines each",
            "recovery",
            found,
            "seconds",
            "s",
            most=2.0,
        ),
    ]


# --- the measurements, each in a process of its own


class Ear:
    """Notes how long each line took."""

    def __init__(self, lines: int) -> None:
        self.times: list[float] = []
        self.lines = lines
        self.done = asyncio.Event()
        self._rest = b""

    def received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            at = line.find(b'"text": "')
            if at > 0:
                self.times.append((now - int(line[at + 9 :].split(b" ", 1)[0])) / 1000)
        if len(self.times) >= self.lines:
            self.done.set()

    def complained(self, text: str) -> None: ...

    def ended(self) -> None:
        self.done.set()


PROMPT = b'{"type":"user","message":{"role":"user","content":"go"}}\n'


def _plan(seconds: float, rate: float, ask_every: float = 0) -> dict[str, str]:
    return {"BENCH_PLAN": json.dumps({"seconds": seconds, "rate": rate, "ask_every": ask_every})}


def _command() -> list[str]:
    return [sys.executable, "-I", "-S", str(HERE / "paced_claude.py")]


async def latency(folder: Path, lines: int) -> dict[str, float]:
    """The same child over both transports, at the same time: noise is then the same for both."""
    from bridle.process.child import ChildProcess
    from bridle.process.detached import DetachedProcess
    from bridle.process.spec import LaunchSpec
    from bridle.process.spool import Spool
    from bridle.process.transport import StopLimits
    from bridle.process.wake import open_wakes

    spec = LaunchSpec(command=_command(), env=_plan(lines / 400 + 2, 400))
    wakes = await open_wakes(folder)
    detached = DetachedProcess(spec, Spool(folder / "s"), wakes, "bench")
    found = {}
    for name, transport in (("pipe", ChildProcess(spec)), ("spool", detached)):
        found[name] = (transport, Ear(lines))
    for transport, ear in found.values():
        await transport.start(ear)
        transport.write(PROMPT)
    for transport, ear in found.values():
        await ear.done.wait()
        await transport.stop(StopLimits())
    wakes.close()
    times = {name: percentiles(ear.times) for name, (_, ear) in found.items()}
    return {
        **{f"{name}_{key}": value for name, each in times.items() for key, value in each.items()},
        "ratio_p50": times["spool"]["p50_us"] / times["pipe"]["p50_us"],
    }


async def _decide_all(supervisor: Any) -> None:
    from bridle.approvals import Approve, Person

    me = Person("bench", "bench")
    async for changes in supervisor.approvals.watch():
        for approval in changes:
            if approval.status == "pending":
                asyncio.ensure_future(  # noqa: RUF006 - the loop ends with the measurement
                    supervisor.approvals.decide(approval.id, Approve(), by=me)
                )


async def fleet(folder: Path, agents: int, seconds: float) -> dict[str, float]:
    from bridle.approvals import Person
    from bridle.supervisor import Plain, open_supervisor

    work = folder / "work"
    work.mkdir()
    env = {name: Plain(value) for name, value in _plan(seconds, 20, 2).items()}
    async with open_supervisor(folder / "home", size=agents) as supervisor:
        deciding = asyncio.ensure_future(_decide_all(supervisor))
        before = rss_kb()
        made = [
            await supervisor.create(cwd=work, by=Person("bench"), command=_command(), env=env)
            for _ in range(agents)
        ]
        for one in made:
            await supervisor.wait(one.id, lambda record: record.state == "idle", 120)
        shims = [_private_kb(supervisor.get(one.id)) for one in made]
        start = resource.getrusage(resource.RUSAGE_SELF)
        for one in made:
            await supervisor.send(one.id, "go")
        waits: list[float] = []
        for one in made:
            record = await supervisor.wait(one.id, lambda record: record.turns == 1, 120)
            waits += await _waits(supervisor, record)
        end = resource.getrusage(resource.RUSAGE_SELF)
        memory = (rss_kb() - before) / agents
        deciding.cancel()
        await supervisor.stop_all()
    cpu = end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime
    spent = percentiles(waits)
    return {
        "approval_p50_ms": spent["p50_us"] / 1000,
        "approval_p99_ms": spent["p99_us"] / 1000,
        "approvals": len(waits),
        "cpu_us": cpu * 1e6 / (agents * seconds * 20),
        "memory_kb": memory,
        "shim_kb": statistics.median(shims),
    }


async def _waits(supervisor: Any, record: Any) -> list[float]:
    seq = 0
    while events := await supervisor.journal.log.read(record.id, seq, 500):
        for event in events:
            if event.kind == "agent.said" and b'"type":"result"' in event.body[:120]:
                return list(json.loads(json.loads(event.body)["line"]["result"]))
        seq = events[-1].seq
    raise AssertionError("no result")


def _private_kb(record: Any) -> int:
    with open(f"/proc/{record.launch.pid}/smaps_rollup") as file:
        lines = dict(line.split(":", 1) for line in file.read().splitlines()[1:])
    return sum(int(lines[name].split()[0]) for name in ("Private_Clean", "Private_Dirty"))


async def recovery(folder: Path, agents: int, lines: int) -> dict[str, float]:
    """A first supervisor starts them and is killed; the second is measured."""
    here = [sys.executable, str(Path(__file__)), "--run", "recovery_first"]
    given = json.dumps([str(folder), agents, lines])
    first = await asyncio.create_subprocess_exec(*here, given)
    assert await first.wait() == -9, first.returncode

    from bridle.supervisor import open_supervisor

    start = time.perf_counter()
    async with open_supervisor(folder / "home", size=agents) as supervisor:
        seconds = time.perf_counter() - start
        alive = len(supervisor.recovered.alive)
        await supervisor.stop_all()
    assert alive == agents, f"{alive} of {agents} were found"
    return {"seconds": seconds, "taking_up": supervisor.recovered.seconds}


async def recovery_first(folder: str, agents: int, lines: int) -> None:
    from bridle.approvals import Person
    from bridle.supervisor import Plain, open_supervisor

    work = Path(folder) / "work"
    work.mkdir()
    env = {name: Plain(value) for name, value in _plan(lines / 100, 100).items()}
    async with open_supervisor(Path(folder) / "home", size=agents) as supervisor:
        made = [
            await supervisor.create(
                cwd=work, by=Person("bench"), command=_command(), env=env, prompt="go"
            )
            for _ in range(agents)
        ]
        for one in made:
            await supervisor.wait(one.id, lambda record: record.turns == 1, 300)
        os.kill(os.getpid(), 9)


WORKS: dict[str, Callable[..., Coroutine[Any, Any, dict[str, float]]]]
WORKS = {"latency": latency, "fleet": fleet, "recovery": recovery}


# --- the table


def run(work: str, given: str) -> None:
    """In the process that is measured."""
    options = json.loads(given)
    if work == "recovery_first":
        asyncio.run(recovery_first(*options))
        return
    folder, named = options
    print(json.dumps(asyncio.run(WORKS[work](Path(folder), **named))))


def judged(row: Row, values: list[float]) -> Measured:
    value = statistics.median(values)
    wanted = f"at most {row.most:g}" if row.most else ""
    is_met = row.most is None or value <= row.most
    return Measured(row.name, row.unit, value, min(values), max(values), wanted, is_met)


ABOUT = """\
# Many agents under one supervisor

Written by `make bench`: medians of {rounds} rounds, each a process of its own with a new home.
Python {python} on {system}, {cores} cores, which the agents (fake CLIs in Python) share with what
is measured. Machines are noisy: read the ratios.

A line takes from the child's write to the controller's receiver, on both transports at the same
time. An approval is measured by the agent: asked, written down, decided by a program that watches,
written down (as what people decide: on the disk), answered through the inbox. Recovery is from the
call of `open_supervisor` (imports are done) until every agent is followed again, after `kill -9` of
the first supervisor.

| work | | lowest to highest | wanted | |
|---|---|---|---|---|"""


def table(found: list[Measured], rounds: int) -> str:
    about = ABOUT.format(
        rounds=rounds,
        python=platform.python_version(),
        system=platform.system(),
        cores=os.cpu_count(),
    )
    rows = [
        f"| {m.name} | {m.value:,.4g} {m.unit} | {m.lowest:,.4g} to {m.highest:,.4g} "
        f"| {m.wanted} | {('met' if m.is_met else '**not met**') if m.wanted else ''} |"
        for m in found
    ]
    return "\n".join([about, *rows, ""])


def main() -> None:
    options = arguments(__doc__ or "", "supervisor")
    wanted = [row for row in rows(options.scale) if options.only in row.name]
    works = {row.work: row.options for row in wanted}
    values: dict[str, list[dict[str, float]]] = {work: [] for work in works}
    for _ in range(options.rounds):
        for work, given in works.items():
            values[work].append(measured_by(__file__, work, given))
    found = [judged(row, [v[row.figure] for v in values[row.work]]) for row in wanted]
    text = table(found, options.rounds)
    print(text)
    if options.write:
        (HERE / "supervisor.md").write_text(text)
        (HERE / "supervisor.json").write_bytes(msgspec.json.format(msgspec.json.encode(values)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(*sys.argv[2:4])
    else:
        main()
