"""The store under everything: an event log, records and blobs. It knows nothing of Claude.

`contract` says what is promised, whichever engine keeps it; `open_journal` opens the one in a file,
`memory_journal` makes one in memory.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .anchors import Fault, Kept
from .archive import archive, read_archive, verify_archive
from .audit import Audit, Verdict, verify, verify_all
from .buckets import Bucket, Document
from .contract import Anchors, Blobs, EventLog, Feed, Journal, Records, Watch
from .events import (
    Batch,
    BlobRef,
    Durability,
    Event,
    Gone,
    Live,
    NewEvent,
    Record,
    Seal,
    StreamInfo,
)
from .journal import memory_journal
from .projections import Projection, Stamped
from .tombstones import Tombstone

if TYPE_CHECKING:
    from .sqlite.store import SqliteJournal, open_journal
    from .sqlite.upkeep import Health

__all__ = [
    "Anchors",
    "Audit",
    "Batch",
    "BlobRef",
    "Blobs",
    "Bucket",
    "Document",
    "Durability",
    "Event",
    "EventLog",
    "Fault",
    "Feed",
    "Gone",
    "Health",
    "Journal",
    "Kept",
    "Live",
    "NewEvent",
    "Projection",
    "Record",
    "Records",
    "Seal",
    "SqliteJournal",
    "Stamped",
    "StreamInfo",
    "Tombstone",
    "Verdict",
    "Watch",
    "archive",
    "memory_journal",
    "open_journal",
    "read_archive",
    "verify",
    "verify_all",
    "verify_archive",
]


#: SQLite is loaded when a file is opened, not before.
_LAZY = {"Health": "upkeep", "SqliteJournal": "store", "open_journal": "store"}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(f".sqlite.{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
