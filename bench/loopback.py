"""Agents that follow others: how soon they are told, what a poll costs, and what waiting costs.

Each measurement is a process of its own with a new home; the median of the rounds counts. The
figures go to bench/loopback.md and bench/loopback.json.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from figures import arguments, measured_by, percentiles, rss_kb
from msgspec import Struct

HERE = Path(__file__).resolve().parent
LIMIT = 60.0


class Row(Struct):
    """One line of the table."""

    name: str
    work: str
    options: dict[str, Any]
    figure: str
    unit: str


def rows(scale: float) -> list[Row]:
    asking = {"children": 1, "seconds": 10 * scale, "ask_every": 0.05}
    fan_out = {"children": 4, "seconds": 10 * scale, "ask_every": 0.2}
    long = {"events": int(100_000 * scale), "seconds": 2 * min(1.0, scale * 2)}
    waiting = {"waiters": max(10, int(1_000 * scale)), "seconds": 5 * min(1.0, scale * 2)}
    stream = f"a stream of {long['events']:,} events: "
    many = f"{waiting['waiters']:,} polls that wait: "
    return [
        Row("one child: from its request to the poll's answer, p50", "asked", asking, "p50", "ms"),
        Row("one child: from its request to the poll's answer, p99", "asked", asking, "p99", "ms"),
        Row("four children: the same, p50", "fan_out", fan_out, "p50", "ms"),
        Row("four children: the same, p99", "fan_out", fan_out, "p99", "ms"),
        Row(stream + "polls with nothing new", "polls", long, "empty", "per CPU s"),
        Row(stream + "polls that give 10 events again", "polls", long, "tail", "per CPU s"),
        Row(stream + "polls that give 10 old events", "polls", long, "past", "per CPU s"),
        Row(stream + "the first poll", "polls", long, "first", "s"),
        Row(many + "CPU while nothing happens", "waiters", waiting, "cpu", "%"),
        Row(many + "memory of each", "waiters", waiting, "memory", "KB"),
        Row(many + "all answered after the turn's end", "waiters", waiting, "woken", "ms"),
    ]


# --- the measurements, each in a process of its own


def _command() -> list[str]:
    return [sys.executable, "-I", "-S", str(HERE / "paced_claude.py")]


class Parent:
    """Who calls: a session that does nothing by itself."""

    def __init__(self, supervisor: Any, session: str) -> None:
        from bridle.loopback import loopback_of

        self.supervisor = supervisor
        self.session = session
        self._loopback = loopback_of(supervisor)
        self._calls = 0

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        self._calls += 1
        given = await self._loopback.call(self.session, tool, arguments, f"bench:{self._calls}")
        if given["type"] == "error":
            sys.exit(f"{tool}: {given}")
        return given

    async def child(self, name: str) -> str:
        made = await self.call("claudecode_create", name=name, policy="ask")
        await self.supervisor.wait(made["id"], lambda record: record.state == "idle", LIMIT)
        return str(made["id"])


@asynccontextmanager
async def parent_in(folder: Path, **plan: float) -> AsyncIterator[Parent]:
    from bridle.approvals import Person
    from bridle.loopback import tools_of
    from bridle.supervisor import Plain, open_supervisor

    work = folder / "work"
    work.mkdir()
    env = {"BENCH_PLAN": Plain(json.dumps(plan))}
    async with open_supervisor(folder / "home", loopback=tools_of) as supervisor:
        made = await supervisor.create(
            cwd=work, by=Person("bench"), command=_command(), env=env, policy="autonomous",
            loopback=True,
        )  # fmt: skip
        await supervisor.wait(made.id, lambda record: record.state == "idle", LIMIT)
        yield Parent(supervisor, made.id)
        await supervisor.stop_all()


async def asked(folder: Path, children: int, seconds: float, ask_every: float) -> dict[str, float]:
    """Children that speak and ask; one parent that follows all of them with one poll."""
    times: list[float] = []
    async with parent_in(folder, seconds=seconds, rate=20, ask_every=ask_every) as parent:
        names = [await parent.child(f"c{number}") for number in range(children)]
        for name in names:
            await parent.call("claudecode_chat_async", session_id=name, prompt="go")
        seen: set[str] = set()
        while True:
            given = await parent.call("claudecode_poll", session_ids=names, until="approval")
            now = time.time()
            for one in given["sessions"]:
                for approval in one["pending_approvals"]:
                    if approval["id"] not in seen:
                        seen.add(approval["id"])
                        times.append((now - approval["created_at"]) * 1e6)
                    await parent.call("loopback_respond", approval_id=approval["id"], approve=True)
            if all(one["status"] == "complete" for one in given["sessions"]):
                break
    found = percentiles(times)
    return {"p50": found["p50_us"] / 1000, "p99": found["p99_us"] / 1000, "asked": len(times)}


async def polls(folder: Path, events: int, seconds: float) -> dict[str, float]:
    """One long stream, and polls that do not wait."""
    async with parent_in(folder, seconds=0, rate=1) as parent:
        child = await parent.child("c")
        await _grow(parent.supervisor, child, events)
        ask = {"session_id": child, "wait_ms": 0, "limit": 10}
        start = time.perf_counter()
        total = (await parent.call("claudecode_poll", **ask))["total_events"]
        first = time.perf_counter() - start
        places = {"empty": total, "tail": total - 10, "past": total // 2}
        found = {"first": first}
        for name, place in places.items():
            count, spent = 0, time.process_time()
            while time.process_time() - spent < seconds:
                await parent.call("claudecode_poll", **ask, from_seq=place)
                count += 1
            found[name] = count / (time.process_time() - spent)
        return found


async def _grow(supervisor: Any, session: str, events: int) -> None:
    """As if its agent had said so much."""
    from bridle.journal import NewEvent
    from bridle.views import stream

    owner = supervisor._means.owners.of(session)  # noqa: SLF001 - the agent that would write
    inner = {"id": "m", "model": "x", "content": [{"type": "text", "text": "x" * 200}]}
    line = {"type": "assistant", "uuid": "u", "message": inner}
    raw = msgspec.Raw(msgspec.json.encode(line))
    said = stream.Line(launch="bench", end=0, type="assistant", line=raw)
    event = NewEvent(stream.SAID, msgspec.json.encode(said))
    for _ in range(events // 500):
        await owner.append([event] * 500)
    last = (await supervisor.journal.log.info(session)).last_seq
    await supervisor.wait(session, lambda record: record.seq >= last, LIMIT)


async def waiters(folder: Path, waiters: int, seconds: float) -> dict[str, float]:
    """Polls that wait for the end of a turn, in which nothing happens."""
    length = seconds + 6
    async with parent_in(folder, seconds=length, rate=1 / length, ask_every=0) as parent:
        child = await parent.child("c")
        await parent.call("claudecode_chat_async", session_id=child, prompt="go")
        await parent.supervisor.wait(child, lambda record: record.state == "running", LIMIT)
        await asyncio.sleep(1)
        memory = rss_kb()
        ask = {"session_id": child, "until": "turn_end", "wait_ms": 600_000}
        polls = [
            asyncio.ensure_future(parent.call("claudecode_poll", **ask)) for _ in range(waiters)
        ]
        await asyncio.sleep(2)
        memory = rss_kb() - memory
        spent = time.process_time()
        await asyncio.sleep(seconds)
        spent = time.process_time() - spent
        await asyncio.wait(polls, return_when=asyncio.FIRST_COMPLETED)
        ended = time.perf_counter()
        await asyncio.wait(polls)
        woken = time.perf_counter() - ended
    return {"cpu": 100 * spent / seconds, "memory": memory / waiters, "woken": woken * 1000}


WORKS: dict[str, Callable[..., Coroutine[Any, Any, dict[str, float]]]]
WORKS = {"asked": asked, "fan_out": asked, "polls": polls, "waiters": waiters}


# --- the table


def run(work: str, given: str) -> None:
    """In the process that is measured."""
    folder, named = json.loads(given)
    print(json.dumps(asyncio.run(WORKS[work](Path(folder), **named))))


ABOUT = """\
# Agents that follow others

