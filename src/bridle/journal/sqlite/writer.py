"""The writer's thread: gathers what is waiting into one transaction, and tells the loop once.

It alone writes the database and moves the log into it ("checkpoint"). Beside being simple, that is
what keeps SQLite before 3.51.3 from a rare corruption: another connection that checkpoints while
one commits. It checkpoints when nothing is waiting, if it can.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import sqlite3
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Thread

from ...errors import (
    DiskFull,
    InvalidEntry,
    JournalError,
    JournalUnusable,
    JournalUnwritable,
    words_of,
)
from ..events import MAX_BATCH_BYTES, Durability
from ..store import Write
from .anchoring import Anchoring
from .failures import disk_full, from_sqlite
from .ledger import Job, Ledger
from .space import Space

#: A group is bounded, so that none in it waits long, and so that the loop tells who waited for one
#: while the next is written. A batch may be as large as a group.
MAX_GROUP_BYTES = MAX_BATCH_BYTES
MAX_GROUP_WRITES = 64
#: What a group takes in the log beside the payloads, about: whole pages.
GROUP = 12 * 1024
PAGE = 4096
CHECKPOINT_WHEN_IDLE = 1 * 1024 * 1024
#: Less than the ballast: on a full disk the log must still fit into the file.
CHECKPOINT_ALWAYS = 4 * 1024 * 1024
IDLE_SECONDS = 0.25

_log = logging.getLogger(__name__)


class Writer:
    """Owns the connection that writes, from `start` to `stop`."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, space: Space, anchoring: Anchoring
    ) -> None:
        self._connection = connection
        self._path = path
        self._space = space
        self._anchoring = anchoring
        self._ledger = Ledger(connection, anchoring)
        self._waiting: deque[Write] = deque()
        self._bell: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._has_rung = False
        self._since_checkpoint = 0
        self._has_complained = False
        self._thread = Thread(target=self._run, name="bridle-journal", daemon=True)

    def start(
        self, loop: asyncio.AbstractEventLoop, settled: Callable[[list[Write]], None]
    ) -> None:
        self._loop = loop
        self._settled = settled
        self._thread.start()

    def discard(self) -> None:
        """Close the connection of a writer that was never started."""
        self._anchoring.close()
        self._connection.close()

    def submit(self, write: Write) -> None:
        """From the loop. The thread is woken once for all that comes while it is busy."""
        self._waiting.append(write)
        if not self._has_rung:
            self._has_rung = True
            self._bell.put(True)

    def stop(self) -> None:
        """Settle all that was submitted, and close the connection. Waits; not for the loop."""
        self._bell.put(False)
        self._thread.join()

    def _run(self) -> None:
        goes_on = True
        while goes_on:
            goes_on = self._wait()
            self._has_rung = False  # before looking: what comes now rings again
            while self._waiting:
                group = self._next_group()
                self._settle_at_any_rate(group)
                self._tell(group)
                if self._since_checkpoint > CHECKPOINT_ALWAYS:
                    self._checkpoint()
                if self._anchoring.is_due:
                    self._anchor()
        self._anchor()
        self._anchoring.close()
        with contextlib.suppress(sqlite3.Error):  # it is closed at the latest with the process
            self._connection.close()

    def _wait(self) -> bool:
        may_checkpoint = self._since_checkpoint >= CHECKPOINT_WHEN_IDLE
        while True:
            patience = self._anchoring.patience
            if may_checkpoint:
                patience = IDLE_SECONDS if patience is None else min(patience, IDLE_SECONDS)
            try:
                return self._bell.get(timeout=patience)
            except queue.Empty:
                if may_checkpoint:
                    self._checkpoint()
                    may_checkpoint = False
                if self._anchoring.is_due:
                    self._anchor()

    def _next_group(self) -> list[Write]:
        waiting = self._waiting
        group = [waiting.popleft()]
        size = group[0].size
        if isinstance(group[0], Job):
            return group
        while waiting and len(group) < MAX_GROUP_WRITES:
            after = waiting[0]
            size += after.size
            if size > MAX_GROUP_BYTES or isinstance(after, Job):
                break
            group.append(waiting.popleft())
        return group

    def _settle_at_any_rate(self, group: list[Write]) -> None:
        try:
            self._settle(group)
        except Exception as error:  # noqa: BLE001 - else nobody would ever be told anything again
            _log.exception("a mistake in the journal's writer")
            _fail(group, JournalError(f"the journal's writer failed: {words_of(error)}"))

    def _settle(self, group: list[Write], is_retry: bool = False) -> None:
        """Every write of the group gets its result or its error."""
        writable = group
        if self._space.is_full:
            writable = [write for write in group if self._has_space_for(write)]
            if not writable:
                return
        try:
            if isinstance(writable[0], Job):
                writable[0].result = writable[0].run(self._connection)
            else:
                self._ledger.commit(writable)
        except Exception as error:  # noqa: BLE001 - it is told to who waits for the write
            self._roll_back()
            self._failed(writable, error, is_retry)
            return
        self._since_checkpoint += GROUP + sum(write.size for write in writable)

    def _failed(self, group: list[Write], error: Exception, is_retry: bool) -> None:
        """Each is tried alone, so that only what can't be written fails; but not where the fault is
        the file's: a program that holds it would hold us up once for each of them."""
        translated = self._translated(error)
        is_full = isinstance(translated, DiskFull)
        if isinstance(translated, JournalUnwritable | JournalUnusable) and not is_full:
            _fail(group, translated)
        elif len(group) > 1:
            for write in group:
                self._settle([write])
        elif is_full and self._space.ran_out() and not is_retry:
            # While the ballast's space lasts: then what is written now has the log's own.
            self._checkpoint()
            self._settle(group, is_retry=True)
        else:
            _fail(group, translated)

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.rollback()
        except sqlite3.Error as error:
            _log.warning("the journal could not undo what it could not write: %s", error)

    def _translated(self, error: Exception) -> JournalError:
        if isinstance(error, sqlite3.Error):
            return from_sqlite(error, self._path)
        if isinstance(error, JournalError):
            return error
        _log.error("the journal's writer can't write this", exc_info=error)
        return InvalidEntry(f"the journal can't write this: {words_of(error)}")

    def _has_space_for(self, write: Write) -> bool:
        is_allowed = write.durability is Durability.POWER or isinstance(write, Job)
        if is_allowed or self._space.has_returned():
            return True
        write.error = disk_full(self._path)
        return False

    def _checkpoint(self) -> None:
        self._since_checkpoint = 0
        try:
            row = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            self._since_checkpoint = (row[1] - row[2]) * PAGE  # a reader needs the rest
            self._has_complained = False
        except sqlite3.Error as error:
            # Nothing is lost by that: the log keeps it, and the next time may do.
            if not self._has_complained:
                _log.warning("the journal's log could not be moved into its file: %s", error)
            self._has_complained = True

    def _anchor(self) -> None:
        if self._space.is_full:
            self._anchoring.postpone()  # the last space is for what people decide
            return
        try:
            self._anchoring.turn(self._ledger.record)
        except Exception as error:  # noqa: BLE001 - the log goes on without
            self._roll_back()
            self._anchoring.failed(f"anchors can't be written: {words_of(error)}")

    def anchor(self) -> None:
        """In a turn of its own: all that is stored is anchored, and on the disk."""
        self._anchoring.turn(self._ledger.record)

    def accept(self, by: str, stream: str | None) -> dict[str, str]:
        """In a turn of its own: what does not fit its anchors counts no more."""
        self._ledger.forget()  # what is in the file counts from now on
        return self._anchoring.accept(self._connection, self._ledger.record, by, stream)

    def _tell(self, group: list[Write]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._settled, group)


def _fail(group: list[Write], error: JournalError) -> None:
    for write in group:
        write.error = error
