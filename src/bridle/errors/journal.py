"""What can't be stored or read back."""

from __future__ import annotations

import os

from .root import BridleError


class JournalError(BridleError):
    """Something can't be stored, or can't be read back."""


class InvalidEntry(JournalError):
    """A name, an event or a document that can't be stored. Nothing was."""


class WrongSequence(JournalError):
    """The stream's last event is not the expected one: somebody else has written, or a retry."""

    def __init__(self, stream: str, expected: int, actual: int) -> None:
        super().__init__(
            f"stream {stream!r} is at {actual}, not at {expected}: nothing was changed;"
            " read on from there and decide again"
        )
        self.stream = stream
        self.expected = expected
        self.actual = actual


class WrongRevision(JournalError):
    """The record is not at the expected revision (0: it is not there). Nothing was changed."""

    def __init__(self, bucket: str, key: str, expected: int, actual: int) -> None:
        found = f"is at revision {actual}" if actual else "does not exist"
        wanted = f"revision {expected}" if expected else ("none" if actual else "one")
        super().__init__(
            f"record {bucket}/{key} {found} where {wanted} was expected:"
            " get it again and decide again, as `Bucket.change` does"
        )
        self.bucket = bucket
        self.key = key
        self.expected = expected
        self.actual = actual


class UnreadableRecord(JournalError):
    """A stored document that does not fit the type of its bucket."""

    def __init__(self, bucket: str, key: str, reason: str) -> None:
        super().__init__(
            f"record {bucket}/{key} is not of its bucket's type: {reason};"
            " `journal.records` has its bytes and its revision, from which it can be put anew"
        )
        self.bucket = bucket
        self.key = key
        self.reason = reason


class BlobLost(JournalError):
    """A large payload that is not there any more, or is not what was stored."""

    def __init__(self, digest: str, reason: str) -> None:
        super().__init__(f"blob {digest[:12]}… {reason}")
        self.digest = digest
        self.reason = reason


class InvalidArchive(JournalError):
    """A file that is no archive of a stream, or one that was cut or changed."""


class InvalidAnchors(JournalError):
    """A copy of the anchors that is none."""


class JournalClosed(JournalError):
    """The journal was closed."""


class JournalUnwritable(JournalError):
    """The journal can't be written now. Nothing of this was stored; what was before is safe."""


class DiskFull(JournalUnwritable):
    """There is no space. The same will work again as soon as there is some."""


class JournalUnusable(JournalError):
    """The journal can't be opened or read; the text says what to do."""


class JournalInUse(JournalUnusable):
    """Somebody has the journal open (`pid`, where it is known; it may be this very process)."""

    def __init__(self, path: str, pid: int | None) -> None:
        who = f"process {pid}" if pid else "another process"
        problem = f"is in use by {who}: stop it, or choose another home"
        if pid == os.getpid():
            problem = "is open in this process already: use that one, or close it first"
        super().__init__(f"the journal {path} {problem}")
        self.path = path
        self.pid = pid


class JournalTooNew(JournalUnusable):
    """A newer Bridle has written the journal."""

    def __init__(self, path: str, version: int, known: int) -> None:
        super().__init__(
            f"the journal {path} has schema {version} and this Bridle knows up to {known}:"
            " use the newer Bridle that wrote it, or choose another home"
        )
        self.path = path
        self.version = version
        self.known = known


class JournalCorrupt(JournalUnusable):
    """The journal's file is damaged, or is something else."""
