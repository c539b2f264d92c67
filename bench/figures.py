"""What the benches have in common: percentiles, memory, and the arguments of those that compare."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

#: On the disk that the repo is on: a temporary folder may be memory.
DISK = Path(__file__).resolve().parents[1] / ".cache"


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


def measured_by(program: str, work: str, options: dict[str, Any]) -> dict[str, float]:
    """What a process of its own finds: the program with `--run`, in a new folder."""
    DISK.mkdir(exist_ok=True)
    folder = tempfile.mkdtemp(dir=DISK, prefix="bench-")
    here = [sys.executable, program, "--run", work, json.dumps([folder, options])]
    try:
        done = subprocess.run(here, capture_output=True, text=True, check=True)
        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return found
    except subprocess.CalledProcessError as error:
        raise SystemExit(error.stderr) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
