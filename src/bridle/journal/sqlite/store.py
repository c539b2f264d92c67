"""A journal in one SQLite file, with its large payloads beside it. Composes; decides little."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from ...errors import DiskFull, JournalClosed, JournalUnusable, JournalUnwritable
from ..anchors import RESTORED, Anchored, Fault, Kept, Line, misfit
from ..events import BlobRef, Event, Record, StreamInfo
from ..journal import StoredJournal
from ..store import Write
from .anchor_command import AnchorCommand
from .anchoring import Anchoring
from .blobs import BlobFiles
from .failures import disk_full, from_sqlite
from .ledger import Drop, Job
from .place import Place
from .readers import (
    Readers,
    read_events,
    read_info,
    read_kept,
    read_record,
    read_records,
    read_streams,
)
from .schema import migrate, recognise
from .space import Space
from .upkeep import (
    DROP_BYTES,
    VACUUM_BYTES,
    Check,
    Health,
    drop_rows,
    sweep_blobs,
    unfinished_drops,
    vacuum_step,
)
from .writer import Writer

T = TypeVar("T")

#: How long another program that has the file open may hold us up.
BUSY_SECONDS = 5.0
BLOB_THREADS = 2
#: What is larger has threads of its own, so that smaller payloads do not wait for it.
HUGE = 4 * 1024 * 1024
#: So many prepared statements stay: those that insert events, by size, and the others.
STATEMENTS = 96
#: A log that a burst made large is cut to this when it starts again.
MAX_IDLE_LOG = 16 * 1024 * 1024
#: What to do about anchors that can't be written.
UNWRITABLE = "Make the file one that can be written: what is missing in it is written then."
#: How many payloads are looked at in one turn of the writer.
SWEEP = 100

_log = logging.getLogger(__name__)


class SqliteStore:
    """See `store.Store`. Made by `open_journal`, in a thread."""

    def __init__(self, folder: Path, command: str | None = None) -> None:
        self._command = AnchorCommand(command, folder) if command else None
        self.place = Place(folder)
        try:
            self._open()
        except BaseException:
            self.place.release()
            raise

    def _open(self) -> None:
        try:
            connection = _connect(self.place.file)
        except DiskFull:
            # The ballast is there for the start too: without it nothing could be read any more.
            if not self.place.ballast.exists():
                raise
            self.place.ballast.unlink()
            connection = _connect(self.place.file)
        path = self.place.file
        self._blobs = BlobFiles(self.place.blobs)
        self._space = Space(self.place.ballast)
        offer = self._command.offer if self._command else _to_nobody
        self._anchoring = Anchoring(self.place.folder, self._space.ran_out, offer)
        try:
            self._anchoring.open(connection)
        except sqlite3.Error as error:
            connection.close()
            raise from_sqlite(error, path) from error
        self._writer = Writer(connection, path, self._space, self._anchoring)
        self._readers = Readers(path)
        self._checker = Readers(path, 1)
        self._pools = {name: _pool(name) for name in ("get", "put", "put-huge")}
        self._is_open = True
        self._closing: asyncio.Future[None] | None = None

    def start(self, settled: Callable[[list[Write]], None]) -> None:
        self._settled = settled
        if self._command:
            self._command.start()
        self._writer.start(asyncio.get_running_loop(), settled)

    def discard(self) -> None:
        """Let go of a store that was never started."""
        self._writer.discard()
        self.place.release()

    def submit(self, write: Write) -> None:
        if not self._is_open:
            write.error = JournalClosed("the journal is closed")
            asyncio.get_running_loop().call_soon(self._settled, [write])
            return
        self._writer.submit(write)

    async def read(self, stream: str, after: int, limit: int) -> list[Event]:
        return await self._readers.run(lambda c: read_events(c, stream, after, limit))

    async def info(self, stream: str) -> StreamInfo:
        return await self._readers.run(lambda c: read_info(c, stream))

    async def streams(self, prefix: str) -> list[StreamInfo]:
        return await self._readers.run(lambda c: read_streams(c, prefix))

    async def delete(self, stream: str, expect: int, why: str) -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.submit(Drop(stream, expect, why, future))
        id_ = await future
        try:
            await self._drop_rows(id_, expect)
        except JournalUnwritable as error:  # for readers they are gone; `vacuum` does the rest
            _log.warning("the events of %s are deleted but take space still: %s", stream, error)

    async def kept(self, stream: str) -> Kept:
        anchors = self._anchoring.state.streams
        while True:
            anchor = anchors.get(stream)  # before: what it says must be there
            kept = await self._readers.run(lambda c: read_kept(c, stream, anchor))  # noqa: B023
            if not misfit(kept, anchor) or anchors.get(stream) is anchor:
                return kept  # else it was deleted while we looked

    async def anchored(self) -> Anchored:
        anchoring = self._anchoring
        reason = await self._readers.run(lambda _: anchoring.look())
        if reason:  # or it was being written: look again where nobody writes
            reason = await self.job(lambda _: anchoring.look())
        fault = anchoring.state.fault or (Fault(0, reason, RESTORED) if reason else None)
        if anchoring.problem:
            fault = fault or Fault(0, anchoring.problem, UNWRITABLE)
        command = self._command.problem if self._command else ""
        return Anchored(sorted(anchoring.state.streams), fault, command)

    async def anchor_lines(self) -> list[Line]:
        return await self._readers.run(lambda _: self._anchoring.lines())

    async def anchor(self) -> None:
        await self.job(lambda _: self._writer.anchor())

    async def accept(self, by: str, stream: str | None) -> dict[str, str]:
        return await self.job(lambda _: self._writer.accept(by, stream))

    async def record(self, bucket: str, key: str) -> Record | None:
        return await self._readers.run(lambda c: read_record(c, bucket, key))

    async def records(self, bucket: str, prefix: str) -> tuple[int, list[Record]]:
        return await self._readers.run(lambda c: read_records(c, bucket, prefix))

    async def put_blob(self, data: bytes) -> BlobRef:
        # On a full disk the last space is not for large payloads.
        if self._space.is_full and not await self.job(lambda _: self._space.has_returned()):
            raise disk_full(self.place.file)
        pool = "put-huge" if len(data) > HUGE else "put"
        return await self._with_blobs(lambda: self._blobs.put(data), pool)

    def release_blobs(self, blobs: list[BlobRef]) -> None:
        for blob in blobs:
            self._blobs.unpin(blob.digest)

    async def get_blob(self, ref: BlobRef) -> bytes:
        return await self._with_blobs(lambda: self._blobs.get(ref))

    async def aclose(self) -> None:
        self._is_open = False
        if self._closing is None:
            self._closing = _in_a_thread(self._close)
        await asyncio.shield(self._closing)

    async def job(self, run: Callable[[sqlite3.Connection], T], size: int = 0) -> T:
        """Something for the writer to do in its turn."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.submit(Job(run, future, size))
        return await future

    async def check(self) -> Health:
        return await self._checker.run(
            lambda c: Check(c, self._blobs, lambda: self._is_open).health()
        )

    async def vacuum(self) -> None:
        """In small steps, between which others write."""
        for id_, floor in await self.job(unfinished_drops):
            await self._drop_rows(id_, floor)
        digests = await self._with_blobs(lambda: list(self._blobs.all()))
        for start in range(0, len(digests), SWEEP):
            some = digests[start : start + SWEEP]
            await self.job(lambda c, some=some: sweep_blobs(c, some, self._blobs))  # type: ignore[misc]
        while await self.job(vacuum_step, VACUUM_BYTES):
            pass

    async def _drop_rows(self, id_: int, upto: int) -> None:
        while await self.job(lambda c: drop_rows(c, id_, upto, self._blobs), DROP_BYTES):
            pass

    async def _with_blobs(self, do: Callable[[], T], pool: str = "get") -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pools[pool], do)
        except RuntimeError as error:  # the pool is shut down
            if self._is_open:
                raise
            raise JournalClosed("the journal is closed") from error

    def _close(self) -> None:
        # The readers first: SQLite tidies the file up when the last connection closes.
        self._readers.close()
        self._checker.close()
        for pool in self._pools.values():
            pool.shutdown()
        self._writer.stop()
        if self._command:
            self._command.stop()
        self.place.release()


