"""When the heads of streams are anchored, in which order, and what is found on opening.

An anchor is written only of what is on the disk: it never leads the log, so neither `kill -9` nor a
power loss makes it look as if something were missing. It may lag, by a second. A deletion is the
exception: it is announced before it happens.

The database in turn says how far the file of anchors went: a number and a hash, kept after the file
is on the disk. So neither can be cut alone.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from errno import EBUSY
from pathlib import Path

from ...errors import JournalUnwritable
from ..anchors import (
    FILE,
    RESTORED,
    Anchor,
    Anchors,
    Fault,
    Head,
    Kept,
    Kind,
    Line,
    Reading,
    folded,
    misfit,
    other_seal,
)
from ..events import GENESIS
from .anchor_file import AnchorFile
from .failures import FULL
from .readers import first_seal_after, read_all_kept

#: What was stored without waiting for the disk is anchored at the latest after so long.
SECONDS = 1.0
#: When they could not be written, it is tried again after so long.
RETRY_SECONDS = 10.0
#: A file above this, and so many times what is in it when it is new, is written anew.
LARGE = 4 * 1024 * 1024
TIMES = 4
#: How long a line is, about.
LINE = 250

_log = logging.getLogger(__name__)

#: Keep number and hash in the database; whether the disk must have it, with all that came before.
Record = Callable[[int, bytes, bool], None]


class Anchoring:
    """Used by the writer's thread; `state` and `problem` may be looked at from others."""

    def __init__(
        self,
        folder: Path,
        make_room: Callable[[], bool],
        offer: Callable[[list[Line]], None] = lambda _: None,
    ) -> None:
        self._file = AnchorFile(folder)
        self._make_room = make_room
        self._offer = offer
        self.state = Anchors()
        #: Why they can't be written now.
        self.problem = ""
        #: Written, and not yet known to be on the disk.
        self._unoffered: list[Line] = []
        #: What is stored and not anchored yet.
        self._changed: dict[str, Head] = {}
        self._due = 0.0
        #: What was found broken and could not be written: no anchor of these without it.
        self._untold: dict[str, Fault] = {}
        #: How far the file goes; how much of that is on the disk; and what the database says.
        self._written = self._synced = self._recorded = (0, GENESIS)
        self._size_when_new = 0
        self._must_rewrite = False

    # --- on opening

    def open(self, connection: sqlite3.Connection) -> None:
        """Look whether the log has what the anchors say. What it has beyond that is anchored soon:
        a crash came before."""
        reason = self._read_record(connection)
        try:
            reading = self._file.load()
        except OSError as error:
            reading, reason = Reading([]), f"it can't be read: {error.strerror}"
        lines = reading.lines
        reason = reason or _misfit_of_file(lines, *self._recorded)
        if reading.problem and not reason:
            if _is_torn(lines, self._recorded[0]):
                self._file.cut()
            else:
                reason = reading.problem
        if reason:
            lines = lines + reading.behind
        self.state = folded(lines)
        # What the database says stands until there is a new file: it is how the old one is missed.
        end = self._recorded if reason else (self.state.number, self.state.hash)
        self._written = self._synced = end
        self._offer(lines)
        if reason:
            self._begin_again(reason)
        self._size_when_new = LINE * len(self.state.streams)
        try:
            for kept in read_all_kept(connection, self.state.streams):
                self._compare(connection, kept)
        except (TypeError, ValueError) as error:  # the rest can still be used
            reason = f"the heads of the streams can't be read: {error}"
            self.state.fault = self.state.fault or Fault(0, reason, RESTORED)

    def _read_record(self, connection: sqlite3.Connection) -> str:
        """How far the file went, as the database says. What is wrong with that."""
        rows = connection.execute("SELECT number, hash FROM anchor").fetchall()
        match rows:
            case [(int(number), bytes(hash_))]:
                self._recorded = (number, hash_)
                return ""
            case _:
                return "the journal's own record of it was removed or changed"

    def _begin_again(self, reason: str) -> None:
        """The file is not what it was: what it says still counts, in a new one that says so."""
        reason = f"the file of anchors is not what it was: {reason}"
        _log.warning("%s; `bridle audit verify` says more", reason)
        self._file.set_aside()
        if self._recorded[0] > self.state.number:
            self.state.number, self.state.hash = self._recorded
        self.state.fault = self.state.fault or Fault(0, reason, RESTORED)
        self._must_rewrite = True
        self._rewrite()

    def _compare(self, connection: sqlite3.Connection, kept: Kept) -> None:
        name, anchor = kept.info.name, kept.anchor
        head = head_of(kept)
        fault = fault_of(connection, kept)
        if anchor is None or anchor.head != head or anchor.deleting is not None:
            self._note(name, head)
        if fault and not (anchor and anchor.fault):
            self._broken(name, fault)

    def _broken(self, name: str, fault: Fault) -> None:
        known = self.state.streams.get(name)
        _log.warning("stream %s: %s; `bridle audit verify` says more", name, fault.reason)
        # With the head that was anchored: what is there now may not be on the disk yet.
        if not self._write("broken", [(name, known.head if known else Head(), fault)]):
            self._untold[name] = fault

    # --- as writing goes on

    def loaded(self, kept: Kept) -> None:
        """The writer has looked at the stream's head again."""
        anchor = self.state.streams.get(kept.info.name)
        if anchor and not anchor.fault:
            fault = misfit(kept, anchor)
            if fault:
                self._broken(kept.info.name, fault)

    def committed(self, heads: dict[str, Head], on_disk: set[str]) -> None:
        """These are stored; some of them are on the disk, and sealed: they are anchored now."""
        self._changed.update(heads)
        if not self._due and self._changed:
            self._due = time.monotonic() + SECONDS
        if on_disk:
            self._write("anchor", [(name, self._changed.pop(name), None) for name in on_disk])

    def announce(self, name: str, head: Head) -> None:
        """All of the stream is about to be deleted; the disk has this before it happens."""
        self._write("deleting", [(name, head, None)], is_urgent=True)
        self._sync()

    def not_deleted(self, name: str) -> None:
        """What was announced did not happen."""
        known = self.state.streams.get(name)
        if known and known.deleting is not None:
            self._note(name, self._changed.get(name, known.head))

    @property
    def patience(self) -> float | None:
        """How many seconds until `turn` is due; None if there is nothing to do."""
        return max(self._due - time.monotonic(), 0.0) if self._due else None

    @property
    def is_due(self) -> bool:
        return bool(self._due) and time.monotonic() >= self._due

    def postpone(self) -> None:
        if self._due:
            self._due = time.monotonic() + SECONDS

    def turn(self, record: Record) -> None:
        """Anchor all that is stored: first the log, then the lines, then how far they go."""
        self.postpone()
        changed = self._changed
        if changed:
            record(*self._synced, True)
            self._recorded = self._synced
            if self._write("anchor", [(name, head, None) for name, head in changed.items()]):
                self._changed = {}
        if not self._sync():
            return
        if self._recorded != self._synced:
            record(*self._synced, False)
            self._recorded = self._synced
        if self._file.size > max(LARGE, TIMES * self._size_when_new):
            record(*self._synced, True)
            self._rewrite()
            record(*self._synced, False)
            self._recorded = self._synced
        if not self._changed:
            self._due = 0.0

    def failed(self, problem: str) -> None:
        """It is tried again later; the log goes on."""
        if problem != self.problem:
            _log.warning("%s; the log goes on", problem)
        self.problem = problem
        self._due = time.monotonic() + RETRY_SECONDS

    def close(self) -> None:
        self._file.close()

    # --- on purpose

    def accept(
        self, connection: sqlite3.Connection, record: Record, by: str, stream: str | None
    ) -> dict[str, str]:
        """What does not fit counts no more: of a stream, or of all and of the file. Gives what it
        was, by stream."""
        accepted: dict[str, str] = {}
        record(*self._recorded, True)
        for kept in list(read_all_kept(connection, self.state.streams)):
            name = kept.info.name
            fault = (kept.anchor.fault if kept.anchor else None) or fault_of(connection, kept)
            if fault and stream in (None, name):
                self._accept(name, head_of(kept), by)
                self._changed.pop(name, None)
                accepted[name] = fault.reason
        if self.state.fault and stream is None:
            accepted[FILE] = self.state.fault.reason
            self._accept(FILE, None, by)
        self._sync()
        record(*self._synced, True)
        self._recorded = self._synced
        return accepted

    def _accept(self, name: str, head: Head | None, by: str) -> None:
        if not self._write("accepted", [(name, head, None)], by=by):
            raise JournalUnwritable(f"it can't be accepted: {self.problem}")

    def look(self) -> str:
        """What is wrong with the file, or between it and what was written there."""
        number, hash_ = self._written
        try:
            reading = self._file.read()
        except OSError as error:
            return f"the file of anchors can't be read: {error.strerror}"
        reason = reading.problem or _misfit_of_file(reading.lines, number, hash_)
        return f"the file of anchors is not what it was: {reason}" if reason else ""

    def lines(self) -> list[Line]:
        return self._file.read().lines

    # --- writing

    def _note(self, name: str, head: Head) -> None:
        self.committed({name: head}, set())

    def _write(
        self,
        kind: Kind,
        given: list[tuple[str, Head | None, Fault | None]],
        *,
        by: str = "",
        is_urgent: bool = False,
    ) -> bool:
        """Whether it is written. If not, that is told, and the log goes on."""
        if self._must_rewrite:
            self._rewrite()
        before, own_fault = (self.state.number, self.state.hash), self.state.fault
        old = {name: self.state.streams.get(name) for name, _, _ in given}
        lines = [] if self.state.number else [self.state.add("start")]
        for name, head, fault in given:
            if kind == "anchor" and name in self._untold:
                lines.append(self.state.add("broken", name, head, self._untold[name]))
            else:
                lines.append(self.state.add(kind, name, head, fault, by))
        try:
            if self._must_rewrite:
                raise OSError(EBUSY, "it was changed, and can't be replaced")
            self._append(lines, is_urgent=is_urgent)
        except OSError as error:
            self.state.number, self.state.hash = before
            self.state.fault = own_fault
            for name, anchor in old.items():
                self._put_back(name, anchor)
            for name, head, _ in given:
                if kind == "anchor" and head:
                    self._note(name, head)
            self._failed(error)
            return False
        self._written = (self.state.number, self.state.hash)
        for name in old if self._untold and kind != "deleting" else ():
            self._untold.pop(name, None)
        self.problem = ""
        self._unoffered += lines
        return True

    def _append(self, lines: list[Line], *, is_urgent: bool) -> None:
        try:
            self._file.append(lines)
        except OSError as error:
            if not (is_urgent and error.errno in FULL and self._make_room()):
                raise
            self._file.append(lines)

    def _put_back(self, name: str, anchor: Anchor | None) -> None:
        if anchor:
            self.state.streams[name] = anchor
        else:
            self.state.streams.pop(name, None)

    def _sync(self) -> bool:
        try:
            self._file.sync()
        except OSError as error:
            self._failed(error)
            return False
        self._synced = self._written
        # Not before: a copy must not know of numbers that a power loss takes back.
        lines, self._unoffered = self._unoffered, []
        if lines:
            self._offer(lines)
        return True

    def _rewrite(self) -> None:
        before = (self.state.number, self.state.hash)
        lines = self.state.afresh()
        try:
            self._file.replace(lines)
        except OSError as error:
            self.state.number, self.state.hash = before
            self._failed(error)
            return
        self._must_rewrite = False
        self._written = self._synced = (self.state.number, self.state.hash)
        self._size_when_new = self._file.size
        self._unoffered = []
        self._offer(lines)

    def _failed(self, error: OSError) -> None:
        self.failed(f"anchors can't be written: {error.strerror or error} ({self._file.path})")


