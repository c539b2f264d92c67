"""Anchors: where each stream ended and what its last seal was, noted outside of the log.

Owns the lines that say so, their chain, and what they add up to. Reads and writes no file. A line
carries the hash of itself and the line before: lines that were changed or removed break the chain.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from hashlib import sha256
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .events import GENESIS, StreamInfo
from .tombstones import Tombstone

Kind: TypeAlias = Literal["start", "anchor", "deleting", "broken", "accepted"]
#: The stream of lines that are about the file of anchors itself.
FILE = ""


class Head(Struct, frozen=True, gc=False, omit_defaults=True):
    """Where a stream begins and ends, its last seal, and the hash of its tombstone."""

    first: int = 1
    last: int = 0
    seal: bytes = GENESIS
    tombstone: bytes = b""


class Fault(Struct, frozen=True, gc=False):
    """What does not fit: the first number for which that is so, why, and what to do about it."""

    at: int
    reason: str
    remedy: str = ""


class Anchor(Struct, frozen=True, gc=False):
    """What the lines say of one stream."""

    head: Head
    at: float
    #: A deletion that was announced. It may have happened or not.
    deleting: bytes | None = None
    #: What did not fit once, until somebody accepts it.
    fault: Fault | None = None


class Line(Struct, frozen=True, gc=False, omit_defaults=True):
    """A line of the file.

    - `start`: the first one; `previous` is the hash of the line before, in the file that this one
      takes the place of.
    - `anchor`: the stream had this head.
    - `deleting`: it may have this head from now on: all of it is about to be deleted.
    - `broken`: the stream, or the file itself, was found not to fit what was noted before.
    - `accepted`: `by` somebody, on purpose: what was found before counts no more.
    """

    number: int
    at: float
    kind: Kind
    stream: str = FILE
    head: Head | None = None
    fault: Fault | None = None
    by: str = ""
    previous: bytes = b""
    hash: bytes = b""


DECODER = msgspec.json.Decoder(Line)
ENCODER = msgspec.json.Encoder()


def hash_of(line: Line, previous: bytes) -> bytes:
    return sha256(previous + ENCODER.encode(replace(line, hash=b""))).digest()


class Anchors:
    """What lines add up to, and the end of their chain."""

    def __init__(self, number: int = 0, hash_: bytes = GENESIS) -> None:
        self.number = number
        self.hash = hash_
        self.streams: dict[str, Anchor] = {}
        #: Of the file itself.
        self.fault: Fault | None = None

    def add(
        self,
        kind: Kind,
        stream: str = FILE,
        head: Head | None = None,
        fault: Fault | None = None,
        by: str = "",
    ) -> Line:
        """The next line of the chain."""
        previous = self.hash if kind == "start" else b""
        line = Line(self.number + 1, time.time(), kind, stream, head, fault, by, previous)
        line = replace(line, hash=hash_of(line, self.hash))
        self.apply(line)
        return line

    def apply(self, line: Line) -> None:
        self.number, self.hash = line.number, line.hash
        if line.stream != FILE:
            self._apply_to_stream(line)
        elif line.kind == "broken":
            self.fault = self.fault or line.fault
        elif line.kind == "accepted":
            self.fault = None

    def _apply_to_stream(self, line: Line) -> None:
        known = self.streams.get(line.stream)
        fault = known.fault if known else None
        head = line.head or (known.head if known else Head())
        if line.kind == "deleting":
            before = known.head if known else Head()
            self.streams[line.stream] = Anchor(before, line.at, head.tombstone, fault)
        elif line.kind == "accepted":
            self.streams[line.stream] = Anchor(head, line.at)
            if not head.last:
                del self.streams[line.stream]
        else:
            fault = fault or line.fault
            at = known.at if known and known.head == head else line.at
            self.streams[line.stream] = Anchor(head, at, None, fault)

    def afresh(self) -> list[Line]:
        """The lines of a new file that says the same; the chain goes on."""
        lines = [self.add("start")]
        if self.fault:
            lines.append(self.add("broken", fault=self.fault))
        for stream, anchor in list(self.streams.items()):
            kind: Kind = "broken" if anchor.fault else "anchor"
            lines.append(self.add(kind, stream, anchor.head, anchor.fault))
            if anchor.deleting is not None:
                lines.append(self.add("deleting", stream, Head(tombstone=anchor.deleting)))
        return lines


class Reading(Struct):
    """What is in a file: its lines, up to the first that is not one of the chain, and how many
    bytes these are; then what is wrong there, and what can be read behind it."""

    lines: list[Line]
    size: int = 0
    problem: str = ""
    behind: list[Line] = []


def read_lines(data: bytes) -> Reading:
    """A last line without its end is left out: it was being written."""
    found = Reading([])
    before: Line | None = None
    for place, text in enumerate(data.split(b"\n")[:-1], 1):
        line = _decoded(text)
        if not found.problem:
            found.problem = _problem_of(line, before, place)
        if line and not found.problem:
            found.lines.append(line)
            found.size += len(text) + 1
        elif line and not _is_edited(line, before):
            found.behind.append(line)
        before = line or before
    return found


def _is_edited(line: Line, before: Line | None) -> bool:
    """Rather than left where others were removed."""
    is_next = before is not None and line.number == before.number + 1
    previous = before.hash if before and is_next else line.previous
    return (is_next or line.kind == "start") and hash_of(line, previous) != line.hash


def _decoded(text: bytes) -> Line | None:
    try:
        line = DECODER.decode(text)
    except (msgspec.MsgspecError, ValueError):  # the latter of what is no text
        return None
    return line if ENCODER.encode(line) == text else None  # as it was written, to the letter


def _problem_of(line: Line | None, before: Line | None, place: int) -> str:
    if line is None:
        return f"line {place} can't be read"
    fits = (line.kind == "start") is (before is None)
    fits = fits and (before is None or line.number == before.number + 1)
    if not fits or _is_edited(line, before):
        return f"line {place} was changed, or one before it was removed"
    return ""


def folded(lines: Iterable[Line]) -> Anchors:
    anchors = Anchors()
    for line in lines:
        anchors.apply(line)
    return anchors


class Kept(Struct, frozen=True):
    """What the journal has of a stream, and what was noted of it elsewhere."""

    info: StreamInfo
    tombstone: Tombstone | None = None
    anchor: Anchor | None = None


class Anchored(Struct, frozen=True):
    """Which streams are anchored, and whether that itself is what it was."""

    streams: list[str]
    fault: Fault | None = None
    #: Why the user's own command was not given them.
    command: str = ""


RESTORED = (
    "If you have put an older copy of the journal in place, or have changed it, on purpose:"
    " `bridle audit accept`. If not, stop the server, keep the home as it is, and compare it with"
    " a backup."
)


def misfit(kept: Kept, anchor: Anchor | None) -> Fault | None:
    """What can be seen without reading the events: whether the stream begins and ends where its
    tombstone and an anchor say."""
    return _misfit_of_tombstone(kept) or (
        (_misfit_of_start(kept, anchor) or _misfit_of_end(kept, anchor)) if anchor else None
    )


def _misfit_of_tombstone(kept: Kept) -> Fault | None:
    floor = kept.info.first_seq - 1
    if floor < 0:
        return Fault(1, "it is said to begin before its first event", RESTORED)
    if kept.tombstone is None:
        if floor:
            return Fault(1, f"{_events(1, floor)} gone, and there is no tombstone", RESTORED)
    elif not kept.tombstone.fits(kept.info):
        reason = f"the tombstone of the events up to {kept.tombstone.upto} was changed"
        return Fault(min(floor, kept.tombstone.upto) or 1, reason, RESTORED)
    return None


def _misfit_of_start(kept: Kept, anchor: Anchor) -> Fault | None:
    floor, anchored = kept.info.first_seq - 1, anchor.head.first - 1
    mark = kept.tombstone.hash if kept.tombstone else b""
    if (floor, mark) == (anchored, anchor.head.tombstone) or mark == anchor.deleting:
        return None
    if floor < anchored:
        if kept.info.last_seq < anchored:
            return None  # that it ends too early says more
        reason = f"its events up to {anchored} were deleted, and some of them are there again"
        return Fault(floor + 1, reason, RESTORED)
    if floor == anchored:
        reason = f"the tombstone of the events up to {floor} is not the one that was anchored"
        return Fault(floor or 1, reason, RESTORED)
    gone = _events(anchored + 1, floor)
    return Fault(anchored + 1, f"{gone} gone, and no deletion of them is anchored", RESTORED)


def _misfit_of_end(kept: Kept, anchor: Anchor) -> Fault | None:
    last, head = kept.info.last_seq, anchor.head
    if last < head.last:
        missing = _events(last + 1, head.last)
        reason = f"{missing} missing: anchored at {_moment(anchor.at)}"
        return Fault(last + 1, reason, RESTORED)
    if last == head.last and kept.info.last_seal != head.seal:
        return other_seal(anchor)
    return None


def other_seal(anchor: Anchor) -> Fault:
    reason = (
        "the sealed events up to here are not those that were anchored"
        f" at {_moment(anchor.at)}: some were changed, and sealed anew"
    )
    return Fault(anchor.head.last, reason, RESTORED)


def _events(first: int, last: int) -> str:
    return f"event {first} is" if first == last else f"events {first} to {last} are"


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
