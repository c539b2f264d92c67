"""How things look: marks and colours, and what a block of output is made of.

Owns the few words that renderers and screens share. A renderer makes blocks and knows nothing of
terminals; a screen sets them: wrapped and coloured where there is a terminal, as lines where not.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct
from rich.text import Text
from rich.theme import Theme

#: What stands at the head of a block, by what it is.
Mark: TypeAlias = Literal[
    "prompt", "text", "call", "result", "yes", "no", "ask", "warn", "note", "thinking", "none"
]

GLYPHS: dict[Mark, str] = {
    "prompt": ">",
    "text": "●",
    "call": "●",
    "result": "└",
    "yes": "✓",
    "no": "✗",
    "ask": "?",
    "warn": "!",
    "note": "·",
    "thinking": "∴",
    "none": "",
}
STYLES: dict[Mark, str] = {
    "prompt": "bold cyan",
    "text": "bold",
    "call": "green",
    "result": "dim",
    "yes": "green",
    "no": "red",
    "ask": "yellow",
    "warn": "yellow",
    "note": "dim",
    "thinking": "dim",
    "none": "",
}
#: Markdown as it is written in a terminal: weights rather than boxes and backgrounds.
THEME = Theme(
    {
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.h4": "bold",
        "markdown.code": "cyan",
        "markdown.block_quote": "dim",
        "markdown.item.bullet": "dim",
        "markdown.item.number": "dim",
        "markdown.hr": "dim",
        "markdown.link": "underline",
        "markdown.link_url": "dim",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    },
)
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Prose(Struct, frozen=True):
    """Markdown, fit to be shown."""

    source: str


class Lines(Struct, frozen=True):
    """Lines that stay lines. `is_cut`: what does not fit into the width is left away, not wrapped;
    that is for what programs print."""

    lines: list[Text]
    is_cut: bool = False


class Block(Struct, frozen=True, kw_only=True):
    """One thing that is shown. `depth` is how far inside of subagents it is.

    `is_under`: it belongs to what stands above it. `has_gap`: a line is left free before it.
    """

    mark: Mark
    body: Prose | Lines
    depth: int = 0
    is_under: bool = False
    has_gap: bool = True
    #: In place of the mark's own.
    style: str = ""


def line(*parts: str | tuple[str, str]) -> Text:
    """A line of texts that are fit to be shown, each perhaps with a style."""
    return Text.assemble(*parts, overflow="fold")


def lines(*texts: Text, is_cut: bool = False) -> Lines:
    return Lines(list(texts), is_cut)