def head_of(kept: Kept) -> Head:
    mark = kept.tombstone.hash if kept.tombstone else b""
    return Head(kept.info.first_seq, kept.info.last_seq, kept.info.last_seal, mark)


def fault_of(connection: sqlite3.Connection, kept: Kept) -> Fault | None:
    """Whether it goes on from where it was anchored, without reading all of it."""
    anchor, info = kept.anchor, kept.info
    fault = misfit(kept, anchor)
    if fault or not anchor or not info.first_seq - 1 <= anchor.head.last < info.last_seq:
        return fault
    found = first_seal_after(connection, info.name, anchor.head.last)
    seal = found.previous if found else info.last_seal
    return None if seal == anchor.head.seal else other_seal(anchor)


def _misfit_of_file(lines: list[Line], number: int, hash_: bytes) -> str:
    """Whether it has the line that the journal knows of."""
    if not lines:
        return f"it is gone, or empty, and had {number} lines" if number else ""
    first = lines[0]
    known = {first.number - 1: first.previous} | {line.number: line.hash for line in lines}
    if number in known:
        return "" if known[number] == hash_ else f"line number {number} is another one"
    if number > lines[-1].number:
        return f"it ends with number {lines[-1].number}, and went on to {number} at least"
    return f"the journal knows of it up to number {number}, and it begins with {first.number}"


def _is_torn(lines: list[Line], number: int) -> bool:
    """Whether a crash may have left what is behind these lines: not on the disk yet, as far as the
    journal knows."""
    return (lines[-1].number if lines else 0) >= number
