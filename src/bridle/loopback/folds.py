"""What happened in the sessions that agents look at, as far as it was read.

Owns the folds in memory: where each one stands, marks on the way from which one can go on, and the
latest happenings. All of it can be read again from the streams, and is let go when nobody looks.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right, insort
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from ..errors import BlobLost
from ..journal import Event, Journal
from ..supervisor.notes import entry
from ..views.detail import SIZES, Detail, shown, size_of
from ..views.happenings import Happening
from ..views.loopback import LoopbackState, fold
from ..views.stream import Entry

#: So many sessions are kept in mind.
MOST_FOLDS = 200
PAGE = 200
#: A mark after so many events; where there are too many marks, every second one goes.
MARK_EVERY = 500
MOST_MARKS = 400
#: So much of the latest happenings is kept for each.
RECENT_BYTES = 64 * 1024
#: So much of a text is shown, however many others are in the same answer.
LEAST_TEXT = 500
#: A payload up to this size is read whole: of a larger one the head.
MOST_PAYLOAD = 4 * 1024 * 1024


class Room(Struct, frozen=True):
    """How much of an answer there is for one session, in bytes, and for each text of it."""

    all: int
    each: int

    @classmethod
    def of(cls, detail: Detail, sessions: int = 1) -> Room:
        share = SIZES[detail].answer // sessions
        return cls(share, max(share // 2, LEAST_TEXT) if sessions > 1 else share)


class Page(Struct, frozen=True):
    """Happenings, of which the first has the number `start`."""

    start: int
    found: list[Happening]

    @property
    def end(self) -> int:
        return self.start + len(self.found)


class Folds:
    """Of all sessions; the one that nobody asked for the longest goes first."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._held: OrderedDict[str, Fold] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def of(self, session: str) -> Fold:
        held = self._held.get(session)
        if held is None:
            held = self._held[session] = Fold(self._journal, session)
            if len(self._held) > MOST_FOLDS:
                self._held.popitem(last=False)
        self._held.move_to_end(session)
        return held


class Fold:
    """Of one session. `tail` is the state after all that was read."""

    def __init__(self, journal: Journal, session: str) -> None:
        self._journal = journal
        self._session = session
        self.tail = LoopbackState()
        self._marks = [LoopbackState()]
        self._mark_every = MARK_EVERY
        self._recent: deque[tuple[Happening, int]] = deque()
        self._weight = 0
        self._lock = asyncio.Lock()

    async def catch_up(self, seq: int, kept: LoopbackState | None = None) -> None:
        """Read on to this event. One that has read nothing yet begins where another had been."""
        if self.tail.seq >= seq:
            return
        async with self._lock:
            if kept and self.tail.seq == 0:
                self._marks.append(replace(kept))
                self.tail = replace(kept)
            while self.tail.seq < seq:
                events = await self._journal.log.read(self._session, self.tail.seq, PAGE)
                if not events:
                    return
                for event in events[: seq - self.tail.seq]:
                    one = await self._entry(event)
                    self._keep(fold(self.tail, one))
                    self._mark(self.tail)

    async def read(self, start: int, limit: int, detail: Detail, room: Room | None = None) -> Page:
        """At most so many from this one on, and as many as there is room for: at least one."""
        taken = _Taken(limit, detail, room or Room.of(detail))
        before = self.tail.count - len(self._recent)
        if start >= before:
            for happening, _ in islice(self._recent, start - before, None):
                if not taken.takes(happening):
                    break
            return Page(start, taken.found)
        async with aclosing(self._walk(start, self.tail.count)) as walk:
            async for _, _, happening in walk:
                if not taken.takes(happening):
                    break
        return Page(start, taken.found)

    def kept(self, number: int) -> LoopbackState:
        """A state from which one can go on to this number soon."""
        return replace(self.tail if number >= self.tail.count else self._nearest(number))

    async def head_before(self, number: int) -> str | None:
        """The last message of the conversation before this number."""
        async with aclosing(self._walk(number, self.tail.count)) as walk:
            async for state, _, _ in walk:
                return state.head
        return self.tail.head

    async def _walk(
        self, start: int, end: int
    ) -> AsyncGenerator[tuple[LoopbackState, int, Happening], None]:
        """Each happening between the two, with its number and the state before its event."""
        state = replace(self._nearest(start))
        while state.count < end:
            events = await self._journal.log.read(self._session, state.seq, PAGE)
            if not events:
                return
            for event in events:
                before = replace(state)
                found = fold(state, await self._entry(event))
                for number, happening in enumerate(found, before.count):
                    if start <= number < end:
                        yield before, number, happening
                self._mark(state)
                if state.count >= end:
                    return

    async def _entry(self, event: Event) -> Entry:
        """With all of its payload, unless that is huge."""
        one = entry(event)
        if event.blob is None or event.blob.size > MOST_PAYLOAD:
            return one
        try:
            return replace(one, body=await self._journal.payload(event), is_cut=False)
        except BlobLost:
            return one

    # --- what is kept

    def _nearest(self, number: int) -> LoopbackState:
        at = bisect_right(self._marks, number, key=lambda mark: mark.count)
        return self._marks[max(at - 1, 0)]

    def _mark(self, state: LoopbackState) -> None:
        if state.seq - self._nearest(state.count).seq < self._mark_every:
            return
        insort(self._marks, replace(state), key=lambda mark: mark.count)
        if len(self._marks) > MOST_MARKS:
            self._marks = self._marks[::2]
            self._mark_every *= 2

    def _keep(self, found: list[Happening]) -> None:
        for happening in found:
            size = size_of(happening)
            self._recent.append((happening, size))
            self._weight += size
        while self._recent and self._weight > RECENT_BYTES:
            self._weight -= self._recent.popleft()[1]


class _Taken:
    """Takes in happenings as long as there is room: the first one always."""

    def __init__(self, limit: int, detail: Detail, room: Room) -> None:
        self.found: list[Happening] = []
        self._limit = limit
        self._detail: Detail = detail
        self._each = room.each
        self._left = room.all

    def takes(self, happening: Happening) -> bool:
        if len(self.found) >= self._limit:
            return False
        cut = shown(happening, self._detail, self._each)
        size = size_of(cut)
        if self.found and size > self._left:
            return False
        self._left -= size
        self.found.append(cut)
        return True