class SqliteJournal(StoredJournal):
    """A journal in a file, with what such a file needs now and then."""

    def __init__(self, store: SqliteStore) -> None:
        self._sqlite = store
        super().__init__(store)

    async def check(self) -> Health:
        """Read everything and say what is wrong with it. Takes as long as the file is large;
        writing goes on."""
        return await self._sqlite.check()

    async def anchor(self) -> None:
        """Anchor all that is stored, now: before the home is copied, say. Else that is done within
        a second, and when the journal is closed."""
        await self._sqlite.anchor()

    async def vacuum(self) -> None:
        """Give the space of what was deleted back to the disk, and remove payloads that no event
        refers to. Writing goes on."""
        await self._sqlite.vacuum()


@asynccontextmanager
async def open_journal(
    folder: Path | str, *, anchor_command: str | None = None
) -> AsyncIterator[SqliteJournal]:
    """The journal of a folder (Bridle's home), which is made if there is none.

    The `anchor_command` is given anchors as JSON lines, to keep them elsewhere.

    One process at a time may have it open: JournalInUse for another. JournalUnusable and its kinds,
    JournalUnwritable or DiskFull say why it can't be opened, and what to do.
    """
    async with SqliteJournal(await _opened(Path(folder), anchor_command)) as journal:
        yield journal


def _to_nobody(_: list[Line]) -> None:
    """There is no command for them."""


def _pool(name: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(BLOB_THREADS, thread_name_prefix=f"bridle-journal-{name}")


def _in_a_thread(do: Callable[[], T]) -> asyncio.Future[T]:
    """In one that is there for this alone."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="bridle-journal-door")
    try:
        return asyncio.get_running_loop().run_in_executor(pool, do)
    finally:
        pool.shutdown(wait=False)


async def _opened(folder: Path, command: str | None) -> SqliteStore:
    def discard(opening: asyncio.Future[SqliteStore]) -> None:
        if not opening.exception():
            opening.result().discard()

    opening = _in_a_thread(lambda: SqliteStore(folder, command))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(discard)  # nobody would ever let go of it
        raise


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            path,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=STATEMENTS,
        )
        try:
            recognise(connection, path)
            if not connection.execute("PRAGMA page_count").fetchone()[0]:
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only in a new file
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                raise JournalUnusable(
                    f"{path} is on a file system without shared memory: choose another home"
                )
            connection.execute("PRAGMA fullfsync = 1")  # of a Mac's: wait for the disk itself
            connection.execute("PRAGMA wal_autocheckpoint = 0")  # the writer decides when
            connection.execute(f"PRAGMA journal_size_limit = {MAX_IDLE_LOG}")
            migrate(connection)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise from_sqlite(error, path) from error
    return connection
