"""Many clients on one session's stream, beside a bare Starlette stream of the same, in one run.

The server, its clients and what starts them are processes of their own; the sides take turns; the
median of the rounds counts. The figures go to bench/sse.md and bench/sse.json.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any

import msgspec
from figures import arguments
from msgspec import Struct

HERE = Path(__file__).resolve().parent
#: On the disk that the repo is on: a temporary folder may be memory.
DISK = HERE.parent / ".cache"
CLIENTS = 200
RATE = 100
SECONDS = 10
TICKS = os.sysconf("SC_CLK_TCK")
SIDES = ("ours", "bare", "gathering")

NAMES = {
    "ours": "Bridle",
    "bare": "bare Starlette, one send per event",
    "gathering": "bare Starlette that sends together what waits",
}


class Measured(Struct):
    """One round of one side. `alone` is what the same events cost with no client."""

    cpu_share: float
    cpu_us: float
    p50_ms: float
    p99_ms: float
    seconds: float
    alone: float


def started(side: str, **options: Any) -> subprocess.Popen[str]:
    work = [sys.executable, str(HERE / "sse_work.py"), side, json.dumps(options)]
    return subprocess.Popen(work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def line(pipe: IO[str] | None) -> dict[str, Any]:
    assert pipe
    text = pipe.readline()
    if not text:
        sys.exit("a process of the measurement has ended")
    found: dict[str, Any] = json.loads(text)
    return found


def cpu(pid: int) -> float:
    """Of all threads, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("go\n")
    process.stdin.flush()


def measure(side: str, clients: int, events: int) -> Measured:
    DISK.mkdir(exist_ok=True)
    folder = tempfile.mkdtemp(dir=DISK, prefix="bench-")
    try:
        alone = _alone(side, f"{folder}/alone", events) if side == "ours" else 0.0
        return _measure(side, folder, clients, events, alone)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measure(side: str, folder: str, clients: int, events: int, alone: float) -> Measured:
    server = started(side, folder=folder, events=events, rate=RATE)
    try:
        where = line(server.stdout)
        many = started("clients", **where, clients=clients, events=events)
        try:
            line(many.stdout)
            before, start = cpu(server.pid), time.monotonic()
            go(server)
            told = line(many.stdout)
            spent, seconds = cpu(server.pid) - before, time.monotonic() - start
        finally:
            many.kill()
            many.wait()
    finally:
        server.kill()
        server.wait()
    if told["told"] != clients * events:
        sys.exit(f"{side}: {told['told']} of {clients * events} came")
    return Measured(
        cpu_share=100 * spent / seconds,
        cpu_us=spent * 1e6 / (clients * events),
        p50_ms=told["p50_us"] / 1000,
        p99_ms=told["p99_us"] / 1000,
        seconds=seconds,
        alone=alone,
    )


def _alone(side: str, folder: str, events: int) -> float:
    """What the events themselves cost, with nobody who follows."""
    Path(folder).mkdir()
    server = started(side, folder=folder, events=events, rate=RATE)
    try:
        line(server.stdout)
        before = cpu(server.pid)
        go(server)
        time.sleep(events / RATE)
        return 100 * (cpu(server.pid) - before) / (events / RATE)
    finally:
        server.kill()
        server.wait()


# --- the table


class Row(Struct):
    name: str
    values: list[float]
    unit: str
    most: float | None = None

    @property
    def text(self) -> str:
        value = statistics.median(self.values)
        spread = f"{min(self.values):,.3g} to {max(self.values):,.3g}"
        wanted = f"at most {self.most:g}" if self.most else ""
        met = ("met" if value <= self.most else "**not met**") if self.most else ""
        return f"| {self.name} | {value:,.3g} {self.unit} | {spread} | {wanted} | {met} |"


def rows(found: dict[str, list[Measured]]) -> list[Row]:
    ratio = [a.cpu_us / b.cpu_us for a, b in zip(found["ours"], found["bare"], strict=True)]
    other = [a.cpu_us / b.cpu_us for a, b in zip(found["ours"], found["gathering"], strict=True)]
    listed = [
        Row("CPU, Bridle : bare", ratio, "x", 2.0),
        Row("CPU, Bridle : bare that gathers", other, "x"),
    ]
    for side, name in NAMES.items():
        of = found[side]
        listed += [
            Row(f"{name}: CPU of the server", [m.cpu_share for m in of], "%"),
            Row(f"{name}: CPU per event and client", [m.cpu_us for m in of], "µs"),
            Row(f"{name}: from append to client, p50", [m.p50_ms for m in of], "ms"),
            Row(f"{name}: from append to client, p99", [m.p99_ms for m in of], "ms"),
        ]
        if side == "ours":
            alone = [m.alone for m in of]
            listed.append(Row(f"{name}: CPU of the same events with no client", alone, "%"))
    return listed


ABOUT = """\
# Streams to many clients

Written by `make bench`: medians of {rounds} rounds. {clients} clients follow one session at {rate}
events of about 300 bytes a second, for {seconds:g} s; every client gets every event, in order. The
server, the clients and the bench are processes of their own, on {cores} cores; the sides take
turns. Python {python} on {system}, uvicorn with h11 on both sides. Machines are noisy: read the
ratios.

Bridle's side is the whole server: each event is stored on the disk, folded into its session's
record, searched for secrets, and sent through the door to clients with a token. The bare side has a
queue and a generator for each client, and bytes that are made once; it stores nothing. Its CPU
share is of the time until the last client had the last event. Bridle gathers what comes for up to
0.25 ms per client (50 ms here), which is what most of its latency is, and why it costs less.

| | | lowest to highest | wanted | |
|---|---|---|---|---|"""


def table(found: dict[str, list[Measured]], rounds: int, clients: int, events: int) -> str:
    about = ABOUT.format(
        rounds=rounds,
        clients=clients,
        rate=RATE,
        seconds=events / RATE,
        cores=os.cpu_count(),
        python=platform.python_version(),
        system=platform.system(),
    )
    return "\n".join([about, *(row.text for row in rows(found)), ""])


def main() -> None:
    options = arguments(__doc__ or "", "sse")
    clients = max(2, int(CLIENTS * options.scale))
    events = max(RATE, int(RATE * SECONDS * options.scale))
    found: dict[str, list[Measured]] = {side: [] for side in SIDES}
    for number in range(options.rounds):
        for side in SIDES:
            print(f"  round {number + 1}, {NAMES[side]} …", flush=True)
            found[side].append(measure(side, clients, events))
            print(f"    {found[side][-1]}", flush=True)
    text = table(found, options.rounds, clients, events)
    print(text)
    if options.write:
        (HERE / "sse.md").write_text(text)
        body = {"rounds": options.rounds, "clients": clients, "events": events, "sides": found}
        (HERE / "sse.json").write_bytes(msgspec.json.format(msgspec.json.encode(body)) + b"\n")


if __name__ == "__main__":
    main()