Written by `make bench`: medians of {rounds} rounds, each a process of its own with a new home.
Python {python} on {system}, {cores} cores, which the agents (fake CLIs in Python) share with what
is measured. Machines are noisy.

Children speak 20 times a second each; one asks every 0.05 s, or four every 0.2 s each, all at the
same moment. Their parent follows all of them with one poll (`until` an approval) and approves, one
after the other. The time is from the moment at which the child's request was taken to the answer of
the poll: that the request is stored first is in it, and where four ask at once also the time in
which the parent was busy with the others (what it decides is written to the disk). Polls are
calls of the tool inside of the server, without a transport; those that give 10 events again are of
the latest ones, old ones are read from the log. The waiters are polls of one session in whose turn
nothing happens.

| | | lowest to highest |
|---|---|---|"""


def table(found: list[tuple[Row, list[float]]], rounds: int) -> str:
    about = ABOUT.format(
        rounds=rounds,
        python=platform.python_version(),
        system=platform.system(),
        cores=os.cpu_count(),
    )
    lines = [
        f"| {row.name} | {_short(statistics.median(values))} {row.unit} "
        f"| {_short(min(values))} to {_short(max(values))} |"
        for row, values in found
    ]
    return "\n".join([about, *lines, ""])


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def main() -> None:
    options = arguments(__doc__ or "", "loopback")
    wanted = [row for row in rows(options.scale) if options.only in row.name]
    works = {row.work: row.options for row in wanted}
    values: dict[str, list[dict[str, float]]] = {work: [] for work in works}
    for _ in range(options.rounds):
        for work, given in works.items():
            values[work].append(measured_by(__file__, work, given))
    text = table(
        [(row, [one[row.figure] for one in values[row.work]]) for row in wanted], options.rounds
    )
    print(text)
    if options.write:
        (HERE / "loopback.md").write_text(text)
        body = msgspec.json.encode({"rounds": options.rounds, "works": values})
        (HERE / "loopback.json").write_bytes(msgspec.json.format(body) + b"\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(*sys.argv[2:4])
    else:
        main()
