"""The journal on this disk, beside plain `sqlite3` that does the same in one thread, in one run.

Each measurement is a process of its own with a new folder; the two sides take turns; the median of
the rounds counts. The figures go to bench/journal.md and bench/journal.json.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from figures import arguments
from msgspec import Struct

HERE = Path(__file__).resolve().parent
#: On the disk that the repo is on: a temporary folder may be memory.
DISK = HERE.parent / ".cache"


class Row(Struct):
    """One line of the table: what is measured, and what we want to reach."""

    name: str
    work: str
    options: dict[str, Any]
    figure: str
    unit: str
    least: float | None = None
    most: float | None = None
    has_sqlite: bool = False


class Measured(Struct):
    name: str
    unit: str
    ours: float
    lowest: float
    highest: float
    sqlite: float | None
    ratio: float | None
    wanted: str
    is_met: bool


def rows(scale: float) -> list[Row]:
    many = int(100_000 * scale)
    return [
        *_appends(many),
        *_single(int(5_000 * scale)),
        *_reads(int(1_000_000 * scale)),
        *_followers(scale),
        Row("memory, 1,000 idle streams, all", "idle", {"streams": 1_000}, "total_mb", "MB"),
        Row("each of them, written once and followed", "idle", {"streams": 1_000}, "each_kb", "KB"),
    ]


def _appends(events: int) -> list[Row]:
    found = []
    for level, fewer in (("process", 1), ("power", 5)):
        for writers in (1, 8):
            for batch, in_flight in ((1, 256), (100, 16)):
                name = f"{_writers(writers)}, {_batch(batch)}, survives {_survives(level)}"
                options: dict[str, Any] = {"writers": writers, "batch": batch, "level": level}
                options |= {"events": events // fewer, "in_flight": in_flight // writers}
                least = 50_000 if level == "process" else None
                row = Row(name, "appends", options, "per_second", "events/s", least)
                row.has_sqlite = True
                found.append(row)
    return found


def _single(appends: int) -> list[Row]:
    found = []
    for level, fewer in (("process", 1), ("power", 5)):
        for huge in (0, 5):
            options = {"appends": appends // fewer, "level": level, "huge": huge}
            beside = " beside a stream that stores 60 MB" if huge else ""
            name = f"a single append{beside}, survives {_survives(level)}"
            for figure in ("p50", "p99"):
                row = Row(f"{name}, {figure}", "single", options, f"{figure}_us", "µs")
                row.has_sqlite = not huge
                found.append(row)
    return found


def _reads(long: int) -> list[Row]:
    options = {"long": long, "reads": 500}
    return [
        Row("read 100 of 1,000 events, p50", "read", options, "short_p50_us", "µs"),
        Row(f"read 100 of {long:,} events, p50", "read", options, "long_p50_us", "µs"),
        Row("the second : the first", "read", options, "long_to_short", "x", most=1.5),
    ]


def _followers(scale: float) -> list[Row]:
    found = []
    for batch in (1, 100):
        options = {"readers": 200, "batch": batch, "events": int(1_000 * batch * scale)}
        name = f"200 followers, {_batch(batch)}: delivered per CPU second"
        found.append(Row(name, "followers", options, "per_cpu_second", "events"))
    return found


def _writers(number: int) -> str:
    return "one writer" if number == 1 else "eight writers"


def _batch(size: int) -> str:
    return "one event at a time" if size == 1 else f"batches of {size}"


def _survives(level: str) -> str:
    return {"process": "a kill", "power": "power loss"}[level]


def measure(side: str, row: Row) -> dict[str, float]:
    DISK.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=DISK) as folder:
        done = subprocess.run(
            [
                sys.executable,
                str(HERE / "journal_work.py"),
                side,
                row.work,
                json.dumps(row.options),
                folder,
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    if done.returncode:
        sys.exit(f"{side}, {row.name}: {done.stderr.strip()[-1000:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


Known = dict[str, dict[str, list[dict[str, float]]]]


def compare(row: Row, rounds: int, known: Known) -> Measured:
    """The medians; rows of the same work share their rounds."""
    key = json.dumps([row.work, row.options])
    sides = ["journal", *(["sqlite3"] if row.has_sqlite else [])]
    if key not in known:
        known[key] = {side: [] for side in sides}
        for _ in range(rounds):
            for side in sides:
                known[key][side].append(measure(side, row))
    of = {side: [round_[row.figure] for round_ in known[key][side]] for side in sides}
    ours = statistics.median(of["journal"])
    sqlite = statistics.median(of["sqlite3"]) if row.has_sqlite else None
    pairs = zip(of["journal"], of.get("sqlite3", ()), strict=False)
    ratio = statistics.median(a / b for a, b in pairs) if row.has_sqlite else None
    wanted, is_met = "", True
    if row.least is not None:
        wanted, is_met = f"at least {row.least:,.0f}", ours >= row.least
    elif row.most is not None:
        wanted, is_met = f"at most {row.most:g}", ours <= row.most
    low, high = min(of["journal"]), max(of["journal"])
    return Measured(row.name, row.unit, ours, low, high, sqlite, ratio, wanted, is_met)


def table(found: list[Measured]) -> str:
    lines = [
        "| work | journal | lowest to highest | plain sqlite3 | journal : sqlite3 | wanted | |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in found:
        met = ("met" if one.is_met else "**not met**") if one.wanted else ""
        spread = f"{_number(one.lowest)} to {_number(one.highest)}"
        sqlite = f"{_number(one.sqlite)} {one.unit}" if one.sqlite is not None else ""
        ratio = f"{one.ratio:.2f}x" if one.ratio is not None else ""
        ours = f"{_number(one.ours)} {one.unit}"
        lines.append(
            f"| {one.name} | {ours} | {spread} | {sqlite} | {ratio} | {one.wanted} | {met} |"
        )
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def report(found: list[Measured], rounds: int) -> str:
    return f"""# The journal on a disk

Written by `make bench`: medians of {rounds} rounds, each a process of its own with a new folder,
the journal and plain `sqlite3` in turn. Python {platform.python_version()} on {platform.system()},
SQLite {sqlite3.sqlite_version}, {os.cpu_count()} cores, events of 1 KB. Machines and disks differ
and are noisy: read the ratios.

Appends are gathered: 256 of them are in flight, of all writers together (16, where each is a batch
of 100). A single append is awaited before the next; on an idle machine most of it is the waking of
two threads, which is why it is faster beside a busy stream. Plain `sqlite3` is one thread without
an event loop that makes a transaction of each append, into a table without an index; it has one
writer in all rows. What has to survive power loss waits for the disk; here that is a virtual one,
which may make it look cheap.

{table(found)}
"""


def main() -> None:
    options = arguments(__doc__, "journal")
    found: list[Measured] = []
    known: Known = {}
    for row in rows(options.scale):
        if options.only in row.name:
            print(f"  {row.name} …", end="", flush=True)
            found.append(compare(row, options.rounds, known))
            print(f"\r  {table(found[-1:]).splitlines()[-1]}", flush=True)
    print("\n" + table(found))
    if options.write:
        (HERE / "journal.md").write_text(report(found, options.rounds))
        body = {"rounds": options.rounds, "rows": found, "raw": known}
        (HERE / "journal.json").write_bytes(msgspec.json.format(msgspec.json.encode(body)) + b"\n")


if __name__ == "__main__":
    main()
