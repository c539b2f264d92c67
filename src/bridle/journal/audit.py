"""The audit chain: each sealed event of a stream carries the hash of the one before and its own.

It detects accidents and edits: an entry that was changed, removed, added or moved. The anchors
(`anchors`) show what the chain alone can't: that its end or its beginning is cut, that a stream is
gone, or that all of it was sealed anew. What events say that are not sealed, nothing covers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import BlobLost
from .anchors import Anchor, Fault, Kept, misfit, other_seal
from .copies import compare
from .events import Event, Seal, StreamInfo

if TYPE_CHECKING:
    from .contract import Journal

PAGE = 500


class Verdict(Struct, frozen=True):
    """What `verify` found. `broken_at` is the number of the first event that does not fit, and
    `remedy` says what to do about it."""

    stream: str
    sealed: int
    broken_at: int | None = None
    reason: str = ""
    remedy: str = ""

    @property
    def is_intact(self) -> bool:
        return self.broken_at is None


def seal(stream: str, event: Event, previous: bytes) -> Event:
    """The event as the next link after the one with this hash."""
    return replace(event, seal=Seal(previous, hash_of(stream, event, previous)))


def hash_of(stream: str, event: Event, previous: bytes) -> bytes:
    """Over all that the event says, where it stands, and the link before it."""
    blob = [event.blob.digest, event.blob.size] if event.blob else None
    facts = msgspec.json.encode([stream, event.seq, event.at, event.kind, blob])
    return sha256(previous + facts + b"\n" + event.body).digest()


class Audit(Struct, frozen=True):
    """What `verify_all` found: of each stream that is there or should be, and of the anchors.

    `fault` is the anchors' own; `is_anchored` whether there are any; `command` says why the user's
    command was not given them.
    """

    verdicts: list[Verdict]
    is_anchored: bool
    fault: Fault | None = None
    command: str = ""

    @property
    def is_intact(self) -> bool:
        return not self.fault and all(verdict.is_intact for verdict in self.verdicts)


#: What to do about an event that is not as it was sealed.
KEEP = "Stop the server, keep the home as it is, and compare it with a backup or an archive."


class Verifier:
    """Checks a stream's events one after the other. `info` says what should be there, and `anchors`
    what was there once."""

    def __init__(self, info: StreamInfo, anchors: Sequence[Anchor] = ()) -> None:
        self._anchored: dict[int, list[Anchor]] = {}
        for anchor in anchors:
            self._anchored.setdefault(anchor.head.last, []).append(anchor)
        self._info = info
        self._seq = max(info.first_seq - 1, 0)
        self._hash = info.deleted_seal
        self._sealed = 0
        self._broken: Fault | None = None
        self._compare()

    def see(self, event: Event, payload_fault: str = "") -> None:
        if self._broken:
            return
        if event.seq != self._seq + 1:
            self._broken = Fault(self._seq + 1, "it is missing", KEEP)
            return
        self._seq = event.seq
        if event.seal:
            reason = self._fault_of(event, event.seal) or payload_fault
            self._broken = Fault(event.seq, reason, KEEP) if reason else None
            self._hash = event.seal.hash
            self._sealed += 1
        self._compare()

    def verdict(self, fault: Fault | None = None) -> Verdict:
        """After the last event, with a `fault` that was found elsewhere: the first one is told."""
        found = [one for one in (self._broken, fault) if one]
        broken = min(found, key=lambda one: one.at, default=None) or self._fault_of_the_end()
        if not broken:
            return Verdict(self._info.name, self._sealed)
        return Verdict(self._info.name, self._sealed, broken.at, broken.reason, broken.remedy)

    def _compare(self) -> None:
        """With what was anchored here."""
        for anchor in self._anchored.get(self._seq, ()):
            if not self._broken and anchor.head.seal != self._hash:
                self._broken = other_seal(anchor)

    def _fault_of(self, event: Event, seal: Seal) -> str:
        if seal.previous != self._hash:
            return "the sealed event before it is missing or was changed"
        if hash_of(self._info.name, event, seal.previous) != seal.hash:
            return "it was changed"
        return ""

    def _fault_of_the_end(self) -> Fault | None:
        if self._seq < self._info.last_seq:
            return Fault(self._seq + 1, "it is missing", KEEP)
        if self._hash != self._info.last_seal:
            reason = "the last sealed event is missing or was changed"
            return Fault(self._info.last_seq, reason, KEEP)
        return None


async def verify(journal: Journal, stream: str, copied: Anchor | None = None) -> Verdict:
    """Walk through the stream and say where it is not what it was, if it is not. Large payloads of
    sealed events are read as well. `copied` is an anchor that was kept elsewhere.

    Without sealed events, it is seen whether any is missing, and not what they say.
    """
    kept = await journal.anchors.of(stream)
    info, anchors = kept.info, [one for one in (kept.anchor, copied) if one]
    verifier, after = Verifier(info, anchors), max(info.first_seq - 1, 0)
    while after < info.last_seq:
        events = await journal.log.read(stream, after, PAGE)
        if not events:
            break
        for event in events:
            if event.seq <= info.last_seq:
                verifier.see(event, await _payload_fault(journal, event))
        after = events[-1].seq
    verdict = verifier.verdict(_fault_of(kept, anchors))
    if not verdict.is_intact and (await journal.log.info(stream)).first_seq > info.first_seq:
        return await verify(journal, stream, copied)  # what is missing was deleted while we read
    return verdict


async def verify_all(
    journal: Journal, copy: bytes | None = None, *, only: str | None = None
) -> Audit:
    """Verify every stream that is there, or that was once anchored and not deleted (or `only` this
    one), and the anchors themselves. `copy` is what the user's command was given and has kept: JSON
    lines."""
    anchored = await journal.anchors.all()
    there = {info.name for info in await journal.log.streams()}
    names = there | set(anchored.streams if anchored else ())
    fault = anchored.fault if anchored else None
    copied: dict[str, Anchor] = {}
    if copy is not None:
        compared = await asyncio.to_thread(compare, copy, await journal.anchors.lines())
        copied, fault = compared.anchors, fault or compared.fault
        names |= copied.keys()
    if only is not None:
        there = names = {only}
    verdicts = [await verify(journal, name, copied.get(name)) for name in sorted(names)]
    # What was deleted, and has its tombstone, is of no interest.
    verdicts = [one for one in verdicts if one.stream in there or not one.is_intact]
    command = anchored.command if anchored else ""
    return Audit(verdicts, anchored is not None, fault, command)


def _fault_of(kept: Kept, anchors: list[Anchor]) -> Fault | None:
    """What the events that are there do not show."""
    faults = [misfit(kept, anchor) for anchor in (None, *anchors)]
    if found := next(filter(None, faults), None):
        return found
    return next((anchor.fault for anchor in anchors if anchor.fault), None)


async def _payload_fault(journal: Journal, event: Event) -> str:
    if event.seal and event.blob:
        try:
            await journal.blobs.get(event.blob)
        except BlobLost as error:
            return f"its payload {error.reason}"
    return ""
