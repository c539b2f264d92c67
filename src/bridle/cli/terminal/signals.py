"""Ctrl-C, the window's size, the end: what the terminal and the system tell a program.

Owns which signal means what, and that all is as before afterwards. Ctrl-C once is a wish, twice an
order: within two seconds, or while the first is still being carried out.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from .sitting import STDOUT, Modes, Sitting

if sys.platform != "win32":
    import termios

TWICE_SECONDS = 2.0


class CtrlC:
    """`once` is called for a first Ctrl-C, `twice` for the second. `is_underway` says whether what
    the first one began is still going on."""

    def __init__(
        self,
        once: Callable[[], None],
        twice: Callable[[], None],
        is_underway: Callable[[], bool] = lambda: False,
    ) -> None:
        self._once = once
        self._twice = twice
        self._is_underway = is_underway
        self._at: float | None = None

    def pressed(self) -> None:
        now = asyncio.get_running_loop().time()
        is_soon = self._at is not None and now - self._at <= TWICE_SECONDS
        is_second = self._at is not None and (is_soon or self._is_underway())
        self._at = now
        (self._twice if is_second else self._once)()

    def forget(self) -> None:
        """Something else was done since: the next is a first one again."""
        self._at = None


class Signals:
    """`interrupt` for Ctrl-C, `end` for SIGTERM and for a terminal that is closed."""

    def __init__(
        self, interrupt: Callable[[], None], end: Callable[[signal.Signals], None]
    ) -> None:
        self._handlers: dict[signal.Signals, Callable[[], None]] = {
            signal.SIGINT: interrupt,
            signal.SIGTERM: lambda: end(signal.SIGTERM),
            signal.SIGHUP: lambda: end(signal.SIGHUP),
        }

    def at_terminal(self, sitting: Sitting) -> Self:
        """Where there is one: its window may change, and we may be put aside (Ctrl-Z)."""
        if not sitting.is_live:
            return self
        self._handlers[signal.SIGWINCH] = sitting.screen.refresh

        def suspend() -> None:
            with sitting.screen.aside(), _as_before(STDOUT, sitting.modes):
                sitting.outlet.settle()
                # Not SIGTSTP again: that is what we are called for.
                os.kill(os.getpid(), signal.SIGSTOP)

        self._handlers[signal.SIGTSTP] = suspend
        return self

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for number, handler in self._handlers.items():
            loop.add_signal_handler(number, handler)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in self._handlers:
            loop.remove_signal_handler(number)


@contextmanager
def _as_before(terminal: int, before: Modes) -> Iterator[None]:
    """The terminal as other programs expect it, until the end."""
    now = termios.tcgetattr(terminal)
    termios.tcsetattr(terminal, termios.TCSADRAIN, before)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, now)
