"""Server-sent events as bytes: made once, for all who follow.

Owns the words of the wire. A *frame* is what one event is for followers: one block of the wire or
several, of which only the last has the event's id, so that who is cut off between them gets all of
them again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Raw

from ...journal import Event, Live
from ..shapes.events import EventView

#: Hides secrets in JSON; what comes of it is JSON again.
Veil = Callable[[bytes], bytes]

#: What a client is told first: so many milliseconds to wait before it connects again.
RETRY = b"retry: 1000\n\n"
#: A comment: proxies and clients see by it that the connection is alive.
BEAT = b":\n\n"

#: What a frame takes in memory beside its text, about.
OVERHEAD = 300

_encode = msgspec.json.Encoder().encode


class Frame:
    """One event. `seq` is its number, of a live one the number that it comes after.

    Its bytes are made when somebody wants them, once behind the veil and once as they are.
    """

    __slots__ = ("_blocks", "_id", "_revealed", "_veiled", "is_live", "kind", "seq", "size")

    def __init__(
        self,
        seq: int,
        kind: str,
        blocks: Sequence[tuple[bytes, bytes]],
        *,
        id: str = "",  # noqa: A002 - it is called so on the wire
    ) -> None:
        self.seq = seq
        self.kind = kind
        self.is_live = not id
        self.size = sum(len(data) for _, data in blocks) + OVERHEAD
        self._id = id.encode()
        #: The name and the JSON of each.
        self._blocks = blocks
        self._veiled: bytes | None = None
        self._revealed: bytes | None = None

    def wire(self, veil: Veil | None) -> bytes:
        """All of it; without a veil, nothing is hidden."""
        if veil is None:
            if self._revealed is None:
                self._revealed = self._made(None)
            return self._revealed
        if self._veiled is None:
            self._veiled = self._made(veil)
        return self._veiled

    def _made(self, veil: Veil | None) -> bytes:
        last = len(self._blocks) - 1
        parts = []
        for number, (name, data) in enumerate(self._blocks):
            id_ = self._id if number == last else b""
            parts.append(block(name, veil(data) if veil else data, id_))
        return b"".join(parts)


def block(name: bytes, data: bytes, id_: bytes = b"") -> bytes:
    """One event of the wire; `data` is JSON without line breaks."""
    if id_:
        return b"id: %b\nevent: %b\ndata: %b\n\n" % (id_, name, data)
    return b"event: %b\ndata: %b\n\n" % (name, data)


def mark(id_: str) -> bytes:
    """Sets the id that a client resumes from, and is no event."""
    return b"id: %b\n\n" % id_.encode()


def on_one_line(data: bytes) -> bytes:
    """JSON may have line breaks between its tokens, and nowhere else; on the wire each would end
    the line."""
    if b"\n" in data or b"\r" in data:
        return data.replace(b"\r", b" ").replace(b"\n", b" ")
    return data


def view_of(event: Event) -> EventView:
    """An event as the API gives it: of a large one the beginning."""
    if event.blob is None:
        return EventView(seq=event.seq, at=event.at, kind=event.kind, body=Raw(event.body))
    head = Raw(_encode(event.body.decode(errors="replace")))
    return EventView(
        seq=event.seq, at=event.at, kind=event.kind, body=head, is_cut=True, size=event.blob.size
    )


def stored_frame(event: Event) -> Frame:
    data = on_one_line(_encode(view_of(event)))
    return Frame(event.seq, event.kind, [(event.kind.encode(), data)], id=str(event.seq))


def live_frame(live: Live, after: int, name: str = "") -> Frame:
    """A live event has no number, and so no id."""
    data = b'{"at":%b,"kind":%b,"body":%b}' % (_encode(live.at), _encode(live.kind), live.body)
    return Frame(after, live.kind, [((name or live.kind).encode(), on_one_line(data))])
