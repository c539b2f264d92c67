"""Where approvals are found again: records that are made from the log, never the other way round.

Owns two buckets, for those that are not finished and for the rest, and a cursor for each stream:
up to there the records are known to be right. What a crash left out is read from the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec
from msgspec import Struct

from ..errors import BlobLost, JournalError
from ..journal import Bucket, Document, Event, Journal
from .events import Body, Ended, body_of, is_ours
from .fold import fold, view
from .model import Approval, Ending, Requested

OPEN = "approvals"
FINISHED = "approvals.finished"
CURSORS = "approvals.cursors"

PAGE = 500
#: So many are saved together, and so many events may be read again at the next start.
SAVED_AT_ONCE = 32
CURSOR_STEP = 200

_log = logging.getLogger(__name__)


#: Keeps what else must be there before the approval's own record says that all is well.
Before: TypeAlias = Callable[[Approval], Awaitable[None]]


class Cursor(Struct, frozen=True):
    seq: int


class Shelf:
    """Saves in the background what it is given, and finds it at once."""

    def __init__(self, journal: Journal, before: Before) -> None:
        self._journal = journal
        self._before = before
        self._open: Bucket[Approval] = journal.bucket(OPEN, Approval)
        self._finished: Bucket[Approval] = journal.bucket(FINISHED, Approval)
        self._cursors: Bucket[Cursor] = journal.bucket(CURSORS, Cursor)
        self._unsaved: dict[str, Approval] = {}
        self._seen: dict[str, int] = {}  # by stream: the last event of which we were told
        self._kept: dict[str, int] = {}  # by stream: the cursor that is stored
        self._saving: asyncio.Task[None] | None = None

    def put(self, approval: Approval) -> None:
        """As it is after an event that is stored. In the order of the stream's events."""
        self._unsaved[approval.id] = approval
        self._seen[approval.session] = max(approval.seq, self._seen.get(approval.session, 0))
        if self._saving is None:
            self._saving = asyncio.get_running_loop().create_task(self._save_all())

    def passed(self, stream: str, seq: int) -> None:
        """All of the stream's events up to this one were seen, and those of ours were put."""
        self._seen[stream] = max(seq, self._seen.get(stream, 0))
        if self._seen[stream] - self._kept.get(stream, 0) > CURSOR_STEP and self._saving is None:
            self._saving = asyncio.get_running_loop().create_task(self._save_all())

    async def forget(self, stream: str) -> None:
        """Those of a stream that was deleted."""
        for approval in await self.all(lambda approval: approval.session == stream):
            self._unsaved.pop(approval.id, None)
            await self._delete(OPEN, approval.id)
            await self._delete(FINISHED, approval.id)
        self._seen.pop(stream, None)
        self._kept.pop(stream, None)
        await self._delete(CURSORS, stream)

    async def _delete(self, bucket: str, key: str) -> None:
        found = await self._journal.records.get(bucket, key)
        if found:
            await self._journal.records.delete(bucket, key, found.revision)

    async def get(self, approval_id: str) -> Approval | None:
        if approval_id in self._unsaved:
            return self._unsaved[approval_id]
        found = await self._open.get(approval_id) or await self._finished.get(approval_id)
        # It may have changed while we looked.
        saved = found.value if found else None
        return self._unsaved.get(approval_id, saved)

    async def all(self, where: Callable[[Approval], bool]) -> list[Approval]:
        found: dict[str, Approval] = {}
        for bucket in (self._open, self._finished):
            found |= {document.key: document.value for document in await bucket.list()}
        found |= self._unsaved
        return [approval for approval in found.values() if where(approval)]

    async def whole(self, approval: Approval) -> Approval:
        """With what the record had to leave out, as far as the log still has it."""
        if not approval.is_cut:
            return approval
        try:
            asked = await self._body(approval.session, approval.requested_seq)
            ended = await self._body(approval.session, approval.ended_seq)
        except BlobLost as error:
            _log.warning("approval %s can be shown in part only: %s", approval.id, error)
            return approval
        if not isinstance(asked, Requested) or asked.id != approval.id:
            return approval
        facts = {name: getattr(asked, name) for name in Requested.__struct_fields__}
        del facts["steps"]  # it may have been put to others since
        ending: Ending | None = approval.ending
        if isinstance(ended, Ended):
            ending = ended.ending
        return msgspec.structs.replace(approval, **facts, ending=ending, is_cut=False)

    async def _body(self, stream: str, seq: int) -> Body | None:
        events = await self._journal.log.read(stream, seq - 1, 1) if seq else []
        if not events or events[0].seq != seq or not is_ours(events[0]):
            return None
        return body_of(events[0], await self._journal.payload(events[0]))

    # --- at the start

    async def load(self) -> list[Approval]:
        """All that are not finished, as the log has them."""
        found = {document.key: document.value for document in await self._open.list()}
        self._kept = {document.key: document.value.seq for document in await self._cursors.list()}
        for info in await self._journal.log.streams():
            kept = self._kept.get(info.name, 0)
            if kept != info.last_seq:
                await self._catch_up(info.name, kept if kept <= info.last_seq else 0, found)
        await self.saved()
        return [approval for approval in found.values() if not approval.is_finished]

    async def _catch_up(self, stream: str, after: int, found: dict[str, Approval]) -> None:
        while events := await self._journal.log.read(stream, after, PAGE):
            for event in events:
                if is_ours(event):
                    await self._add(event, found)
            after = events[-1].seq
            self._seen[stream] = after

    async def _add(self, event: Event, found: dict[str, Approval]) -> None:
        try:
            body = body_of(event, await self._journal.payload(event))
        except (BlobLost, msgspec.MsgspecError) as error:
            _log.error("event %d is left out of its approval: %s", event.seq, error)
            return
        before = found.get(body.id) or await self.get(body.id)
        after = fold(before, event.seq, body)
        if after is not None and after is not before:
            found[body.id] = after = view(after)
            self.put(after)

    # --- saving

    async def saved(self) -> None:
        """Until all that was put is saved, or can't be; and the cursors too."""
        while self._saving:
            await asyncio.wait([self._saving])
        await self._keep_cursors(0)

    async def _save_all(self) -> None:
        try:
            while self._unsaved and await self._save_some():
                pass
            await self._keep_cursors(CURSOR_STEP)
        finally:
            self._saving = None

    async def _save_some(self) -> bool:
        """Whether it could. What can't be saved now is kept for the next time."""
        batch = list(self._unsaved.values())[:SAVED_AT_ONCE]
        results = await asyncio.gather(*map(self._save, batch), return_exceptions=True)
        for approval, error in zip(batch, results, strict=True):
            if error is not None:
                _log.warning("the record of approval %s can't be saved: %s", approval.id, error)
            elif self._unsaved.get(approval.id) is approval:
                del self._unsaved[approval.id]
        return not any(results)

    async def _save(self, approval: Approval) -> None:
        await self._before(approval)
        if not approval.is_finished:
            await self._open.change(approval.id, lambda _: approval)
            return
        await self._finished.change(approval.id, lambda _: approval)
        await self._delete(OPEN, approval.id)

    async def _keep_cursors(self, step: int) -> None:
        """Only while nothing is unsaved: a cursor says that all before it is."""
        if self._unsaved:
            return
        ahead = {s: seq for s, seq in self._seen.items() if seq - self._kept.get(s, 0) > step}
        puts: list[Awaitable[Document[Cursor]]] = []
        for stream, seq in ahead.items():
            puts.append(self._cursors.change(stream, lambda _, seq=seq: Cursor(seq)))  # type: ignore[misc]
        self._kept |= ahead
        try:
            await asyncio.gather(*puts)
        except JournalError as error:
            _log.warning("the next start will take longer: %s", error)
