"""The keyboard of a terminal: questions first, and between them the next prompt.

Owns whom a key is for. What is asked is `approvals.terminal`'s, the line that is typed is
`prompting`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rich.text import Text

from ...approvals import Person, Terminal
from ...approvals.asking import SCOPES, Scope
from ...approvals.keyboard import Keyboard
from ...approvals.terminal import Docket
from .prompting import LEAVE_PASTES, MARK_PASTES, PromptLine, PutOff
from .sitting import Asked, Sitting


class Typist:
    """Whoever sits there. With `send`, they can type prompts; `leave` is called when they go."""

    def __init__(
        self,
        sitting: Sitting,
        send: Callable[[str], None] | None = None,
        leave: Callable[[], None] = lambda: None,
    ) -> None:
        self._sitting = sitting
        self._send = send
        self._leave = leave
        self._line = PromptLine(self._draw_soon)
        self._is_due = False
        if send:
            sitting.screen.region = self._region

    def _draw_soon(self) -> None:
        """Once for all keys that came together: what is pasted has thousands."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._draw)

    def _draw(self) -> None:
        self._is_due = False
        self._sitting.screen.refresh()

    def _region(self, width: int, height: int) -> list[Text]:
        return [*self._sitting.underway.lines(width, height - 1), self._line.shown(width)]

    async def attend(
        self, asked: Asked, docket: Docket, me: Person, scopes: tuple[Scope, ...] = SCOPES
    ) -> None:
        """Until they go, or there is nothing that they could be asked about."""
        if self._send:
            asked.screen.write(MARK_PASTES)
        try:
            await Terminal(
                docket,
                me,
                keys=asked.keys,
                screen=asked.screen,
                scopes=scopes,
                aside=self._sitting.view.aside,
                idle=self._idle,
            ).attend()
        finally:
            if self._send:
                asked.screen.write(LEAVE_PASTES)

    async def _idle(self, keyboard: Keyboard, later: int) -> None:
        key = "Tab" if self._send else "any key"
        self._sitting.underway.hint = f"{later} put off: {key} shows it" if later else ""
        if self._send:
            await self._type(keyboard, self._send, later)
        elif later:
            if await keyboard.key() in ("", "\x04"):
                raise EOFError
        else:
            await asyncio.Event().wait()

    async def _type(self, keyboard: Keyboard, send: Callable[[str], None], later: int) -> None:
        while True:
            try:
                send(await self._line.read(keyboard))
            except PutOff:
                if later:
                    return
            except EOFError:
                self._leave()
                await asyncio.Event().wait()
