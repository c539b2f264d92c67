"""All who follow anything: their heartbeats, those of them who are stuck, and their end.

Owns one timer for all of them. A listener whose connection takes nothing more is dropped: what was
not sent is in the log, and it may resume from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator

from ...journal.bell import Bell
from ...supervisor import SessionRecord
from ..access import Caller
from .frames import block

#: The last words of a stream: the server ends and there will be another, to resume at; or what was
#: followed is not there any more (for the one who follows), and to resume makes no sense.
BYE = block(b"bye", b"{}")
GONE = block(b"gone", b"{}")

#: When the server ends, one that is stuck is not waited for longer than this.
CLOSING_SECONDS = 2.0
#: How often a timer looks, as a part of the shortest time that it looks for.
LOOKS = 10


class Listener:
    """One connection. `session` is what it follows; "" is everything."""

    def __init__(self, caller: Caller, session: str, drop: Callable[[], None]) -> None:
        self.caller = caller
        self.session = session
        self.bell = Bell()
        #: What is said last, once it is to end.
        self.ending: bytes | None = None
        #: Whether a sign of life is due.
        self.is_due = False
        self.sent_at = 0.0
        #: Since when something is being sent, if it is.
        self.sending_since: float | None = None
        self.drop = drop

    def end(self, words: bytes) -> None:
        self.ending = self.ending or words
        self.bell.ring()


#: Says which tokens hold, by their ids; who came with another one may not listen any more.
Tokens = Callable[[], Collection[str]]


class Audience:
    """`tick` is called on each look, and says whether there is anything more to look at."""

    def __init__(
        self, heartbeat: float, stalled: float, tokens: Tokens, tick: Callable[[], bool]
    ) -> None:
        self._heartbeat = heartbeat
        self._stalled = stalled
        self._tokens = tokens
        self._tick = tick
        self._loop = asyncio.get_running_loop()
        self._listeners: dict[Listener, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closing: bytes | None = None
        #: How many were dropped because they took nothing more.
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._listeners)

    def __iter__(self) -> Iterator[Listener]:
        return iter(list(self._listeners))

    def add(self, listener: Listener) -> None:
        listener.sent_at = self._loop.time()
        listener.ending = self._closing
        self._listeners[listener] = None
        self.watch()

    def remove(self, listener: Listener) -> None:
        self._listeners.pop(listener, None)

    def gone(self, session: str) -> None:
        """The session was deleted."""
        for listener in self:
            if listener.session == session:
                listener.end(GONE)

    def changed(self, record: SessionRecord) -> None:
        """It may have been handed over, to where an agent does not see it any more."""
        for listener in self:
            if listener.session == record.id and not listener.caller.sees(record):
                listener.end(GONE)

    def close(self) -> None:
        """Everybody is told to come again."""
        self._closing = BYE
        self._stalled = min(self._stalled, CLOSING_SECONDS)
        for listener in self:
            listener.end(BYE)
        if self._listeners:
            self.stop()
            self.watch()

    def stop(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def watch(self) -> None:
        """Look at them from now on, and at what `tick` looks at."""
        if self._timer is None:
            wait = min(self._heartbeat, self._stalled) / LOOKS
            self._timer = self._loop.call_later(wait, self._look)

    def _look(self) -> None:
        self._timer = None
        now, tokens = self._loop.time(), self._tokens()
        for listener in self:
            if listener.caller.token and listener.caller.token not in tokens:
                listener.end(GONE)
            since = listener.sending_since
            if since is None:
                if now - listener.sent_at >= self._heartbeat:
                    listener.is_due = True
                    listener.bell.ring()
            elif now - since >= self._stalled:
                self.dropped += 1
                listener.drop()
        if self._tick() or self._listeners:
            self.watch()
