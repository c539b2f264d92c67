"""All sessions of a home, as their streams say, and who is told when one changes.

Owns the records: each is the fold of its stream, kept so that a restart need not read it all, and
never a commit point. One feed follows every stream; a change of state is written down once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

import msgspec
from msgspec import Struct

from ..approvals import events as approvals
from ..approvals.policies import SESSION_POLICY
from ..approvals.remember import SESSION_RULES
from ..errors import BridleError, NameTaken, UnknownSession, words_of
from ..journal import Batch, Feed
from ..process.census import environment_of
from ..process.spool import Spool
from ..views import stream
from ..views.stream import Entry
from . import takeover, tally
from .audience import Audience
from .charge import Charge
from .environment import hidden, readable
from .fold import fold
from .means import Means
from .notes import entry
from .record import VERSION, SessionRecord, blank, changes, restored, snapshot

#: Records of another version of the fold are made again from their streams.
BUCKET = f"sessions.{VERSION}"
#: Where agents that look at a session are: `loopback` keeps that, and it goes with the session.
POSITIONS = "loopback.positions"
PAGE = 500
RETRY_SECONDS = 1.0
APPROVAL_PASSES = 3
#: A record is kept at each change of state, and after so many events.
KEEP_EVERY = 500

Told = Callable[[Charge, Sequence[Entry]], None]

_log = logging.getLogger(__name__)


class Forgotten(Struct, frozen=True):
    """A session that was deleted."""

    id: str


class Sessions:
    """`told` hears of every charge whose stream has grown, with what it has grown by; `changed` of
    one whose process has come or gone."""

    def __init__(self, means: Means, told: Told, changed: Callable[[Charge], None]) -> None:
        self._means = means
        self._told = told
        self._changed = changed
        self._charges: dict[str, Charge] = {}
        self._names: dict[str, str] = {}
        self._feed: Feed = means.journal.log.follow(stream.SUPERVISOR, 1 << 40)
        self._following: asyncio.Task[None] | None = None
        self._keeping: dict[str, asyncio.Task[None]] = {}
        self._kept: dict[str, int] = {}
        #: What an earlier supervisor was deleting when it ended.
        self._half_deleted: set[str] = set()
        self.audience = Audience()

    def __iter__(self) -> Iterator[Charge]:
        return iter(list(self._charges.values()))

    def __len__(self) -> int:
        return len(self._charges)

    def __contains__(self, session: str) -> bool:
        return session in self._charges

    def get(self, session: str) -> Charge:
        """By id or by name."""
        charge = self._charges.get(self._names.get(session, session))
        if charge is None or not charge.record.is_created:
            raise UnknownSession(session)
        return charge

    def check_there(self, charge: Charge) -> None:
        """It may have been deleted while somebody waited."""
        if self._charges.get(charge.id) is not charge:
            raise UnknownSession(charge.id)

    def check_name(self, name: str) -> None:
        """Neither a name nor an id of another one."""
        if name in self._names or name in self._charges:
            raise NameTaken(name, self._names.get(name, name))

    # --- from the start to the end

    async def load(self) -> None:
        """Every session that has a stream, as that says it is now."""
        kept = await self._means.journal.records.list(BUCKET)
        records = {one.key: record for one in kept if (record := _restored(one.value))}
        streams = await self._means.journal.log.streams()
        self._half_deleted = {one.key for one in kept} - {info.name for info in streams}
        for info in streams:
            if info.name == stream.SUPERVISOR:
                continue
            record = records.get(info.name) or blank(info.name)
            if record.seq != info.last_seq:
                record = await self._caught_up(info.name, record)
            if record.is_created:
                self.add(record)
                self._know_secrets(record)

    def _know_secrets(self, record: SessionRecord) -> None:
        """As many of its values as can be had: those that it has said, those that are read where
        they are from, and those that its process has."""
        values = self._means.secret_values
        values.was_said(record.id, record.secrets_said)
        env = readable(record.env, self._means.environ)
        if record.launch and record.launch.pid and record.facts.has_process:
            had = environment_of(record.launch.pid, record.launch.id)
            env |= {name: had[name] for name in record.env if name in had}
        values.hold(record.id, hidden(record.env, env))

    async def tidy(self) -> None:
        """Finish what a supervisor that was killed could not."""
        while self._half_deleted:
            await self._forget(self._half_deleted.pop())
        self._sweep()

    def _sweep(self) -> None:
        """Remove all but the spools of processes."""
        live = {
            charge.record.launch.id
            for charge in self
            if charge.record.launch and charge.record.facts.has_process
        }
        for path in (self._means.home / "spool").iterdir():
            if path.name in live:
                continue
            try:
                if path.is_symlink() or not Spool(path).is_held():
                    Spool(path).remove()
            except OSError as error:
                _log.warning("%s can't be removed: %s", path, error)

    async def _caught_up(self, session: str, record: SessionRecord) -> SessionRecord:
        while events := await self._means.journal.log.read(session, record.seq, PAGE):
            for event in events:
                record = fold(record, entry(event))
        return record

    def follow(self) -> None:
        for charge in self:
            self._publish(charge)  # what a crash kept from being written
        self._following = asyncio.ensure_future(self._follow())

    async def aclose(self) -> None:
        self._feed.close()
        if self._following:
            await asyncio.wait([self._following])
        await asyncio.gather(*(charge.leave() for charge in self))
        for charge in self:
            if charge.record.seq != self._kept.get(charge.id):
                self._keep(charge)
        if self._keeping:
            await asyncio.wait(self._keeping.values())
        self.audience.close()

    def add(self, record: SessionRecord) -> Charge:
        charge = self._charges[record.id] = Charge(self._means, record, self._changed)
        self._kept[record.id] = record.seq
        if record.name:
            self._names[record.name] = record.id
        self._feed.add(record.id, record.seq)
        return charge

    async def drop(self, charge: Charge) -> None:
        """It is deleted, with all that was written down of it."""
        self._feed.remove(charge.id)
        self._charges.pop(charge.id, None)
        self._names.pop(charge.record.name, None)
        self._kept.pop(charge.id, None)
        self.audience.gone(charge.id)
        async with charge.changing:  # what is being appended now is deleted, too
            await charge.leave()
            log = self._means.journal.log
            await log.delete(charge.id, (await log.info(charge.id)).last_seq)
            await self._forget(charge.id)

    async def _forget(self, session: str) -> None:
        """What is kept beside the stream. The record goes last: while it is there without a stream,
        there is more to forget."""
        await self._means.approvals.forget(session)
        records = self._means.journal.records
        kept = (takeover.BUCKET, tally.BUCKET, SESSION_POLICY, SESSION_RULES, POSITIONS, BUCKET)
        for bucket in kept:
            found = await records.get(bucket, session)
            if found:
                await records.delete(bucket, session, found.revision)

    # --- what grows

    async def _follow(self) -> None:
        while True:
            try:
                batch = await anext(self._feed)
            except StopAsyncIteration:
                return
            except BridleError:  # nothing is lost by it: the feed goes on from its cursor
                _log.exception("the log can't be read; it will be tried again")
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if any(event.kind.startswith(approvals.PREFIX) for event in batch.events):
                # The approvals are told by their own append, some passes of the loop later: who
                # sees a session wait for one must find it.
                for _ in range(APPROVAL_PASSES):
                    await asyncio.sleep(0)
            try:
                self._grown(batch)
            except Exception:  # noqa: BLE001 - one session's mistake must not stop the others
                _log.exception("session %s can't be followed", batch.stream)

    def _grown(self, batch: Batch) -> None:
        charge = self._charges.get(batch.stream)
        if charge is None:
            return
        entries = [entry(event) for event in batch.stored]
        for one in entries:
            fold(charge.record, one)
        charge.caught_up()
        if not entries or not charge.record.is_created:
            return  # nobody is to know of it yet
        is_changed = self._publish(charge)
        if is_changed or charge.record.seq - self._kept[charge.id] >= KEEP_EVERY:
            self._keep(charge)
        self._told(charge, entries)
        self.audience.tell(charge.id)

    def _publish(self, charge: Charge) -> bool:
        """Write down in which state it is, if that is another one than was written last."""
        changed = changes(charge.published, charge.record, self._means.now())
        if changed:
            charge.published = changed.now
            charge.write(stream.STATE, changed)
        return changed is not None

    # --- who wants to know

    async def watch(self) -> AsyncIterator[SessionRecord | Forgotten]:
        """Each session as it is, then each again when it has changed, or was deleted. A record is a
        copy; who is slow gets the latest of each."""
        with self.audience.watching(self._charges) as watcher:
            while True:
                for session in await watcher.changed():
                    charge = self._charges.get(session)
                    if charge is None:
                        yield Forgotten(session)
                    elif charge.record.is_created:
                        yield copy(charge.record)
                if watcher.is_closed:
                    return

    async def wait(self, charge: Charge, until: Callable[[SessionRecord], bool]) -> SessionRecord:
        """Until the record is so."""
        self.check_there(charge)
        with self.audience.listening([charge.id]) as listener:
            while not until(charge.record):
                await listener.heard()
                self.check_there(charge)
        return copy(charge.record)

    # --- what is kept

    def _keep(self, charge: Charge) -> None:
        if charge.id not in self._keeping:
            task = asyncio.ensure_future(self._put(charge))
            self._keeping[charge.id] = task
            task.add_done_callback(lambda _: self._keeping.pop(charge.id, None))

    async def _put(self, charge: Charge) -> None:
        records = self._means.journal.records
        # What is in the record that was kept last is known to everybody by now.
        self._means.approvals.passed(charge.id, self._kept.get(charge.id, 0))
        self._kept[charge.id] = charge.record.seq
        kept = snapshot(charge.record)
        try:
            found = await records.get(BUCKET, charge.id)
            await records.put(BUCKET, charge.id, kept, found.revision if found else 0)
        except BridleError as error:
            _log.warning("the record of %s can't be kept: %s", charge.id, words_of(error))


def copy(record: SessionRecord) -> SessionRecord:
    """As it is now: the record itself goes on changing."""
    return restored(snapshot(record))


def _restored(kept: bytes) -> SessionRecord | None:
    try:
        return restored(kept)
    except msgspec.MsgspecError:
        return None  # of another version: it is made again from its stream
