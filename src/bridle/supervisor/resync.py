"""An agent of whose words a part was lost: asked again where it stands, until it has said so.

A full disk tears lines, and old and new CLIs live on. Owns the asking; a healthy session is never
asked, for a hook that waits would fail by it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ..errors import BridleError, ControlFailed, TurnFailed, words_of
from ..protocol.answers import Initialized
from ..protocol.events import LineMalformed
from ..session.commit import Batch
from ..session.session import Session
from ..views.stream import Resynced

FIRST_SECONDS, LAST_SECONDS = 0.2, 10.0

_log = logging.getLogger(__name__)


def is_damage(batch: Batch) -> bool:
    """Whether lines were torn: what begins as one of the CLI's and is none. Other noise is not."""
    return any(isinstance(event, LineMalformed) and is_torn(event.raw) for event in batch)


def is_torn(line: bytes) -> bool:
    """Whether it is what is left of lines that a CLI writes."""
    return b'"type":' in line and (line[:1] == b"{" or b'{"type":' in line)


class Resync:
    """For one session. `told` hears of each that was asked and gave a clean answer."""

    def __init__(self, launch: str, now: Callable[[], float], told: Callable[[Resynced], None]):
        self._launch = launch
        self._now = now
        self._told = told
        self._task: asyncio.Task[None] | None = None
        self._damages = 0

    def damaged(self, session: Session) -> None:
        """A part of what it said is lost."""
        self._damages += 1
        if self._task is None:
            self._task = asyncio.ensure_future(self._ask(session))
            self._task.add_done_callback(self._asked)

    def is_due(self) -> bool:
        return self._task is not None

    def close(self) -> None:
        if self._task:
            self._task.cancel()

    def _asked(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and (error := task.exception()):
            _log.error("it was not asked where it stands: %s", words_of(error))

    async def _ask(self, session: Session) -> None:
        pause = FIRST_SECONDS
        while True:
            damages = self._damages
            answer = await self._answer(session)
            if answer is not None and damages == self._damages:
                self._is_clean(session, answer)
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, LAST_SECONDS)

    async def _answer(self, session: Session) -> Initialized | ControlFailed | None:
        try:
            return await session.initialize()
        except ControlFailed as error:
            return error  # old CLIs: initialised already, with the list of what they have asked
        except BridleError as error:
            if session.is_over:
                raise
            _log.warning("no clean answer yet: %s", words_of(error))
            return None

    def _is_clean(self, session: Session, answer: Initialized | ControlFailed) -> None:
        state = answer.session_state if isinstance(answer, Initialized) else None
        is_idle = None if state is None else state == "idle"
        if is_idle:
            session.book.lose_turn(TurnFailed("the end of the turn was lost: the disk was full"))
        words = "a part of what it said was lost, and it was asked where it stands"
        self._told(Resynced(launch=self._launch, at=self._now(), words=words, is_idle=is_idle))
