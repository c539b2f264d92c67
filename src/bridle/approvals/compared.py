"""Two texts as one, in the form of a unified diff: what goes, what comes, and some lines around it.

Owns how much is compared. To find the fewest changes takes as long as the lines of one times those
of the other, at the worst, and an agent may write either: of what is too much, all between the
first and the last line that differ is told as one change.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

#: So many pairs of lines are compared, without those that are the same at either end of the texts.
MOST_PAIRS = 2_000_000


def compared(
    before: Sequence[str], after: Sequence[str], name: str = "", *, around: int
) -> Iterator[str]:
    """Its lines, without their ends; none if they are the same."""
    head = _same(before, after)
    tail = min(_same(before[::-1], after[::-1]), min(len(before), len(after)) - head)
    begin, end = max(head - around, 0), max(tail - around, 0)
    gone, come = before[begin : len(before) - end], after[begin : len(after) - end]
    if (len(before) - head - tail) * (len(after) - head - tail) > MOST_PAIRS:
        found = _as_one(gone, come, name, head - begin, tail - end)
    else:
        found = difflib.unified_diff(gone, come, name, name, lineterm="", n=around)
    for line in found:
        yield _HUNK.sub(lambda match: _moved(match, begin), line) if line[:1] == "@" else line


_HUNK = re.compile(r"@@ -(\d+)(.*) \+(\d+)(.*) @@")


def _moved(hunk: re.Match[str], by: int) -> str:
    return f"@@ -{int(hunk[1]) + by}{hunk[2]} +{int(hunk[3]) + by}{hunk[4]} @@"


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines they begin with are the same."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _as_one(
    gone: Sequence[str], come: Sequence[str], name: str, head: int, tail: int
) -> Iterator[str]:
    yield from (f"--- {name}", f"+++ {name}", f"@@ -1,{len(gone)} +1,{len(come)} @@")
    yield from (f" {line}" for line in gone[:head])
    yield from (f"-{line}" for line in gone[head : len(gone) - tail])
    yield from (f"+{line}" for line in come[head : len(come) - tail])
    yield from (f" {line}" for line in gone[len(gone) - tail :])
