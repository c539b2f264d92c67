"""A session's state, made again from what an earlier controller of the same CLI heard and said.

Owns the order: each line once, as it came or went. Nothing is asked, answered or told by it;
`Session.go_on` does that with what is still open.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from ..ids import new_token
from ..protocol.answers import ModeSet
from ..protocol.connection import Connection
from ..protocol.events import (
    MessageReceived,
    RequestReceived,
    RequestUnreadable,
    ResponseReceived,
    Success,
)
from ..protocol.outbound import Prompting, read_written
from ..protocol.requests import SetPermissionMode
from .book import SavedBook, TurnBook
from .gate import Gate, SavedGate


class SavedSession(Struct, tag_field="format", tag="bridle-session-1"):
    """A session in which nothing was under way."""

    connection: Raw
    book: SavedBook
    gate: SavedGate | None = None


def read_saved(saved: bytes) -> SavedSession:
    return msgspec.json.decode(saved, type=SavedSession)


def connection_of(version: str | None, saved: SavedSession | None) -> Connection:
    """A new one, or one that goes on."""
    if saved:
        return Connection.restore(bytes(saved.connection), nonce=new_token(4))
    return Connection(nonce=new_token(4), version=version)


class Past:
    """Gives a session its past."""

    def __init__(self, connection: Connection, book: TurnBook, gate: Gate | None) -> None:
        self._connection = connection
        self._book = book
        self._gate = gate
        #: Requests for which a handler was called, and which may not be called again.
        self.begun: set[str] = set()

    def heard(self, line: bytes) -> None:
        """The CLI wrote this."""
        book = self._book
        for event in self._connection.receive(line + b"\n"):
            if isinstance(event, MessageReceived):
                (book.special.get(event.message.__class__) or book.deliver)(event)
            elif isinstance(event, ResponseReceived) and isinstance(event.outcome, Success):
                answer = event.outcome.answer
                if isinstance(answer, ModeSet):
                    book.confirm_mode(answer.mode)

    def wrote(self, line: bytes) -> None:
        """The CLI was told this, or is about to be."""
        written = read_written(line)
        if isinstance(written, Prompting):
            if written.uuid:
                self._book.open(written.uuid)
            return
        found = self._connection.recall(line)
        if isinstance(found, RequestReceived) and self._gate:
            self._gate.recall(found.request, line)
        elif isinstance(found, SetPermissionMode) and self._gate:
            self._gate.policy.tighten(found.mode)

    def policy_applied(self) -> None:
        """Somebody put it under another policy here: what was chosen before holds no more."""
        if self._gate:
            self._gate.policy.apply(self._gate.policy.base)

    def began(self, request_id: str) -> None:
        self.begun.add(request_id)

    def open_requests(self) -> list[RequestReceived | RequestUnreadable]:
        """What the CLI still waits for."""
        return list(self._connection.pending.values())
