"""Markdown in a terminal: left, quiet, and with nothing in it that is not shown.

Owns how rich's renderer is held to that: links tell where they lead, what looks like HTML is text,
and what is too long to be parsed in a moment is shown as it was written.
"""

from __future__ import annotations

from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.syntax import Syntax
from rich.text import Text

#: Above this a text is not parsed: tables of thousands of rows take seconds.
MOST_PARSED = 16_000
#: Above this code is not coloured.
MOST_COLOURED = 6_000
#: The terminal's own colours: they fit its background.
_CODE_THEME = "ansi_dark"


def prose(source: str) -> RenderableType:
    """A text that is fit to be shown (`words.seen`), as what its marks mean."""
    if len(source) > MOST_PARSED:
        return Text(source, overflow="fold")
    try:
        return _Quiet(source)
    except (RecursionError, ValueError, LookupError):
        return Text(source, overflow="fold")


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar = {}


class _Code(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        name = self.lexer_name if len(code) <= MOST_COLOURED else "text"
        colours = Syntax(code, name, theme=_CODE_THEME, background_color="default")
        shown = Text(code, style="cyan") if name == "text" else colours.highlight(code)
        shown.rstrip()
        shown.overflow, shown.no_wrap = "fold", False
        yield from console.render(shown, options.update(no_wrap=False, overflow="fold"))


class _Quiet(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
    }

    def __init__(self, source: str) -> None:
        super().__init__("", code_theme=_CODE_THEME, hyperlinks=False)
        # What looks like a tag is text: `Vec<String>` must not lose its half.
        parser = MarkdownIt("commonmark", {"html": False})
        self.markup = source
        self.parsed = parser.enable("strikethrough").enable("table").parse(source)
