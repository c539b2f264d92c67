"""What follows a transcript shows it: to people, or to programs.

Owns how an entry, a delta and a word of our own reach the outlet. `ticking` keeps what is underway
moving.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Protocol

import msgspec

from ...views.entries import TranscriptEntry
from .look import Block, Lines, Mark, line
from .printer import Printer, unfolded
from .screen import Screen, Sink
from .status import SPINS_PER_SECOND, Underway
from .words import on_one_line


class View(Protocol):
    """Whatever shows a transcript."""

    def take(self, entry: TranscriptEntry) -> None:
        """It is so now."""

    def past(self, entries: Sequence[TranscriptEntry]) -> None:
        """So it was before we looked."""

    def hear(self, delta: bytes) -> None:
        """A piece of a message that is being made."""

    def say(self, words: str, mark: Mark = "note", more: str = "") -> None:
        """A word of our own, with what to do about it."""

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Somebody else has the terminal until the end."""


class PeopleView:
    """Blocks on a screen, and below them what is underway."""

    def __init__(self, screen: Screen, printer: Printer, underway: Underway) -> None:
        self.screen = screen
        self.underway = underway
        self._printer = printer
        screen.region = underway.lines

    def take(self, entry: TranscriptEntry) -> None:
        self.underway.take(entry)
        self.screen.show(self._printer.take(entry))

    def past(self, entries: Sequence[TranscriptEntry]) -> None:
        for entry in unfolded(entries):
            self.take(entry)

    def hear(self, delta: bytes) -> None:
        self.underway.hear(delta)

    def say(self, words: str, mark: Mark = "note", more: str = "") -> None:
        style = _STYLES.get(mark, "dim")
        found = [line((on_one_line(words), style))]
        found += [line((on_one_line(more), "dim"))] if more else []
        self.screen.show([Block(mark=mark, body=Lines(found), has_gap=mark != "note")])
        self._printer.is_told_otherwise()

    @contextmanager
    def aside(self) -> Iterator[None]:
        with self.screen.aside():
            yield


_STYLES: dict[Mark, str] = {"warn": "yellow", "no": "red", "yes": "green", "ask": "yellow"}


class ProgramView:
    """An entry a line, as JSON: again whenever it changes. Words for people go to stderr."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._encode = msgspec.json.Encoder().encode

    def take(self, entry: TranscriptEntry) -> None:
        self._sink.write(f"{self._encode(entry).decode()}\n")

    def past(self, entries: Sequence[TranscriptEntry]) -> None:
        for entry in entries:
            self.take(entry)

    def hear(self, delta: bytes) -> None:
        pass

    def say(self, words: str, mark: Mark = "note", more: str = "") -> None:
        if mark in ("warn", "no", "ask"):
            told = f"{words}; {more}" if more else words
            sys.stderr.write(f"bridle: {on_one_line(told)}\n")

    @contextmanager
    def aside(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def ticking(screen: Screen) -> AsyncIterator[None]:
    """What is underway is drawn again as time goes by."""

    async def tick() -> None:
        while True:
            await asyncio.sleep(1 / SPINS_PER_SECOND)
            screen.refresh()

    task = asyncio.ensure_future(tick())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        screen.close()
