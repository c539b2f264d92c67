"""A terminal whose output scrolls, with a small region at its bottom for what is underway; or no
terminal at all.

Owns what is written where. What is final is printed above the region and stays; the region is drawn
again and again. The cursor rests at the region's beginning: wherever a terminal puts its lines when
its window changes, all below the cursor is ours, and nothing above it ever is.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeAlias

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from ...approvals.shown import visible
from .look import GLYPHS, STYLES, THEME, Block, Lines
from .markdown import prose

#: A window below this is treated as one of this width.
LEAST_WIDTH = 20
#: What a program printed is cut here, where there is no width to cut it at.
MOST_IN_A_LINE = 2_000
_ERASE = "\r\x1b[J"
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
#: To the beginning of the next line, which is there.
_NEXT = "\x1b[E"
#: A line that is too long is cut by the terminal, and not wrapped; and as usual again.
_CUT, _WRAP = "\x1b[?7l", "\x1b[?7h"

#: What is underway, for a window of so many columns and lines.
Region: TypeAlias = Callable[[int, int], Sequence[Text]]


def nothing(_width: int, _height: int) -> Sequence[Text]:
    """Nothing is underway."""
    return ()


class Sink(Protocol):
    """Where text goes."""

    def write(self, text: str, /) -> int: ...


class Screen(Protocol):
    """What is shown goes here, in order. `region` draws what is underway, where there is room."""

    region: Region

    def show(self, blocks: Sequence[Block]) -> None:
        """What is final."""

    def refresh(self) -> None:
        """What is underway has changed."""

    @contextmanager
    def aside(self) -> Iterator[None]:
        """The terminal belongs to somebody else until the end; what comes meanwhile is held."""

    def close(self) -> None:
        """Nothing is underway any more."""


class PlainScreen:
    """Lines, and nothing but what they say."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.region: Region = nothing

    def show(self, blocks: Sequence[Block]) -> None:
        text = "".join(map(_plain, blocks))
        if text:
            self._sink.write(text)

    def refresh(self) -> None:
        pass

    @contextmanager
    def aside(self) -> Iterator[None]:
        yield

    def close(self) -> None:
        pass


class LiveScreen:
    """A terminal. `size` tells how large it is now."""

    def __init__(self, sink: Sink, console: Console, size: Callable[[], tuple[int, int]]) -> None:
        self._sink = sink
        self._console = console
        self._size = size
        self._drawn = ""  # what of the region is on the screen
        self._drawn_at = (0, 0)
        self._held: list[Block] = []
        self._aside = 0  # how many have the terminal just now
        self._is_hidden = False
        self.region: Region = nothing

    def show(self, blocks: Sequence[Block]) -> None:
        if self._aside:
            self._held += blocks
        elif blocks:
            self._write(self._erased() + self._set(blocks) + self._draw())

    def refresh(self) -> None:
        """Cheap where nothing has changed."""
        if self._aside:
            return
        region, size = self._region(), self._size()
        if region != self._drawn or size != self._drawn_at:
            self._write(self._erased() + self._draw(region))

    @contextmanager
    def aside(self) -> Iterator[None]:
        self._write(self._erased() + self._cursor(is_hidden=False))
        self._aside += 1
        try:
            yield
        finally:
            self._aside -= 1
            if not self._aside:
                held, self._held = self._held, []
                self._write(self._set(held) + self._draw())

    def close(self) -> None:
        self._aside = 0
        held, self._held = self._held, []
        self.region = nothing
        self._write(self._erased() + self._set(held) + self._cursor(is_hidden=False))

    # --- writing

    def _write(self, text: str) -> None:
        # At once: a terminal that shows half of it would flicker.
        if text:
            self._sink.write(text)

    def _set(self, blocks: Sequence[Block]) -> str:
        width = max(self._size()[0], LEAST_WIDTH)
        return "".join(self._rendered(_Hung(block), width) for block in blocks)

    def _rendered(self, what: RenderableType, width: int) -> str:
        with self._console.capture() as captured:
            self._console.print(what, width=width, end="", soft_wrap=False)
        return captured.get()

    def _erased(self) -> str:
        erased = _ERASE if self._drawn else ""
        self._drawn = ""
        return erased

    def _draw(self, region: str | None = None) -> str:
        drawn = self._region() if region is None else region
        self._drawn, self._drawn_at = drawn, self._size()
        if not drawn:
            return self._cursor(is_hidden=False)
        below = drawn.count("\n")
        # First room, then the lines, with no line break between them: a terminal may be told of a
        # new size wherever the system splits what we write, and empty lines are never wrapped. Nor
        # are others, while that is switched off: it may be narrower already than we know.
        room = "\n" * below + _up(below)
        lines = drawn.replace("\n", _NEXT)
        return f"{self._cursor(is_hidden=True)}{room}\r{_CUT}{lines}{_WRAP}{_up(below)}\r"

    def _cursor(self, *, is_hidden: bool) -> str:
        if is_hidden is self._is_hidden:
            return ""
        self._is_hidden = is_hidden
        return _HIDE if is_hidden else _SHOW

    def _region(self) -> str:
        width, height = self._size()
        # The last column stays free: some terminals go to the next line once it is written.
        lines = list(self.region(width - 1, height))[-max(height - 1, 1) :]
        return "\n".join(self._line(line, width - 1) for line in lines)

    def _line(self, text: Text, width: int) -> str:
        return self._rendered(_Line(text), max(width, 1)).rstrip("\n")


