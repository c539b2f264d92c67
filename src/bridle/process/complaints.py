"""What a child writes to stderr: drained always, the end of it kept, lines offered in groups."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

TAIL_SIZE = 64 * 1024
GROUP_SECONDS = 2.0

_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and cursor movements
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles and links
    r"|\x1b[@-Z\\-_]"
)


def without_ansi(text: str) -> str:
    return _ANSI.sub("", text)


class Complaints:
    """Keeps the last 64 KB of a stderr. Lines that come within 2 s are told together."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._tail = bytearray()
        self._untold = bytearray()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def tail(self) -> str:
        return _text(self._tail)

    @property
    def untold(self) -> int:
        """How many bytes were added and not told yet."""
        return len(self._untold)

    def add(self, data: bytes) -> None:
        self._tail = _last(self._tail + data)
        self._untold += data
        if len(self._untold) >= TAIL_SIZE:
            self._tell_lines()
            return
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(GROUP_SECONDS, self._tell_lines)

    def flush(self) -> None:
        """Tell what was not told yet."""
        self._tell_to(len(self._untold))

    def _tell_lines(self) -> None:
        """Whole ones; what has none, and was there the last time, is told as it is."""
        whole = self._untold.rfind(b"\n") + 1
        self._tell_to(whole or len(self._untold))
        if self._untold:
            self.add(b"")

    def _tell_to(self, end: int) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        told, self._untold = self._untold[:end], self._untold[end:]
        text = _text(told)
        if text.strip():
            self._tell(text)


def _last(data: bytearray) -> bytearray:
    return data[-TAIL_SIZE:] if len(data) > TAIL_SIZE else data


def _text(data: bytearray) -> str:
    return without_ansi(data.decode("utf-8", "replace"))
