"""Somebody sits at a terminal, or nobody does: what they can be shown, and whether they are asked.

Owns what is found out about the three streams of this process, once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias

from msgspec import Struct

from ...approvals.keyboard import Keyboard
from .outlet import Outlet
from .printer import Printer
from .rendering import Look
from .screen import LiveScreen, PlainScreen, Screen, console_for_terminal, size_of
from .status import Underway
from .view import PeopleView, ProgramView, View, ticking

if sys.platform != "win32":
    import termios

STDIN, STDOUT, STDERR = 0, 1, 2


class Asked(Struct):
    """Keys come from `keys`, questions go to `screen`."""

    keys: int
    screen: Outlet


#: How a terminal is set: what `termios` gives and takes.
Modes: TypeAlias = list[Any]


class Sitting(Struct):
    """What one command has of its terminal. `asked` is None where nobody can be asked."""

    outlet: Outlet
    view: View
    screen: Screen
    underway: Underway
    asked: Asked | None = None
    #: As the terminal was set before.
    modes: Modes = []

    @property
    def is_live(self) -> bool:
        """Whether what is underway can be seen."""
        return isinstance(self.screen, LiveScreen)


def can_ask() -> bool:
    """Whether somebody sits there who sees a question and has keys to answer it."""
    return os.isatty(STDIN) and (os.isatty(STDOUT) or os.isatty(STDERR))


@asynccontextmanager
async def sit_down(
    look: Look, *, is_json: bool = False, has_keys: bool = True
) -> AsyncIterator[Sitting]:
    """The terminal of this process, until the end; then it is as it was. `has_keys`: whoever sits
    there can do something by them."""
    modes = termios.tcgetattr(STDOUT) if os.isatty(STDOUT) else []
    async with AsyncExitStack() as stack:
        outlet = await stack.enter_async_context(Outlet(STDOUT))
        screen = _screen(outlet, is_json=is_json)
        await stack.enter_async_context(ticking(screen))
        underway = Underway(look.folder)
        view: View = ProgramView(outlet) if is_json else PeopleView(screen, Printer(look), underway)
        asked = None
        if can_ask() and has_keys:
            # From the first: a key that is pressed early is not shown, nor lost.
            stack.enter_context(Keyboard(STDIN).taken())
            # Where the output goes to a file or a program, whoever is asked reads stderr.
            is_shared = os.isatty(STDOUT) and not is_json
            to = outlet if is_shared else await stack.enter_async_context(Outlet(STDERR))
            asked = Asked(STDIN, to)
        yield Sitting(outlet, view, screen, underway, asked, modes)


def _screen(outlet: Outlet, *, is_json: bool) -> Screen:
    is_dumb = os.environ.get("TERM", "dumb") in ("dumb", "unknown")
    if is_json or is_dumb or not os.isatty(STDOUT):
        return PlainScreen(outlet)
    return LiveScreen(outlet, console_for_terminal(), lambda: size_of(STDOUT))


def read_prompt(given: str | None) -> str | None:
    """What was given; `-` is what stdin has, and so is nothing where stdin is no terminal."""
    if given == "-" or (given is None and not os.isatty(STDIN)):
        return sys.stdin.read()
    return given
