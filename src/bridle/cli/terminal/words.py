"""Texts of others, made fit to be shown: nothing in them moves a cursor, and they have an end.

Owns what is written out and what is left away; colours that a program printed are the one thing
that is dropped without a word. Numbers for people are here too.
"""

from __future__ import annotations

import os
import re
import unicodedata

from ...approvals.shown import visible

#: Colours and weights alone: what a program would look like is not what it said.
_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
#: The letters that choose how a symbol looks, and those that join symbols to one.
_CHOOSERS = re.compile("(.)[\ufe0e\ufe0f]", re.DOTALL)
_JOINERS = re.compile("(.)\u200d(?=(.))", re.DOTALL)
TAB = 4


def seen(text: str) -> str:
    """All of a text, with what can't be seen written out. Lines stay lines; tabs are spaces.

    An emoji is not written out to its last part, as it would be where somebody decides: terminals
    disagree on how wide the whole is, and the parts say the same.
    """
    if not text.isascii():
        text = _CHOOSERS.sub(_without_chooser, text)
        text = _JOINERS.sub(_without_joiner, text)
    return visible(text).expandtabs(TAB)


def _without_chooser(found: re.Match[str]) -> str:
    return found[1] if _is_symbol(found[1]) else found[0]


def _without_joiner(found: re.Match[str]) -> str:
    return found[1] if _is_symbol(found[1]) and _is_symbol(found[2]) else found[0]


def _is_symbol(char: str) -> bool:
    # Skin colours are modifiers (Sk), and keycaps are made of digits.
    return unicodedata.category(char) in ("So", "Sm", "Sk") or char in "#*0123456789©®‼⁉"


def on_one_line(text: str, limit: int = 400) -> str:
    """The same in one line, for what stands in the middle of others."""
    shown = seen(" ".join(text[: 4 * limit].split("\n")).strip())
    return shown if len(shown) <= limit and len(text) <= 4 * limit else f"{shown[:limit]}…"


def printed(text: str) -> str:
    """What a program printed: the same, without its colours."""
    return seen(_COLOURS.sub("", text))


def first_lines(text: str, most: int) -> tuple[list[str], int]:
    """The first lines of a text that is fit to be shown, and how many more there are."""
    lines = text.rstrip("\n").split("\n") if text.strip("\n") else []
    return lines[:most], max(len(lines) - most, 0)


def near(path: str, folder: str) -> str:
    """A path as somebody in this folder would write it."""
    if folder and path.startswith(f"{folder.rstrip('/')}/"):
        return path[len(folder.rstrip("/")) + 1 :]
    home = os.environ.get("HOME", "")
    if home and path.startswith(f"{home}/"):
        return f"~{path[len(home) :]}"
    return path


def count(number: int, what: str, many: str = "") -> str:
    return f"{number} {what if number == 1 else many or f'{what}s'}"


def money(dollars: float) -> str:
    """Cents where there are some; below, as much as tells something."""
    return f"${dollars:.2f}" if dollars >= 1 or dollars == 0 else f"${dollars:.4f}"


def duration(seconds: float, *, coarse: bool = False) -> str:
    """`coarse`: what changes ten times a second can't be read."""
    if seconds < 10 and not coarse:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def amount(number: int) -> str:
    """Of tokens."""
    if number < 1_000:
        return str(number)
    if number < 1_000_000:
        return f"{number / 1_000:.1f}k"
    return f"{number / 1_000_000:.1f}M"
