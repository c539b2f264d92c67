"""How lists and numbers look to a person: tables without frames, ages, money, sizes.

Owns the look; what is in a list is the commands'. Into a pipe goes plain text, one line for each
row, for grep and awk; rich is only loaded for a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from rich.table import Table

    from .context import Context

#: Columns that are never broken: what is in them is typed again.
FIRM = frozenset(("name", "id", "state", "status", "session", "age", "cost", "turns"))
#: Narrower than this nothing is cut.
LEAST = 12
GAP = 2

#: Words, or words and rich's style for them.
Cell: TypeAlias = str | tuple[str, str]


class Fit(NamedTuple):
    """How each row of a list gets on one line of a narrow terminal: columns that may be cut, and
    those that go if that does not do, the first of them first."""

    cut: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()


def show_table(
    here: Context,
    heads: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    fit: Fit | None = None,
) -> None:
    """Columns with two spaces between, as `docker ps` and `ps` have them."""
    if sys.stdout.isatty():
        here.console.print(build_table(heads, rows, fit, here.console.width))
        return
    texts = [[_line(cell) for cell in row] for row in rows]
    lines = [[head.upper() for head in heads], *texts]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def build_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    fit: Fit | None = None,
    width: int = 80,
) -> Table:
    """The same for a terminal, in colours."""
    from rich.table import Table
    from rich.text import Text

    pairs = [[(cell, "") if isinstance(cell, str) else cell for cell in row] for row in rows]
    columns = {
        head: [(plain(row[at][0]), row[at][1]) for row in pairs] for at, head in enumerate(heads)
    }
    if fit is not None:
        columns = _fitted(columns, fit, width)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head in columns:
        is_firm = fit is not None or head in FIRM
        table.add_column(head.upper(), no_wrap=is_firm, overflow="ellipsis" if is_firm else "fold")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(Text(words, style) for words, style in row))
    return table


Column: TypeAlias = list[tuple[str, str]]


def _fitted(columns: dict[str, Column], fit: Fit, width: int) -> dict[str, Column]:
    """The columns that have room, with what was cut for that. Each row is one line."""
    whole = {
        head: [(_on_a_line(words, head), style) for words, style in column]
        for head, column in columns.items()
    }
    spare = [head for head in fit.spare if head in whole]
    while True:
        found = dict(whole)
        over = _width_of(found) - width
        # What a name is cut to must still tell it from others, so it is the last.
        for head in (*fit.cut, *([] if spare else [next(iter(found))])):
            if over > 0 and head in found:
                wide = max(_wide(found, head) - over, LEAST)
                over -= _wide(found, head) - wide
                found[head] = [(_cut(words, wide, head), style) for words, style in found[head]]
        if over <= 0 or not spare:
            return found
        del whole[spare.pop(0)]


def _on_a_line(words: str, head: str) -> str:
    line = " ".join(words.split())
    home = str(Path.home())
    is_below = head == "folder" and (line == home or line.startswith(f"{home}/"))
    return f"~{line[len(home) :]}" if is_below and home != "/" else line


def _cut(words: str, width: int, head: str) -> str:
    """Of a path both ends tell something, of all else the beginning."""
    if len(words) <= width:
        return words
    if head != "folder":
        return f"{words[: width - 1]}…"
    end = (width - 1) * 2 // 3
    return f"{words[: width - 1 - end]}…{words[-end:]}"


def _wide(columns: dict[str, Column], head: str) -> int:
    from rich.cells import cell_len

    return max(cell_len(words) for words in (head, *(words for words, _ in columns[head])))


def _width_of(columns: dict[str, Column]) -> int:
    return sum(_wide(columns, head) + GAP for head in columns)


def plain(words: str) -> str:
    """With what a terminal would obey, or what hides text, written out: an agent may have written
    it."""
    if words.isascii() and words.replace("\n", "").isprintable():
        return words
    from ..approvals.shown import visible

    return visible(words)


def _line(cell: Cell) -> str:
    words = cell if isinstance(cell, str) else cell[0]
    return " ".join(plain(words).split())


def age(seconds: float) -> str:
    """`5s`, `12m`, `3h`, `2d`: one unit is enough to a person."""
    seconds = max(seconds, 0)
    for length, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return f"{int(seconds)}s"


def money(dollars: float) -> str:
    return f"${dollars:.2f}" if dollars else "-"


def size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GB"


def short(text: str, width: int = 60) -> str:
    """On one line, and not longer than this."""
    line = " ".join(plain(text).split())
    return line if len(line) <= width else f"{line[: width - 1]}…"
