"""Writes docs/conformance.md from what the scenarios saw: a table, scenario by version.

    python -m tests.conformance.report [--check]

With --check it writes nothing and fails where the page does not say what was seen.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import msgspec
from msgspec import Struct

from bridle.protocol.capabilities import ANSWERED_SINCE, TESTED_VERSIONS, Capabilities

from .versions import CORE

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / ".cache" / "conformance"
PAGE = ROOT / "docs" / "conformance.md"

HEAD = """# Conformance

What real Claude Code CLIs do, as seen by driving each of them offline, with a scripted model. A
scenario runs through `bridle.connect` or under a supervisor, as users do; what a session would
never write (a malformed line, an error in place of a hook's answer) goes over plain pipes. `make
conformance` runs every scenario against every version and writes this page; each row is a test in
`tests/conformance/`.

"ok" means that the test passed with nothing to tell; words in its place tell what the version did
where versions differ or where the detail matters.
"""


class Sighting(Struct):
    """What one scenario saw in one version."""

    area: str
    name: str
    title: str
    version: str
    passed: bool
    observations: list[str]
    #: Whether a `Session` drove the CLI; else the test itself did, over plain pipes.
    by_session: bool = False


def load() -> list[Sighting]:
    files = sorted(RESULTS.glob("*/*.json"))
    return [msgspec.json.decode(file.read_bytes(), type=Sighting) for file in files]


def render(sightings: list[Sighting]) -> str:
    ordered = sorted(sightings, key=lambda s: (s.area, s.name))
    scenarios = [list(rows) for _, rows in groupby(ordered, key=lambda s: (s.area, s.name))]
    differing = [rows for rows in scenarios if len(set(_cells(rows))) > 1]
    parts = [HEAD, *_table("What differs between versions", differing, TESTED_VERSIONS)]
    for area, members in groupby(scenarios, key=lambda rows: rows[0].area):
        told = list(members)
        run = {row.version for rows in told for row in rows}
        versions = CORE if run - {*TESTED_VERSIONS} else TESTED_VERSIONS
        parts += _table(area.rstrip("."), told, versions)
    parts += _answers()
    failed = sum(not sighting.passed for sighting in sightings)
    by_session = sum(rows[0].by_session for rows in scenarios)
    how = f"{by_session} through a session, {len(scenarios) - by_session} over plain pipes"
    parts.append(f"\n{len(scenarios)} scenarios ({how}), {len(sightings)} runs, {failed} failed.\n")
    return "\n".join(parts)


def _table(title: str, scenarios: list[list[Sighting]], versions: Sequence[str]) -> list[str]:
    head = [f"\n## {title}\n", f"| scenario | {' | '.join(versions)} |"]
    rule = "|---" * (len(versions) + 1) + "|"
    return [*head, rule, *(_row(rows, versions) for rows in scenarios)]


def _answers() -> list[str]:
    """The table of requests that one scenario has just held every version against."""
    asked = [Capabilities(version) for version in TESTED_VERSIONS]
    rows = [
        f"| `{subtype}` | " + " | ".join(_ANSWER[one.answers(subtype)] for one in asked) + " |"
        for subtype in ANSWERED_SINCE
    ]
    head = f"| request | {' | '.join(TESTED_VERSIONS)} |"
    rule = "|---" * (len(TESTED_VERSIONS) + 1) + "|"
    return ["\n## What each version answers\n", head, rule, *rows]


_ANSWER = {"yes": "yes", "no": "never", "unknown": "?"}


def _cells(rows: list[Sighting], versions: Sequence[str] = TESTED_VERSIONS) -> list[str]:
    by_version = {row.version: row for row in rows}
    return [_cell(by_version.get(version)) for version in versions]


def _row(rows: list[Sighting], versions: Sequence[str]) -> str:
    return f"| {rows[0].title.rstrip('.')} | {' | '.join(_cells(rows, versions))} |"


def _cell(sighting: Sighting | None) -> str:
    if sighting is None:
        return "not run"
    if not sighting.passed:
        return "**failed**"
    return "; ".join(sighting.observations).replace("|", "\\|") or "ok"


def compared(sightings: list[Sighting], version: str) -> str:
    """What a version does otherwise than the newest tested one."""
    newest = TESTED_VERSIONS[-1]
    ordered = sorted(sightings, key=lambda s: (s.area, s.name))
    lines = [f"What {version} does otherwise than {newest}:\n"]
    total = 0
    for _, rows in groupby(ordered, key=lambda s: (s.area, s.name)):
        told = list(rows)
        before, now = _cells(told, (newest, version))
        total += 1
        if before != now:
            lines.append(
                f"- {told[0].title.rstrip('.')}\n    {newest}: {before}\n    {version}: {now}"
            )
    return "\n".join([*lines, f"\n{len(lines) - 1} of {total} scenarios differ."])


def main() -> int:
    sightings = load()
    if not sightings:
        sys.stderr.write("no scenario has been run: use `make conformance`\n")
        return 2
    if "--compare" in sys.argv:
        sys.stdout.write(compared(sightings, sys.argv[-1]) + "\n")
        return 0
    page = render(sightings)
    if "--check" not in sys.argv:
        PAGE.write_text(page)
        return 0
    if PAGE.exists() and PAGE.read_text() == page:
        return 0
    sys.stderr.write(
        f"{PAGE.relative_to(ROOT)} is stale; `make conformance` writes it. Seen:\n{page}"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
