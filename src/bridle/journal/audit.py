"""The audit chain: each sealed event of a stream carries the hash of the one before and its own.

It detects accidents and edits: an entry that was changed, removed, added or moved. It does not stop
somebody who can write the file and rewrites the whole chain, nor does it cover events that were not
sealed.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import BlobLost
from .events import Event, Seal, StreamInfo

if TYPE_CHECKING:
    from .contract import Journal

PAGE = 500


class Verdict(Struct, frozen=True):
    """What `verify` found. `broken_at` is the number of the first event that does not fit."""

    stream: str
    sealed: int
    broken_at: int | None = None
    reason: str = ""

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


class Verifier:
    """Checks a stream's events one after the other. `info` says what should be there."""

    def __init__(self, info: StreamInfo) -> None:
        self._info = info
        self._seq = info.first_seq - 1
        self._hash = info.deleted_seal
        self._sealed = 0
        self._broken: tuple[int, str] | None = None

    def see(self, event: Event, payload_fault: str = "") -> None:
        if self._broken:
            return
        if event.seq != self._seq + 1:
            self._broken = self._seq + 1, "it is missing"
            return
        self._seq = event.seq
        if event.seal:
            reason = self._fault_of(event, event.seal) or payload_fault
            self._broken = (event.seq, reason) if reason else None
            self._hash = event.seal.hash
            self._sealed += 1

    def verdict(self) -> Verdict:
        """After the last event."""
        broken = self._broken or self._fault_of_the_end()
        at, reason = broken or (None, "")
        return Verdict(self._info.name, self._sealed, at, reason)

    def _fault_of(self, event: Event, seal: Seal) -> str:
        if seal.previous != self._hash:
            return "the sealed event before it is missing or was changed"
        if hash_of(self._info.name, event, seal.previous) != seal.hash:
            return "it was changed"
        return ""

    def _fault_of_the_end(self) -> tuple[int, str] | None:
        if self._seq < self._info.last_seq:
            return self._seq + 1, "it is missing"
        if self._hash != self._info.last_seal:
            return self._info.last_seq, "the last sealed event is missing or was changed"
        return None


async def verify(journal: Journal, stream: str) -> Verdict:
    """Walk through the stream and say where its chain breaks first, if it does. Large payloads of
    sealed events are read as well. A stream without sealed events is intact."""
    info = await journal.log.info(stream)
    verifier, after = Verifier(info), info.first_seq - 1
    while after < info.last_seq:
        events = await journal.log.read(stream, after, PAGE)
        if not events:
            break
        for event in events:
            if event.seq <= info.last_seq:
                verifier.see(event, await _payload_fault(journal, event))
        after = events[-1].seq
    verdict = verifier.verdict()
    if not verdict.is_intact and (await journal.log.info(stream)).first_seq > info.first_seq:
        return await verify(journal, stream)  # what is missing was deleted while we read
    return verdict


async def _payload_fault(journal: Journal, event: Event) -> str:
    if event.seal and event.blob:
        try:
            await journal.blobs.get(event.blob)
        except BlobLost as error:
            return f"its payload {error.reason}"
    return ""
