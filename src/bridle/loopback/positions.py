"""How far each agent has read what happens in a session below it: kept, so that it goes on there.

Owns the documents, one for each session. A poll that is asked again gives the same as before,
because what each of the latest ones gave is kept with the position.
"""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

from msgspec import Struct

from ..journal import Bucket, Journal
from ..supervisor.sessions import POSITIONS
from ..views.loopback import VERSION, LoopbackState

#: So many of the latest polls of one agent are kept.
MOST_SPANS = 8


class Span(Struct, frozen=True):
    """What one poll gave: from the one number up to, and without, the other."""

    key: str
    start: int
    end: int


class Position(Struct, frozen=True, omit_defaults=True):
    """Where one agent is: the number of the next happening, and a state to go on from."""

    read: int = 0
    spans: tuple[Span, ...] = ()
    version: int = VERSION
    state: LoopbackState | None = None

    @property
    def kept(self) -> LoopbackState | None:
        return self.state if self.version == VERSION else None

    def given(self, key: str) -> Span | None:
        """What the poll with this key gave, if it is one of the latest."""
        return next((span for span in self.spans if span.key == key), None)


class Readers(Struct, frozen=True):
    """The positions in one session, by the session of who reads."""

    by: dict[str, Position] = {}


class Positions:
    """Of all agents in all sessions."""

    def __init__(self, journal: Journal) -> None:
        self._bucket: Bucket[Readers] = journal.bucket(POSITIONS, Readers)
        #: Many polls of one session may end at once: each waits for its turn to write.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def get(self, session: str, caller: str) -> Position:
        found = await self._bucket.get(session)
        return found.value.by.get(caller, Position()) if found else Position()

    async def advance(self, session: str, caller: str, span: Span, state: LoopbackState) -> None:
        """It was given these. Two polls at a time may have been given the same."""

        def moved(readers: Readers | None) -> Readers:
            by = readers.by if readers else {}
            before = by.get(caller, Position())
            spans = (*before.spans[-MOST_SPANS + 1 :], span)
            is_further = span.end >= before.read
            new = Position(
                read=max(before.read, span.end),
                spans=spans,
                state=state if is_further else before.kept,
            )
            return Readers({**by, caller: new})

        lock = self._locks.setdefault(session, asyncio.Lock())
        async with lock:
            await self._bucket.change(session, moved)
