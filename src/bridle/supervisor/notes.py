"""Bodies of a session's stream as events to append."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ..journal import Event, NewEvent
from ..views.stream import Entry

_encode = msgspec.json.Encoder().encode


def note(kind: str, body: Struct, *, is_sealed: bool = False) -> NewEvent:
    """`at` is the body's own, where it has one."""
    at = getattr(body, "at", None)
    if at is None:
        return NewEvent(kind, _encode(body), is_sealed=is_sealed)
    return NewEvent(kind, _encode(body), at, is_sealed)


def entry(event: Event) -> Entry:
    """A stored event, as folds take it."""
    return Entry(event.seq, event.at, event.kind, event.body, event.blob is not None)
