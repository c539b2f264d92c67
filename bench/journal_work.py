"""One measurement of the journal, or of plain `sqlite3` doing the same, in a process of its own.

    python bench/journal_work.py journal|sqlite3 WORK OPTIONS-AS-JSON FOLDER

Prints JSON. Owns what each side does; `journal.py` runs them and compares.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import sqlite3
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from figures import percentiles, rss_kb

from bridle.journal import Durability, Journal, NewEvent, open_journal

Options = dict[str, Any]
Figures = dict[str, float]

BODY = os.urandom(1024)
HUGE = 60_000_000
LEVELS = {"process": Durability.PROCESS, "power": Durability.POWER}


# --- ours


async def appends(folder: Path, options: Options) -> Figures:
    """Each of some writers keeps so many appends in flight."""
    async with open_journal(folder) as journal:
        writers, batch = options["writers"], options["batch"]
        each = options["events"] // writers // batch
        await asyncio.gather(*(_write(journal, f"warm{n}", 20, options) for n in range(writers)))
        start, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(_write(journal, f"s{n}", each, options) for n in range(writers)))
        spent, cpu = time.perf_counter() - start, time.process_time() - cpu
    done = each * writers * batch
    return {"per_second": done / spent, "cpu_us": cpu * 1e6 / done}


async def _write(journal: Journal, stream: str, appends: int, options: Options) -> None:
    level, batch, last = LEVELS[options["level"]], options["batch"], 0
    is_sealed = options.get("is_sealed", False)
    in_flight: deque[asyncio.Future[int]] = deque()
    for _ in range(appends):
        if len(in_flight) == options["in_flight"]:
            await in_flight.popleft()
        events = [NewEvent("message", BODY, is_sealed=is_sealed) for _ in range(batch)]
        in_flight.append(journal.log.append(stream, events, last, level))
        last += batch
    for future in in_flight:
        await future


async def single(folder: Path, options: Options) -> Figures:
    """One append after the other, alone or while another stream stores 60 MB again and again."""
    stored = 0
    payloads = [number.to_bytes(8, "big") + bytes(HUGE) for number in range(options["huge"])]

    async def store_huge() -> None:
        nonlocal stored
        for number, payload in enumerate(payloads):
            stored = await journal.log.append("huge", [NewEvent("huge", payload)], number)

    async with open_journal(folder) as journal:
        beside = asyncio.create_task(store_huge())
        times: list[float] = []
        level, last = LEVELS[options["level"]], 0
        is_sealed = options.get("is_sealed", False)
        while len(times) < options["appends"] or stored < len(payloads):
            start = time.perf_counter()
            events = [NewEvent("message", BODY, is_sealed=is_sealed)]
            last = await journal.log.append("small", events, last, level)
            times.append((time.perf_counter() - start) * 1e6)
        await beside
    return percentiles(times)


async def read(folder: Path, options: Options) -> Figures:
    """100 events from somewhere in two histories that are in one file."""
    histories = {"short": 1_000, "long": options["long"]}
    times: dict[str, list[float]] = {name: [] for name in histories}
    async with open_journal(folder) as journal:
        for name, events in histories.items():
            one = {"batch": 100, "in_flight": 20, "level": "process"}
            await _write(journal, name, events // 100, one)
        for _ in range(options["reads"]):
            for name, events in histories.items():
                after = random.randrange(events - 100)
                start = time.perf_counter()
                found = await journal.log.read(name, after, 100)
                times[name].append((time.perf_counter() - start) * 1e6)
                if [event.seq for event in found] != list(range(after + 1, after + 101)):
                    sys.exit(f"read the wrong events after {after}")
    short, long = percentiles(times["short"]), percentiles(times["long"])
    return {
        "short_p50_us": short["p50_us"],
        "long_p50_us": long["p50_us"],
        "long_to_short": long["p50_us"] / short["p50_us"],
    }


async def followers(folder: Path, options: Options) -> Figures:
    """Many readers of one stream, all at its end when it begins, while it is written."""
    events, readers, batch = options["events"], options["readers"], options["batch"]

    async with open_journal(folder) as journal:
        at_the_end = asyncio.Semaphore(0)

        async def follow() -> int:
            seen = 0
            async for found in journal.log.follow("s"):
                seen += len(found.events)
                if seen <= 2:
                    at_the_end.release()
                elif seen >= events + 2:
                    break
            return seen - 2

        reading = [asyncio.create_task(follow()) for _ in range(readers)]
        for last in (0, 1):
            await journal.log.append("s", [NewEvent("first", b"")], last)
            for _ in reading:
                await at_the_end.acquire()
        start, cpu = time.perf_counter(), time.process_time()
        for last in range(2, events + 2, batch):
            await journal.log.append("s", [NewEvent("message", BODY) for _ in range(batch)], last)
        delivered = sum(await asyncio.gather(*reading))
        cpu, spent = time.process_time() - cpu, time.perf_counter() - start
    if delivered != events * readers:
        sys.exit(f"delivered {delivered} events, not {events * readers}")
    return {"per_cpu_second": delivered / cpu, "per_second": delivered / spent}


async def idle(folder: Path, options: Options) -> Figures:
    """Memory of streams that were written once and are followed, and on which nothing happens."""
    streams = options["streams"]
    async with open_journal(folder) as journal:
        await journal.log.append("first", [NewEvent("message", BODY)], 0)
        await journal.log.read("first")
        gc.collect()
        before = rss_kb()
        feed = journal.log.follow("first", 1)
        for number in range(streams):
            await journal.log.append(f"s{number}", [NewEvent("message", BODY)], 0)
            feed.add(f"s{number}", 1)
        gc.collect()
        after, tasks = rss_kb(), len(asyncio.all_tasks())
    return {"total_mb": after / 1024, "each_kb": (after - before) / streams, "tasks": tasks}


# --- plain sqlite3, one thread: as one would write it, with its own defaults


def raw_appends(folder: Path, options: Options) -> Figures:
    connection, batch = _raw(folder, options), options["batch"]
    start = time.perf_counter()
    for first in range(1, options["events"] + 1, batch):
        _raw_append(connection, first, batch)
    return {"per_second": options["events"] / (time.perf_counter() - start)}


def raw_single(folder: Path, options: Options) -> Figures:
    connection, times = _raw(folder, options), []
    for number in range(1, options["appends"] + 1):
        start = time.perf_counter()
        _raw_append(connection, number, 1)
        times.append((time.perf_counter() - start) * 1e6)
    return percentiles(times)


def _raw(folder: Path, options: Options) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "raw.db", isolation_level=None)
    level = "FULL" if options["level"] == "power" else "NORMAL"
    connection.executescript(
        f"PRAGMA journal_mode = WAL; PRAGMA synchronous = {level};"
        "CREATE TABLE event (key INTEGER PRIMARY KEY, at REAL, kind TEXT, body BLOB)"
    )
    return connection


def _raw_append(connection: sqlite3.Connection, first: int, batch: int) -> None:
    rows = [(number, time.time(), "message", BODY) for number in range(first, first + batch)]
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO event VALUES (?, ?, ?, ?)", rows)
    connection.execute("COMMIT")


WORK: dict[str, dict[str, Callable[[Path, Options], Any]]] = {
    "journal": {
        "appends": appends,
        "single": single,
        "read": read,
        "followers": followers,
        "idle": idle,
    },
    "sqlite3": {"appends": raw_appends, "single": raw_single},
}


def main() -> None:
    side, work, options, folder = sys.argv[1:]
    found = WORK[side][work](Path(folder), json.loads(options))
    print(json.dumps(found if isinstance(found, dict) else asyncio.run(found)))


if __name__ == "__main__":
    main()
