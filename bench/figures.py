"""What the benches have in common: percentiles, memory, and the arguments of those that compare."""

from __future__ import annotations

import argparse


def percentiles(times: list[float]) -> dict[str, float]:
    """Of times in microseconds."""
    ordered = sorted(times)
    return {
        "p50_us": ordered[len(ordered) // 2],
        "p99_us": ordered[int(len(ordered) * 0.99)],
        "max_us": ordered[-1],
    }


def rss_kb() -> int:
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return int(lines["VmRSS"].split()[0])


def arguments(what: str, written: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=what.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="less work, for a quick look")
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("--write", action="store_true", help=f"write bench/{written}.md and .json")
    options = parser.parse_args()
    if options.write and (options.only or options.scale != 1):
        parser.error("--write is for all rows at full scale")
    return options
