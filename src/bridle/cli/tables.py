"""How lists and numbers look to a person: tables without frames, ages, money, sizes.

Owns the look; what is in a list is the commands'.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text


def plain_table(heads: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    """Columns with two spaces between, as `docker ps` and `ps` have them. Nothing in a cell is
    markup: an agent may have written it."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head in heads:
        table.add_column(head.upper(), overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return table


def age(seconds: float) -> str:
    """`5s`, `12m`, `3h`, `2d`: one unit is enough to a person."""
    seconds = max(seconds, 0)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def money(dollars: float) -> str:
    return f"${dollars:.2f}" if dollars else "-"


def size(count: int) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1024 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count //= 1024
    return ""