def _up(lines: int) -> str:
    return f"\x1b[{lines}A" if lines else ""


class _Line:
    """What fits into one line."""

    def __init__(self, text: Text) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        fitting = options.update(no_wrap=True, overflow="ellipsis", height=1)
        found = console.render_lines(self._text, fitting, pad=False)
        yield from map(_guarded, found[0] if found else ())


class _Hung:
    """A block with its mark before its first line."""

    def __init__(self, block: Block) -> None:
        self._block = block

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        block = self._block
        if block.has_gap:
            yield Segment.line()
        indent = " " * _indent(block)
        glyph = GLYPHS[block.mark]
        room = max(options.max_width - len(indent) - 2, LEAST_WIDTH // 2)
        inside = options.update(width=room, height=None)
        mark = Segment(f"{glyph:<2}", console.get_style(block.style or STYLES[block.mark]))
        rendered = map(_trimmed, console.render_lines(_body(block), inside, pad=False))
        for number, found in enumerate(_calm(rendered)):
            if found or number == 0:
                yield Segment(indent)
                yield mark if number == 0 else Segment("  ")
            yield from map(_guarded, found)
            yield Segment.line()


def _body(block: Block) -> RenderableType:
    if not isinstance(block.body, Lines):
        return prose(block.body.source)
    found = Text("\n").join(block.body.lines)
    if block.body.is_cut:
        found.no_wrap, found.overflow = True, "ellipsis"
    else:
        found.overflow = "fold"
    return found


def _indent(block: Block) -> int:
    return 2 * block.depth + (2 if block.is_under else 0)


def _guarded(segment: Segment) -> Segment:
    """Whatever a renderer let through: only we write what moves the cursor."""
    if segment.control:
        return Segment("")
    style = segment.style.update_link(None) if segment.style else Style.null()
    return Segment(visible(segment.text), style)


def _trimmed(found: list[Segment]) -> list[Segment]:
    """Without spaces at its end: they would be copied, and wrapped when the window changes."""
    kept = list(found)
    while kept and not kept[-1].text.strip() and not (kept[-1].style and kept[-1].style.bgcolor):
        kept.pop()
    if kept and kept[-1].text != kept[-1].text.rstrip():
        kept[-1] = Segment(kept[-1].text.rstrip(), kept[-1].style)
    return kept


def _calm(rendered: Iterable[list[Segment]]) -> Iterator[list[Segment]]:
    """Never more than one empty line, and none at the ends."""
    has_begun, is_due = False, False
    for found in rendered:
        if not found:
            is_due = has_begun
            continue
        if is_due:
            yield []
        yield found
        has_begun, is_due = True, False


def _plain(block: Block) -> str:
    if isinstance(block.body, Lines):
        texts = [_short(text.plain) for text in block.body.lines]
    else:
        texts = block.body.source.split("\n")
    glyph, indent = GLYPHS[block.mark], " " * _indent(block)
    heads = [f"{indent}{glyph:<2}", *([f"{indent}  "] * (len(texts) - 1))]
    found = [f"{head}{visible(text)}" for head, text in zip(heads, texts, strict=False)]
    gap = "\n" if block.has_gap else ""
    return gap + "".join(f"{line.rstrip()}\n" for line in found)


def _short(text: str) -> str:
    return text if len(text) <= MOST_IN_A_LINE else f"{text[:MOST_IN_A_LINE]}…"


# --- the terminal itself


def console_for_terminal() -> Console:
    """What a terminal can show: colours as the environment says, none with NO_COLOR."""
    return Console(
        file=io.StringIO(),  # all is captured, and written by us
        force_terminal=True,
        theme=THEME,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )


def size_of(fd: int) -> tuple[int, int]:
    """Columns and lines, as they are now."""
    try:
        size = os.get_terminal_size(fd)
    except OSError:
        return 80, 24
    return size.columns or 80, size.lines or 24
