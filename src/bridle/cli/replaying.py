"""A recording as the events that a supervisor would have written down, for the views.

Owns how lines of the wire become such events; what they look like is the `terminal`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from ..process.recording import Entry
from ..views import stream

LAUNCH = "recorded"
#: Lines between the two programs, of which a transcript has nothing.
_UNTOLD = frozenset(
    ("control_request", "control_response", "control_cancel_request", "keep_alive", "stream_event")
)


class _Line(Struct):
    type: str = ""
    uuid: str = ""


def events_of(entries: Iterable[Entry]) -> Iterator[tuple[float, stream.Entry | None]]:
    """Each line with its time; None for what a transcript has nothing of."""
    seq = 0
    for entry in entries:
        made = _made(entry)
        if made is None:
            yield entry.t, None
            continue
        kind, body = made
        seq += 1
        yield entry.t, stream.Entry(seq, entry.t, kind, msgspec.json.encode(body))


def _made(entry: Entry) -> tuple[str, Any] | None:
    match entry.dir:
        case "out":
            return _said(entry)
        case "in":
            return _told(entry)
        case "err":
            text = str(entry.value())
            return stream.STDERR, stream.Stderr(launch=LAUNCH, end=0, text=text)
        case "note":
            return None


def _said(entry: Entry) -> tuple[str, Any] | None:
    line = _line(entry)
    if line is None or not line.type:
        return None
    if line.type in _UNTOLD:
        return None
    return stream.SAID, stream.Line(launch=LAUNCH, end=0, line=Raw(entry.line))


def _told(entry: Entry) -> tuple[str, Any] | None:
    line = _line(entry)
    if line is None or line.type != "user":
        return None
    return stream.WROTE, stream.Wrote(
        launch=LAUNCH, start=0, what="prompt", id=line.uuid, line=Raw(entry.line)
    )


def _line(entry: Entry) -> _Line | None:
    try:
        return msgspec.json.decode(entry.line, type=_Line)
    except msgspec.MsgspecError:
        return None
