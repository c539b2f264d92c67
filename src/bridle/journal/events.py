"""What a journal keeps and passes on: events, live ones, large payloads, records; and limits.

There are many of these at a time, and none can be part of a cycle: Python's collector is told not
to look at them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import Enum

from msgspec import Struct, field

#: A payload above this goes to a blob; the event keeps the head of it.
MAX_BODY = 256 * 1024
HEAD_SIZE = 4 * 1024
#: A batch is atomic, so it can't be split for others to come between: it is bounded instead.
MAX_BATCH_EVENTS = 1_000
MAX_BATCH_BYTES = 4 * 1024 * 1024
MAX_NAME = 256
#: No log counts further than this.
MAX_SEQ = (1 << 40) - 1
#: What the first sealed event of a stream has for the hash of the one before.
GENESIS = bytes(32)


class Durability(Enum):
    """What an acknowledged write survives."""

    #: The end of any process, by `kill -9` too. What was written in the last moments before a power
    #: loss may be missing then: whole batches from the end, never one from the middle.
    PROCESS = "process"
    #: Power loss as well: the disk has said that it has it. It may also use the last space on a
    #: full disk (the ballast). For what people decide, and for last words.
    POWER = "power"


class BlobRef(Struct, frozen=True, gc=False):
    """Where a large payload is: SHA-256 as hexadecimal digits, and its size in bytes."""

    digest: str
    size: int


class Seal(Struct, frozen=True, gc=False):
    """A link of the stream's audit chain: the hash of the sealed event before, and of this one."""

    previous: bytes
    hash: bytes


class NewEvent(Struct, frozen=True, gc=False):
    """An event to append. `at` is when it happened (unix seconds), not when it was stored."""

    kind: str
    body: bytes
    at: float = field(default_factory=time.time)
    #: Whether it joins the stream's audit chain.
    is_sealed: bool = False


class Event(Struct, frozen=True, gc=False):
    """A stored event. With a `blob`, `body` is only the head of the payload."""

    seq: int
    at: float
    kind: str
    body: bytes
    blob: BlobRef | None = None
    seal: Seal | None = None


class Live(Struct, frozen=True, gc=False):
    """An event for those who listen now: never stored, and without a number."""

    kind: str
    body: bytes
    at: float = field(default_factory=time.time)


class Batch(Struct, frozen=True):
    """What a feed gives at once: what waited for it on one stream, in order."""

    stream: str
    events: Sequence[Event | Live]

    @property
    def stored(self) -> list[Event]:
        """Those that have a number."""
        return [event for event in self.events if isinstance(event, Event)]


class StreamInfo(Struct, frozen=True, gc=False):
    """A stream: its first event that is not deleted, and the last number that was given.

    A stream without events has a `first_seq` above its `last_seq`.
    """

    name: str
    first_seq: int
    last_seq: int
    #: The hash of the last event that was sealed, and of the last of those that are deleted.
    last_seal: bytes = GENESIS
    deleted_seal: bytes = GENESIS


class Record(Struct, frozen=True, gc=False):
    """A document as it is kept."""

    key: str
    revision: int
    value: bytes


class Gone(Struct, frozen=True, gc=False):
    """A record was deleted."""

    key: str
    revision: int


Change = Record | Gone
