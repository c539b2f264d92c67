"""The transcript: what happened in a session, for people. Pure.

Owns the fold of a session's events into entries. The fold's state holds only what may still change,
so the entries can be kept and paged elsewhere; `Transcript` keeps them all in memory.
"""

from __future__ import annotations

from . import stream
from .costs import Total
from .doings import done
from .entries import Changes, TranscriptEntry
from .pages import Pages
from .reading import Reading, reading_of
from .speech import said
from .step import Step, TranscriptState


def fold(state: TranscriptState, event: stream.Entry | Reading) -> Changes[TranscriptEntry]:
    """Take in one event: the state is changed in place, and what was added and changed is given.

    In place, because a copy for each event would cost what is open. An event that is in it already
    changes nothing.
    """
    if event.seq <= state.seq:
        return Changes()
    reading = reading_of(event)
    state.seq = reading.seq
    if reading.launch and reading.launch != state.launch:
        # Another process: its totals are its own.
        state.launch, state.total, state.has_erred = reading.launch, Total(), False
    step = Step(state, reading)
    if reading.said is not None:
        said(step, reading.said)
    else:
        done(step)
    return step.changes


class Transcript:
    """A transcript in memory, with all of its entries."""

    def __init__(self) -> None:
        self.state = TranscriptState()
        self._pages: Pages[TranscriptEntry] = Pages()

    def __len__(self) -> int:
        return len(self._pages)

    def add(self, event: stream.Entry | Reading) -> Changes[TranscriptEntry]:
        changes = fold(self.state, event)
        self._pages.take(changes)
        return changes

    def page(
        self, *, after: int | None = None, before: int | None = None, limit: int = 100
    ) -> list[TranscriptEntry]:
        """At most `limit` entries between two positions; without `after`, the last ones."""
        return self._pages.page(after=after, before=before, limit=limit)
