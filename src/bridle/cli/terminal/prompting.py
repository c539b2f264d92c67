"""The line in which somebody types the next prompt, while the agent works above it.

Owns its text and its keys; where it is drawn is the screen's. Reading may be given up at any moment
(a question comes first), and what was typed so far stays. What is pasted is not sent line by line.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.cells import cell_len
from rich.text import Text

from ...approvals.keyboard import Keyboard
from .words import seen

#: Tells the terminal to mark what is pasted; and no longer.
MARK_PASTES, LEAVE_PASTES = "\x1b[?2004h", "\x1b[?2004l"
_PASTE, _PASTED = "[200~", "[201~"


class PutOff(Exception):
    """Somebody wants to see again what they had put off."""


class PromptLine:
    """`changed` is called whenever it is to be drawn again."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._text = ""
        self._at = 0
        self._past: list[str] = []
        self._back = 0  # how far up in the past we are
        self._is_pasting = False

    async def read(self, keyboard: Keyboard) -> str:
        """What was typed, once it is sent. EOFError at the end of the input, or if that is typed
        in an empty line; PutOff for a Tab."""
        while True:
            key = await keyboard.key()
            if key == "" or (key == "\x04" and not self._text):
                raise EOFError
            if key == "\t" and not self._is_pasting:
                raise PutOff
            if key in "\r\n" and not self._is_pasting:
                if self._text.strip():
                    return self._sent()
            elif key == "\x1b":
                self._escaped(await _sequence(keyboard))
            else:
                self._typed(key)
            self._changed()

    def shown(self, width: int) -> Text:
        """The part around the cursor that fits; the cursor is a cell that stands out."""
        before = seen(self._text[: self._at]).replace("\n", "⏎")
        after = seen(self._text[self._at :]).replace("\n", "⏎")
        room = max(width - 4, 8)
        while cell_len(before) > room:
            before = before[1:]
        under, rest = after[:1] or " ", after[1:]
        return Text.assemble(("> ", "bold cyan"), before, (under, "reverse"), rest)

    # --- keys

    def _sent(self) -> str:
        text, self._text, self._at, self._back = self._text, "", 0, 0
        self._past.append(text)
        self._changed()
        return text.strip()

    def _typed(self, key: str) -> None:
        match key:
            case "\x7f" | "\b":
                self._cut(max(self._at - 1, 0), self._at)
            case "\x01":
                self._at = 0
            case "\x05":
                self._at = len(self._text)
            case "\x0b":
                self._cut(self._at, len(self._text))
            case "\x15":
                self._cut(0, self._at)
            case "\x17":
                kept = self._text[: self._at].rstrip().rpartition(" ")
                self._cut(len(kept[0] + kept[1]), self._at)
            case _ if key.isprintable() or self._is_pasting:
                key = "\n" if key == "\r" else key
                self._text = self._text[: self._at] + key + self._text[self._at :]
                self._at += len(key)

    def _escaped(self, sequence: str) -> None:
        match sequence:
            case "[D" | "OD":
                self._at = max(self._at - 1, 0)
            case "[C" | "OC":
                self._at = min(self._at + 1, len(self._text))
            case "[H" | "OH" | "[1~":
                self._at = 0
            case "[F" | "OF" | "[4~":
                self._at = len(self._text)
            case "[3~":
                self._cut(self._at, self._at + 1)
            case "[A" | "OA":
                self._recall(self._back + 1)
            case "[B" | "OB":
                self._recall(self._back - 1)
            case _ if sequence in (_PASTE, _PASTED):
                self._is_pasting = sequence == _PASTE

    def _cut(self, start: int, end: int) -> None:
        self._text = self._text[:start] + self._text[end:]
        self._at = start

    def _recall(self, back: int) -> None:
        if 0 <= back <= len(self._past):
            self._back = back
            self._text = self._past[-back] if back else ""
            self._at = len(self._text)


async def _sequence(keyboard: Keyboard) -> str:
    """What follows an escape: `[A`, `[200~`; "" where it is none that we know."""
    kind = await keyboard.key()
    if kind not in ("[", "O"):
        return ""
    text = kind
    while len(text) < 16:
        key = await keyboard.key()
        text += key
        if not key or "@" <= key <= "~":
            break
    return text
