"""Tombstones: what is left where the events of a stream were deleted on purpose.

Owns their seal, over all that they say; where they are kept is the store's.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec
from msgspec import Struct

from .events import StreamInfo

MAX_WHY = 400
DELETED = "deleted"


class Tombstone(Struct, frozen=True, gc=False):
    """Events up to `upto` were deleted; `seal` is the hash of the last of them that was sealed.

    `previous` is the hash of the tombstone of an earlier deletion in the stream, if there was one.
    """

    upto: int
    seal: bytes
    at: float
    why: str
    previous: bytes
    hash: bytes

    def fits(self, info: StreamInfo) -> bool:
        """Whether it is of this stream, of these events, and was not changed."""
        if (self.upto, self.seal) != (info.first_seq - 1, info.deleted_seal):
            return False
        facts = (self.upto, self.seal, self.at, self.why, self.previous)
        return self.hash == _hash(info.name, *facts)


def tombstone(
    stream: str, upto: int, seal: bytes, at: float, why: str, previous: bytes = b""
) -> Tombstone:
    why = why[:MAX_WHY]
    hash_ = _hash(stream, upto, seal, at, why, previous)
    return Tombstone(upto, seal, at, why, previous, hash_)


def unreadable() -> Tombstone:
    """In place of one that was damaged: it fits nothing."""
    return Tombstone(0, b"", 0.0, "it can't be read", b"", b"")


def _hash(stream: str, upto: int, seal: bytes, at: float, why: str, previous: bytes) -> bytes:
    facts = ["tombstone", stream, upto, seal, at, why, previous]
    return sha256(msgspec.json.encode(facts)).digest()
