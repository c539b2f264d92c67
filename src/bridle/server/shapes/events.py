"""An event of a session's stream, as the API gives it."""

from __future__ import annotations

from msgspec import Raw, Struct

from ...views import TranscriptEntry


class EventView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`body` is the event's own JSON. `is_cut`: it is too large to be here, `body` is the beginning
    of it as a text, and `size` how many bytes there are; the event's own address has all."""

    seq: int
    at: float
    kind: str
    body: Raw
    is_cut: bool = False
    size: int = 0


class TranscriptPage(Struct, frozen=True, kw_only=True):
    """`count` is how many entries there are in all, `seq` the last event that is in them."""

    entries: list[TranscriptEntry]
    count: int
    seq: int
