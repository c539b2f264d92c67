"""So much of a terminal as our output needs: a grid that scrolls, a cursor, and a window that can
be made narrower, with or without the lines being wrapped anew.

Whatever it does not know is an error: nothing but what we mean may reach a terminal.
"""

from __future__ import annotations

import re
import unicodedata

_TOKENS = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b(.)|([\r\n\b\x07])|([^\x1b\r\n\b\x07]+)")
#: Whether lines are wrapped; the cursor; the marks around what is pasted.
_MODES = ("?7", "?25", "?2004")


def width_of(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class Row:
    """`is_soft`: the next row goes on with it."""

    def __init__(self) -> None:
        self.cells: list[str] = []
        self.is_soft = False

    @property
    def text(self) -> str:
        return "".join(self.cells).rstrip()


class Emulator:
    def __init__(self, columns: int, lines: int, *, reflows: bool = True) -> None:
        self.columns, self.lines = columns, lines
        self.reflows = reflows
        self.rows = [Row()]
        self.top = 0
        self.row = self.column = 0
        self.is_cursor_shown = True
        self.wraps = True
        self._rest = ""

    # --- what can be seen

    @property
    def text(self) -> str:
        """All of it, with what has scrolled away."""
        return "\n".join(row.text for row in self.rows).rstrip("\n")

    @property
    def screen(self) -> str:
        return "\n".join(row.text for row in self.rows[self.top : self.top + self.lines])

    # --- what is written

    def feed(self, text: str) -> None:
        text = self._rest + text
        # A sequence that is not all there yet.
        half = re.search(r"\x1b(\[[?0-9;]*)?$", text)
        self._rest = half[0] if half else ""
        text = text[: len(text) - len(self._rest)]
        at = 0
        while at < len(text):
            found = _TOKENS.match(text, at)
            assert found, f"what is this? {text[at : at + 20]!r}"
            at = found.end()
            self._take(found)

    def _take(self, found: re.Match[str]) -> None:
        parameters, final, escaped, control, plain = found.groups()
        assert escaped is None, f"an escape that we do not write: {found[0]!r}"
        if final:
            self._command(parameters, final)
        elif control:
            self._control(control)
        elif plain:
            for char in plain:
                is_space = unicodedata.category(char) == "Zs"
                assert char.isprintable() or is_space, f"a control character: {char!r}"
                self._put(char)

    def _command(self, parameters: str, final: str) -> None:
        number = int(parameters) if parameters.isdecimal() else 1
        match final:
            case "A":
                self.row = max(self.row - number, self.top)
            case "E":
                self.row = min(self.row + number, len(self.rows) - 1, self.top + self.lines - 1)
                self.column = 0
            case "J" if parameters in ("", "0"):
                self._erase()
            case "h" | "l" if parameters in _MODES:
                if parameters == "?25":
                    self.is_cursor_shown = final == "h"
                elif parameters == "?7":
                    self.wraps = final == "h"
            case _:
                assert final == "m", f"a command that we do not write: {parameters}{final}"

    def _erase(self) -> None:
        del self.rows[self.row + 1 :]
        del self.rows[self.row].cells[self.column :]
        self.rows[self.row].is_soft = False

    def _control(self, control: str) -> None:
        match control:
            case "\r":
                self.column = 0
            case "\n":
                self.rows[self.row].is_soft = False
                self._down()
            case "\b":
                self.column = max(self.column - 1, 0)
            case _:
                raise AssertionError("a bell")

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append(Row())
        self.top = max(self.top, self.row - self.lines + 1)

    def _put(self, char: str) -> None:
        width = width_of(char)
        if not width:
            return  # it joins the letter before it
        if self.column + width > self.columns and not self.wraps:
            self.column = self.columns - width  # what is there is overwritten
            del self.rows[self.row].cells[self.column :]
        if self.column + width > self.columns:
            self.rows[self.row].is_soft = True
            self._down()
            self.column = 0
        cells = self.rows[self.row].cells
        cells.extend(" " * (self.column + width - len(cells)))
        cells[self.column] = char
        if width == 2:
            cells[self.column + 1] = ""
        self.column += width

    # --- what its user does

    def resize(self, columns: int, lines: int) -> None:
        if self.reflows:
            self._reflow(columns)
        else:
            for row in self.rows[self.top :]:
                del row.cells[columns:]
        self.columns, self.lines = columns, lines
        self.column = min(self.column, columns - 1)
        self.top = max(min(self.top, self.row), self.row - lines + 1, len(self.rows) - lines, 0)
        self.top = min(self.top, self.row)

    def _reflow(self, columns: int) -> None:
        """Each line is wrapped anew; the cursor stays on its cell."""
        rows: list[Row] = []
        cursor = (0, 0)
        line: list[str] = []
        at: int | None = None
        for number, row in enumerate(self.rows):
            if number == self.row:
                at = len(line) + self.column
            line += row.cells
            if row.is_soft:
                continue
            pieces = [line[n : n + columns] for n in range(0, max(len(line), 1), columns)]
            if at is not None:
                cursor = (len(rows) + min(at // columns, len(pieces) - 1), at % columns)
                at = None
            for piece in pieces:
                made = Row()
                made.cells, made.is_soft = piece, True
                rows.append(made)
            rows[-1].is_soft = False
            line = []
        self.rows, (self.row, self.column) = rows or [Row()], cursor
