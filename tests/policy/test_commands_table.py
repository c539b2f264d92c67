"""The table of commands: what each of them must be told, whatever it looks like."""

from __future__ import annotations

import re
from pathlib import Path

from .grounds import POLICIES, judged

TABLE = Path(__file__).with_name("commands.txt")
_HEAD = re.compile(r"\[([a-z-]+): ([a-z|]+)\]")
_NUMBERED = re.compile("\u2039([0-9a-f]+)\u203a")


def _rows() -> list[tuple[str, str, str]]:
    rows, policy, expected = [], "", ""
    for line in TABLE.read_text(encoding="utf-8").split("\n"):
        if head := _HEAD.fullmatch(line):
            policy, expected = head.groups()
        elif line and not line.startswith("# "):
            text = line.replace("␤", "\n")
            text = _NUMBERED.sub(lambda found: chr(int(found[1], 16)), text)
            rows.append((policy, expected, text))
    return rows


ROWS = _rows()


def test_every_command_of_the_table_is_judged_as_it_must_be() -> None:
    found = [
        (policy, judged(policy, command), expected, command) for policy, expected, command in ROWS
    ]
    assert [row for row in found if row[1] not in row[2].split("|")] == []


def test_the_table_is_large_names_known_policies_and_says_nothing_twice() -> None:
    assert len(ROWS) >= 350
    assert {policy for policy, _, _ in ROWS} <= POLICIES.keys()
    said = [(policy, command) for policy, _, command in ROWS]
    assert sorted(said) == sorted(set(said))
