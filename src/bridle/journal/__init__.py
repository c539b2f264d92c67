"""The store under everything: an event log, records and blobs. It knows nothing of Claude.

`contract` says what is promised, whichever engine keeps it; `open_journal` opens the one in a file,
`memory_journal` makes one in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .archive import archive, read_archive, verify_archive
from .audit import Verdict, verify
from .buckets import Bucket, Document
from .contract import Journal
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

if TYPE_CHECKING:
    from .sqlite.store import open_journal

__all__ = [
    "Batch",
    "BlobRef",
    "Bucket",
    "Document",
    "Durability",
    "Event",
    "Gone",
    "Journal",
    "Live",
    "NewEvent",
    "Projection",
    "Record",
    "Seal",
    "Stamped",
    "StreamInfo",
    "Verdict",
    "archive",
    "memory_journal",
    "open_journal",
    "read_archive",
    "verify",
    "verify_archive",
]


def __getattr__(name: str) -> object:
    """SQLite is loaded when a file is opened, not before."""
    if name == "open_journal":
        from .sqlite.store import open_journal

        return open_journal
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
