"""What anchors cost: appends by this tree and by another one, in turns, in one run.

    python bench/anchors.py --before /path/to/another/checkout [--rounds 7] [--only sealed]

Each measurement is a process of its own with a new folder. Read the ratio of the medians.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DISK = HERE.parent / ".cache"

PROCESS, POWER = {"level": "process"}, {"level": "power"}
SEALED = POWER | {"is_sealed": True}
ONE, EIGHT = {"writers": 1, "in_flight": 256}, {"writers": 8, "in_flight": 32}
MANY, FEWER = {"batch": 1, "events": 60_000}, {"batch": 1, "events": 40_000}
BATCHES = {"writers": 1, "in_flight": 16, "batch": 100, "events": 100_000}
SINGLE = {"appends": 4_000, "huge": 0}

WORK: dict[str, tuple[str, dict[str, Any]]] = {
    "one writer, single events, process": ("appends", ONE | MANY | PROCESS),
    "eight writers, single events, process": ("appends", EIGHT | MANY | PROCESS),
    "one writer, batches of 100, process": ("appends", BATCHES | PROCESS),
    "eight writers, single events, power": ("appends", EIGHT | FEWER | POWER),
    "eight writers, sealed events, power": ("appends", EIGHT | FEWER | SEALED),
    "one append after the other, process": ("single", SINGLE | PROCESS),
    "one append after the other, power": ("single", SINGLE | POWER),
    "one sealed append after the other, power": ("single", SINGLE | SEALED),
}


def measure(tree: Path, work: str, options: dict[str, Any]) -> float:
    """Seconds for each event, or append."""
    with tempfile.TemporaryDirectory(dir=DISK) as folder:
        command = [sys.executable, str(HERE / "journal_work.py"), "journal", work]
        done = subprocess.run(
            [*command, json.dumps(options), folder],
            env={**os.environ, "PYTHONPATH": str(tree / "src")},
            stdout=subprocess.PIPE,
            check=True,
        )
    found: dict[str, float] = json.loads(done.stdout)
    return 1 / found["per_second"] if "per_second" in found else found["p50_us"] / 1e6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="of the works whose name has this")
    given = parser.parse_args()
    DISK.mkdir(exist_ok=True)
    trees = (given.before.resolve(), HERE.parent)
    for name, (work, options) in WORK.items():
        if given.only not in name:
            continue
        times: tuple[list[float], list[float]] = ([], [])
        for number in range(given.rounds):
            for side in (0, 1) if number % 2 else (1, 0):
                times[side].append(measure(trees[side], work, options))
        before, after = map(statistics.median, times)
        print(f"{name}: {before * 1e6:.1f} -> {after * 1e6:.1f} µs, {after / before:.3f} times")


if __name__ == "__main__":
    main()
