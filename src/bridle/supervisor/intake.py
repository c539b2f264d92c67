"""What an agent says, on its way to the log and then to its session.

Owns how a line becomes an event: with the launch and the place in the spool up to which it is
stored, so that log and place can never disagree. Deltas are told to those who listen, not stored.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Protocol, TypeAlias

import msgspec

from ..journal import EventLog, Live, NewEvent
from ..protocol import events as heard
from ..protocol.messages import KeepAlive, StreamEvent
from ..protocol.unknown import Unknown
from ..session.commit import Batch, Then
from ..views import stream
from .pen import Pen, fits

Heard: TypeAlias = heard.Event

_KINDS: dict[type, str] = {
    heard.MessageReceived: stream.SAID,
    heard.RequestReceived: stream.ASKED,
    heard.RequestUnreadable: stream.UNREADABLE,
    heard.RequestWithdrawn: stream.WITHDREW,
    heard.ResponseReceived: stream.ANSWERED,
    heard.LineIgnored: stream.IGNORED,
    heard.LineMalformed: stream.MALFORMED,
    heard.LineOversized: stream.OVERSIZED,
}


class Answers(Protocol):
    """Those that are on their way to the agent."""

    def drop(self, request_id: str, /) -> None:
        """The agent no longer asks."""


class Intake:
    """The `commit` of one launch's session."""

    def __init__(self, pen: Pen, log: EventLog, session: str, launch: str, outbox: Answers) -> None:
        self._pen = pen
        self._log = log
        self._session = session
        self._launch = msgspec.json.encode(launch)
        self._outbox = outbox
        #: Where in the output those lines end that are stored: the log knows of nothing behind.
        self.stored = 0
        #: Where in the output the lines end that the session has read.
        self.consumed: Callable[[], int] = lambda: 0

    def commit(self, batch: Batch, then: Then) -> None:
        live, kept = [], []
        for event in batch:
            kind = event.__class__
            if kind is heard.MessageReceived:
                message = event.message  # type: ignore[union-attr]
                if message.__class__ is StreamEvent:
                    live.append(Live(stream.DELTA, event.raw))  # type: ignore[union-attr]
                    continue
                if message.__class__ is KeepAlive:
                    continue
            elif kind is heard.StreamEnded:
                continue
            elif kind is heard.RequestWithdrawn:
                self._outbox.drop(event.request_id)  # type: ignore[union-attr]
            kept.append(event)
        if live:
            self._log.publish(self._session, live)
        end = self.consumed()
        self._pen.write(self._events(kept, end), partial(self._is_stored, batch, then, kept, end))

    def _events(self, kept: Sequence[Heard], end: int) -> list[NewEvent]:
        events = [self._event(event, end) for event in kept]
        if len(events) > 1 and not fits(events):
            # They are stored in parts: until the last is, reading would go on where it was.
            events = [*(self._event(event, self.stored) for event in kept[:-1]), events[-1]]
        return events

    def _is_stored(self, batch: Batch, then: Then, kept: Sequence[Heard], end: int) -> None:
        if kept:
            self.stored = end
        then(batch, None)

    def _event(self, event: Heard, end: int) -> NewEvent:
        return NewEvent(_KINDS[event.__class__], self._body(event, b"%d" % end))

    def _body(self, event: Heard, end: bytes) -> bytes:
        head = b'{"launch":%b,"end":%b%b' % (self._launch, end, _head(event))
        raw: bytes = event.raw  # type: ignore[union-attr]
        is_cut = isinstance(event, heard.LineOversized | heard.LineMalformed)
        if is_cut or getattr(event, "repaired", False) or _is_torn(event):
            return b'%b,"bytes":"%b"}' % (head, base64.b64encode(raw))
        return b'%b,"line":%b}' % (head, raw)


def _is_torn(event: Heard) -> bool:
    """Of an unreadable request there may be no more than the head."""
    if not isinstance(event, heard.RequestUnreadable):
        return False
    try:
        msgspec.json.decode(event.raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True
    return False


def _head(event: Heard) -> bytes:
    match event:
        case heard.MessageReceived(message=Unknown(type=type_)):
            return b',"type":' + msgspec.json.encode(type_)
        case heard.MessageReceived(message=message):
            return _type_of(type(message))
        case heard.RequestReceived(request_id=id_, request=request):
            subtype = str(request.__struct_config__.tag)
            return b',"type":"%b","id":%b' % (subtype.encode(), msgspec.json.encode(id_))
        case heard.RequestUnreadable(request_id=id_, subtype=subtype, reason=reason):
            parts = (msgspec.json.encode(part) for part in (subtype, id_, reason))
            return b',"type":%b,"id":%b,"reason":%b' % tuple(parts)
        case heard.ResponseReceived(request_id=id_, request=asked):
            subtype = str(asked.__struct_config__.tag)
            return b',"type":"%b","id":%b' % (subtype.encode(), msgspec.json.encode(id_))
        case heard.RequestWithdrawn(request_id=id_):
            return b',"id":' + msgspec.json.encode(id_)
        case heard.LineIgnored(reason=reason) | heard.LineMalformed(reason=reason):
            return b',"reason":' + msgspec.json.encode(reason)
        case heard.LineOversized(length=length):
            return b',"reason":"a line of %d bytes"' % length
    return b""


@cache
def _type_of(kind: type[msgspec.Struct]) -> bytes:
    """`"type":"assistant"`, or `"system/init"` for a message that has a subtype."""
    config = kind.__struct_config__
    name = f"system/{config.tag}" if config.tag_field == "subtype" else config.tag
    return b',"type":' + msgspec.json.encode(name)
