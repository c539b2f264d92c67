"""How lists and numbers look to a person: tables without frames, ages, money, sizes.

Owns the look; what is in a list is the commands'. Into a pipe goes plain text, one line for each
row, for grep and awk; rich is only loaded for a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.table import Table

    from .context import Context

#: Words, or words and rich's style for them.
Cell: TypeAlias = str | tuple[str, str]


def show_table(here: Context, heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Columns with two spaces between, as `docker ps` and `ps` have them."""
    if sys.stdout.isatty():
        here.console.print(build_table(heads, rows))
        return
    texts = [[_line(cell) for cell in row] for row in rows]
    lines = [[head.upper() for head in heads], *texts]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def build_table(heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Table:
    """The same for a terminal, in colours."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head in heads:
        table.add_column(head.upper(), overflow="fold")
    for row in rows:
        cells = [(cell, "") if isinstance(cell, str) else cell for cell in row]
        table.add_row(*(Text(plain(words), style) for words, style in cells))
    return table


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
