"""Where what the CLI said goes, once it is committed: to its turn, its handler, or who waits.

Owns the way, and the refusing of what could not be committed; knows nothing of bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ..errors import CommitFailed, words_of
from ..protocol.answers import ModeSet
from ..protocol.events import (
    Event,
    MessageReceived,
    RequestReceived,
    RequestUnreadable,
    RequestWithdrawn,
    ResponseReceived,
    StreamEnded,
)
from .book import TurnBook
from .commit import Batch
from .responder import Responder
from .waiters import Waiters

_log = logging.getLogger("bridle.session")


class Router:
    """For one session."""

    def __init__(
        self,
        book: TurnBook,
        responder: Responder,
        waiters: Waiters,
        has_ended: Callable[[], None],
    ) -> None:
        self._book = book
        self._responder = responder
        self._waiters = waiters
        self._has_ended = has_ended
        #: The last batch that came here.
        self.routed: Batch = ()

    def route(self, batch: Batch, error: BaseException | None) -> None:
        self.routed = batch
        if error:
            self._not_committed(batch, error)
            return
        special, deliver = self._book.special, self._book.deliver
        for event in batch:
            try:
                if event.__class__ is MessageReceived:
                    (special.get(event.message.__class__) or deliver)(event)
                elif event.__class__ is RequestReceived:
                    self._responder.take(event)
                else:
                    self._route_control(event)
            except Exception:  # noqa: BLE001 - one event must not keep the next from its way
                _log.exception("could not route %r", event)

    def _route_control(self, event: Event) -> None:
        match event:
            case RequestUnreadable():
                self._responder.unreadable(event)
            case RequestWithdrawn(request_id=request_id):
                self._responder.withdraw(request_id)
            case ResponseReceived():
                outcome = getattr(event.outcome, "answer", None)
                if isinstance(outcome, ModeSet):
                    self._book.confirm_mode(outcome.mode)
                self._waiters.tell(event)
            case StreamEnded():
                self._has_ended()

    def _not_committed(self, batch: Batch, error: BaseException) -> None:
        """What is not written down must not be acted on: deny, and tell whoever waits."""
        failure = CommitFailed(f"what the CLI said could not be written down: {words_of(error)}")
        failure.__cause__ = error
        for event in batch:
            match event:
                case MessageReceived():
                    self._book.lose(event, failure)
                case RequestReceived() | RequestUnreadable():
                    self._responder.refuse(event, f"Bridle denied this: {failure}")
                case RequestWithdrawn(request_id=request_id):
                    self._responder.withdraw(request_id)
                case ResponseReceived(request_id=request_id):
                    self._waiters.fail(request_id, failure)
                case StreamEnded():
                    self._has_ended()
