"""Records that are derived from a stream, each stamped with the number that it reflects.

A projection is never a commit point: the stream is. One that lags behind, because a crash came
between the two or because nobody looked, is brought up to date when it is asked for, and one that
was made by another version of its fold is made again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from ..errors import InvalidEntry, JournalUnwritable, WrongRevision
from .contract import EventLog, Records
from .events import Event, Record

T = TypeVar("T")

PAGE = 500

_log = logging.getLogger(__name__)


class Stamped(Struct, Generic[T], frozen=True):
    """A state, the number of the last event that is in it, and the version of the fold."""

    version: int
    seq: int
    state: T


class Projection(Generic[T]):
    """The fold of a stream's events, kept as a record that has the stream's name.

    `start` gives the state before the first event, `fold` the state after one more: a new one, not
    the old one changed. Raise `version` when the fold or the type changes. Of a large payload the
    fold sees the head.
    """

    def __init__(
        self,
        log: EventLog,
        records: Records,
        name: str,
        kind: type[T],
        *,
        start: Callable[[str], T],
        fold: Callable[[T, Event], T],
        version: int = 1,
    ) -> None:
        self._log = log
        self._records = records
        self._decode = msgspec.json.Decoder(Stamped[kind]).decode  # type: ignore[valid-type]
        self._start = start
        self._fold = fold
        self._version = version
        self.name = name

    async def get(self, stream: str) -> Stamped[T]:
        """The state of all that is stored. What was missing in the record is added to it."""
        record = await self._records.get(self.name, stream)
        kept = self._usable(record, (await self._log.info(stream)).last_seq)
        stamped = await self._caught_up(stream, kept)
        if stamped.seq and stamped != kept:
            # If somebody else was faster, theirs is as good.
            await self._keep(stream, stamped, record.revision if record else 0)
        return stamped

    async def rebuild(self, stream: str) -> Stamped[T]:
        """The state made again from the stream's first event, whatever the record says."""
        stamped = await self._caught_up(stream, None)
        while True:  # until it is ours that is kept, and not what was made from what was there
            record = await self._records.get(self.name, stream)
            stamped = await self._caught_up(stream, stamped)
            if await self._keep(stream, stamped, record.revision if record else 0):
                return stamped

    async def _caught_up(self, stream: str, kept: Stamped[T] | None) -> Stamped[T]:
        seq, state = (kept.seq, kept.state) if kept else (0, self._start(stream))
        while events := await self._log.read(stream, seq, PAGE):
            for event in events:
                state = self._fold(state, event)
            seq = events[-1].seq
        return Stamped(self._version, seq, state)

    async def _keep(self, stream: str, stamped: Stamped[T], revision: int) -> bool:
        """False if the record has changed meanwhile."""
        try:
            await self._records.put(self.name, stream, msgspec.json.encode(stamped), revision)
        except WrongRevision:
            return False
        except (JournalUnwritable, InvalidEntry) as error:
            # The answer is right all the same; the next one will take as long as this one.
            _log.warning("the projection %s of %s can't be kept: %s", self.name, stream, error)
        return True

    def _usable(self, record: Record | None, last_seq: int) -> Stamped[T] | None:
        """Not one of another version, and not one of a stream that has been set back."""
        if record is None:
            return None
        try:
            stamped: Stamped[T] = self._decode(record.value)
        except msgspec.MsgspecError:
            return None
        is_ours = stamped.version == self._version and 0 <= stamped.seq <= last_seq
        return stamped if is_ours else None
