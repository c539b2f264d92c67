"""The one writer of an agent's inbox.

Owns the order: a line is written down in its final bytes, then appended. Lines that stop something
do not wait for a log that can't be written: they are appended at once, and written down after. What
the disk will not take is tried again; what somebody else has written there is told, once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

import msgspec

from ..journal import NewEvent
from ..process.spool import Spool
from ..protocol.control import ControlCancelLine
from ..protocol.outbound import Asking, read_written, subtype_of
from ..session.outgoing import Outgoing, Then
from ..views import stream
from .pen import Note, Pen

#: How long a line that stops something waits for those before it.
PATIENCE_SECONDS = 0.25
RETRY_SECONDS = 0.5

_log = logging.getLogger(__name__)


class _Line:
    __slots__ = ("note", "outgoing", "then")

    def __init__(self, outgoing: Outgoing, then: Then | None) -> None:
        self.outgoing = outgoing
        self.then = then
        self.note: Note | None = None


class Outbox:
    """The `send` of one launch's session. `end` is how long its inbox is."""

    def __init__(
        self,
        pen: Pen,
        spool: Spool,
        launch: str,
        *,
        end: int = 0,
        foreign: Callable[[str], None],
    ) -> None:
        self._pen = pen
        self._spool = spool
        self._launch = msgspec.json.encode(launch)
        self._foreign = foreign
        self._storing: deque[_Line] = deque()  # on their way to the log
        self._hurried: deque[_Line] = deque()  # those that wait for others, but not for long
        self._stored: deque[_Line] = deque()  # not, or not wholly, in the inbox
        self._rest = b""  # of the first of them
        self._timers: list[asyncio.TimerHandle] = []
        self._is_closed = False
        self._reserved = end
        #: How much of the inbox we have written; and where the last line ends that is answered.
        self.end = end
        self.asked_end = 0

    @property
    def is_idle(self) -> bool:
        return not (self._storing or self._hurried or self._stored)

    def send(self, outgoing: Outgoing, then: Then | None = None) -> None:
        if self._is_closed:
            return  # it would be written down, and never be told
        line = _Line(outgoing, then)
        if outgoing.is_urgent:
            self._hurry(line)
            return
        event = self._event(outgoing, is_late=False)
        self._storing.append(line)
        line.note = self._pen.write([event], self._is_stored)

    def drop(self, request_id: str) -> None:
        """The agent no longer asks: what is not written down yet is not to be written."""
        self._hurried = deque(line for line in self._hurried if line.outgoing.id != request_id)
        for line in [line for line in self._storing if line.outgoing.id == request_id]:
            if line.note and self._pen.take_back(line.note):
                self._storing.remove(line)
                self._reserved -= len(line.outgoing.line)

    def check(self) -> None:
        """Is the inbox as long as we have made it?"""
        if self._is_closed:
            return
        try:
            size = self._spool.inbox_size()
        except OSError:
            return
        if size != self.end and not self._rest:
            self.close()
            there = self._spool.read_inbox(self.end, 200) if size > self.end else b""
            self._foreign(
                f"somebody else wrote to it: {there[:200]!r}" if there else "somebody shortened it"
            )

    def close(self) -> None:
        """Write nothing more."""
        self._is_closed = True
        for timer in self._timers:
            timer.cancel()

    # --- what does not wait

    def _hurry(self, line: _Line) -> None:
        if self._storing and not self._pen.is_stuck:
            self._hurried.append(line)
            self._later(PATIENCE_SECONDS, self._go)
        else:
            self._go_first(line)

    def _go(self) -> None:
        while self._hurried:
            self._go_first(self._hurried.popleft())

    def _go_first(self, line: _Line) -> None:
        self._pen.write([self._event(line.outgoing, is_late=True)])
        self._stored.append(line)
        self._put()

    # --- what does

    def _is_stored(self) -> None:
        self._stored.append(self._storing.popleft())
        self._put()
        self._go()

    def _event(self, outgoing: Outgoing, *, is_late: bool) -> NewEvent:
        start, self._reserved = self._reserved, self._reserved + len(outgoing.line)
        return self._event_at(start, outgoing, is_late=is_late)

    def _event_at(self, start: int, outgoing: Outgoing, *, is_late: bool) -> NewEvent:
        encode = msgspec.json.encode
        body = b'{"launch":%b,"start":%d,"what":"%b","id":%b%b%b,"line":%b}' % (
            self._launch,
            start,
            outgoing.what.encode(),
            encode(outgoing.id),
            b',"type":%b' % encode(outgoing.type) if outgoing.type else b"",
            b',"is_late":true' if is_late else b"",
            outgoing.line.rstrip(b"\n"),
        )
        return NewEvent(stream.WROTE, body)

    def note_late(self, line: bytes, start: int) -> None:
        """A line of ours that is in the inbox, and that an earlier controller could not note."""
        match read_written(line):
            case Asking(request_id=request_id, request=request):
                outgoing = Outgoing(line, "request", request_id, subtype_of(request))
            case ControlCancelLine(request_id=request_id):
                outgoing = Outgoing(line, "cancel", request_id)
            case written:
                outgoing = Outgoing(line, "deny", getattr(written, "request_id", ""))
        self._pen.write([self._event_at(start, outgoing, is_late=True)])

    # --- into the file

    def add(self, data: bytes) -> None:
        """What an earlier controller could not append."""
        self._rest += data
        self._stored.appendleft(_Line(Outgoing(b"", "answer", ""), None))
        self._reserved = self.end + len(data)
        self._put()

    def _put(self) -> None:
        if self._is_closed:
            return
        if not self._rest:
            self.check()
        while self._stored and not self._is_closed:
            line = self._stored[0]
            data = self._rest or line.outgoing.line
            if not self._append(data):
                return
            self._rest = b""
            self._stored.popleft()
            if line.outgoing.what in ("prompt", "request"):
                self.asked_end = self.end
            if line.then:
                line.then()

    def _append(self, data: bytes) -> bool:
        """All of it; or what there was room for, and the rest later."""
        try:
            self._spool.append(data)
        except OSError as error:
            written = self._written(data)
            _log.error("the inbox of %s: %s; it will be tried again", self._spool.folder, error)
            if written:
                self.ring()
            if written == len(data):
                return True
            self._rest = data[written:]
            self._later(RETRY_SECONDS, self._put)
            return False
        self.end += len(data)
        self.ring()
        return True

    def ring(self) -> None:
        """Tell the shim that there is more."""
        # The line is there: that nobody could be told (no descriptor is left) must not double it.
        try:
            self._spool.ring()
        except OSError as error:
            _log.error("the doorbell of %s: %s; it will be rung again", self._spool.folder, error)
            self._later(RETRY_SECONDS, self.ring)

    def _written(self, data: bytes) -> int:
        """How much of it is there; what else is there is somebody else's, and will be seen."""
        try:
            there = self._spool.read_inbox(self.end, len(data))
        except OSError:
            return 0
        written = len(there) if data.startswith(there) else 0
        self.end += written
        return written

    def _later(self, seconds: float, do: Callable[[], None]) -> None:
        self._timers = [timer for timer in self._timers if timer.when() > _now()]
        self._timers.append(asyncio.get_running_loop().call_later(seconds, do))


def _now() -> float:
    return asyncio.get_running_loop().time()
