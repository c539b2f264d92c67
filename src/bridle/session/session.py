"""One agent: a CLI behind a transport, its turns, its requests and its end.

Owns the order of things: bytes -> `Connection` -> `commit` -> route. Nothing is routed from the
reader directly. What each part does is in the part: turns in `book`, answers in `responder`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

from msgspec import UNSET

from ..errors import (
    CommitFailed,
    NotSupported,
    RequestTimedOut,
    SessionClosed,
    SessionEnded,
    UnreadableAnswer,
    words_of,
)
from ..ids import new_token, new_uuid
from ..process.stop import uncancelled
from ..process.transport import StopLimits, Stopped, Transport
from ..protocol.answers import Answered, Initialized, ModeSet
from ..protocol.blocks import KnownBlock, TextBlock
from ..protocol.capabilities import ANSWERED_SINCE, Capabilities
from ..protocol.connection import Connection
from ..protocol.control import Priority
from ..protocol.events import (
    Counters,
    Event,
    MessageReceived,
    RequestReceived,
    RequestUnreadable,
    RequestWithdrawn,
    ResponseReceived,
    StreamEnded,
)
from ..protocol.outbound import subtype_of
from ..protocol.requests import EndSession, Interrupt, OutboundRequest
from ..protocol.unknown import Unknown
from .book import TurnBook
from .commit import Batch, Commit, at_once
from .folder import Survey
from .gated import GatedControls
from .options import SessionOptions
from .responder import Handlers, Responder
from .turns import Tap, Turn, turns_in

_A = TypeVar("_A", bound=Answered)
_log = logging.getLogger("bridle.session")


class Session(GatedControls):
    """One agent, from its start to its end. `bridle.connect` makes them."""

    def __init__(
        self,
        transport: Transport,
        handlers: Handlers,
        options: SessionOptions,
        commit: Commit = at_once,
    ) -> None:
        self._transport = transport
        self._options = options
        self._handlers = handlers
        self._commit = commit
        self._connection = Connection(nonce=new_token(4), version=transport.version)
        self._responder = Responder(self._connection, handlers, self._write)
        self._book = TurnBook(options.unread_bytes, shows_replays=options.shows_replays)
        self._gate = handlers.gate
        if self._gate:
            self._book.watch(self._gate)
        self._answers: dict[str, asyncio.Future[ResponseReceived]] = {}
        self._unsent: list[bytes] = []
        self._is_ready = False
        self._info: Initialized | None = None
        self._end: SessionEnded | None = None
        self._routed: Batch = ()
        self._stopping: asyncio.Task[Stopped] | None = None

    # --- what is known

    @property
    def info(self) -> Initialized:
        """What the CLI told of itself in the handshake."""
        if self._info is None:
            raise SessionClosed("the session is not ready: the CLI has not told anything yet")
        return self._info

    @property
    def id(self) -> str | None:
        """The CLI's session id: None before the first turn, and it may change (/clear, a fork)."""
        return self._book.session_id

    @property
    def permission_mode(self) -> str | None:
        """The mode that the CLI has confirmed last, not the one that was asked for."""
        return self._book.permission_mode

    @property
    def withheld(self) -> Survey | None:
        """What the folder would have brought, and was kept out."""
        return self._options.withheld

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs or a prompt waits for its turn."""
        return self._book.is_busy

    @property
    def capabilities(self) -> Capabilities:
        return self._connection.capabilities

    @property
    def counters(self) -> Counters:
        """How often the CLI said what it should not."""
        return self._connection.counters

    @property
    def stderr(self) -> str:
        """The end of what the CLI wrote to stderr."""
        return self._transport.stderr

    # --- starting

    async def start(self) -> None:
        """Start the CLI and shake hands; what is sent before it answers is queued."""
        self._check_open()
        await self._transport.start(self)
        self._connection.capabilities = self.capabilities.learn(self._transport.version)
        if self._gate:
            self._gate.meet(self.capabilities, self._end_turn, self._book.confirm_mode)
        self._options.initialize.hooks = self._handlers.hooks.matchers(self.capabilities)
        limit = self._options.handshake_seconds
        self._info = await self.ask(self._options.initialize, Initialized, limit)
        self._book.confirm_mode(self._info.current_permission_mode)
        self._is_ready = True
        unsent, self._unsent = self._unsent, []
        for line in unsent:
            self._write(line)

    # --- talking

    async def send(
        self,
        prompt: str | Sequence[KnownBlock | str],
        *,
        priority: Priority | None = None,
        query: bool = True,
    ) -> Turn:
        """Give the agent a prompt. While a turn runs, it is queued or joins that turn.

        `query=False` adds to the conversation without asking the model (new CLIs only).
        """
        self._check_open()
        if not query and self.capabilities.does("prompts without a query") == "no":
            raise NotSupported("a prompt without a query", self.capabilities.version, "2.1.325")
        content = (
            prompt
            if isinstance(prompt, str)
            else [TextBlock(part) if isinstance(part, str) else part for part in prompt]
        )
        uuid = new_uuid()
        line = self._connection.prompt(
            content,
            uuid=uuid,
            priority=priority or UNSET,
            should_query=UNSET if query else False,
        )
        turn = Turn(self._book.open(uuid))
        if self._is_ready:
            self._write(line)
        else:
            self._unsent.append(line)
        return turn

    def messages(self) -> Tap:
        """Every message from now on, of whatever turn and of none."""
        return Tap(mailbox := self._book.tap(), lambda: self._book.untap(mailbox))

    def unprompted(self) -> AsyncIterator[Turn]:
        """The turns that nobody prompted (a background task's end), from now on."""
        return turns_in(self._book.unprompted())

    async def ask(
        self, request: OutboundRequest, answer: type[_A], timeout: float | None = None
    ) -> _A:
        """Write a request and wait for its answer; `Controls` has a method for each."""
        self._check_open()
        subtype = subtype_of(request)
        if self.capabilities.answers(subtype) == "no":
            since = ".".join(map(str, ANSWERED_SINCE[subtype]))
            raise NotSupported(subtype, self.capabilities.version, since)
        request_id, line = self._connection.request(request)
        future = self._answers[request_id] = asyncio.get_running_loop().create_future()
        self._write(line)
        seconds = self._options.request_seconds if timeout is None else timeout
        try:
            async with asyncio.timeout(seconds):
                response = await future
        except TimeoutError:
            raise RequestTimedOut(subtype, seconds, self.stderr) from None
        finally:
            self._answers.pop(request_id, None)
            # Timed out, or nobody waits any more: a late answer is to be ignored.
            if request_id in self._connection.asked and not self._connection.is_ended:
                self._write(self._connection.cancel(request_id))
        told = response.answer()
        if isinstance(told, Unknown):
            raise UnreadableAnswer(subtype, told.reason, told.raw)
        assert isinstance(told, answer)
        return told

    # --- ending

    async def stop(self, limits: StopLimits | None = None) -> Stopped:
        """End the agent and all that it has started; tells which step was needed.

        Whoever cancels it, it goes on; asked again, it gives the same answer.
        """
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop(limits or self._options.stop))
        return await uncancelled(self._stopping)

    async def _stop(self, limits: StopLimits) -> Stopped:
        asked = False
        if self._gate:
            # Before anything else: what is decided from now on would reach nobody.
            self._gate.ended("the session was stopped")
        if not self._connection.is_ended and self._transport.exit is None:
            if self.is_busy:
                self._tell(Interrupt())
            if self._is_ready and self.capabilities.answers("end_session") == "yes":
                self._tell(EndSession())
                asked = True
        try:
            return await self._transport.stop(limits, asked=asked)
        finally:
            closed = SessionClosed("the session was stopped")
            self._fail_all(closed)
            self._book.close(closed)
            await self._responder.close()
            if self._options.log:
                self._options.log.close()

    def _end_turn(self) -> None:
        if not self._connection.is_ended:
            self._tell(Interrupt())

    def _tell(self, request: OutboundRequest) -> None:
        """A request whose answer nobody waits for."""
        _, line = self._connection.request(request)
        self._write(line)

    def _check_open(self) -> None:
        if self._end:
            raise self._end.with_traceback(None)
        if self._stopping:
            raise SessionClosed("the session was stopped")
        if self._connection.is_ended:
            raise self._how_it_ended()

    # --- what the transport tells

    def received(self, data: bytes) -> None:
        if self._options.log:
            self._options.log.received(data)
        events = self._connection.receive(data)
        if events:
            self._hand_over(events)

    def complained(self, text: str) -> None:
        if self._options.log:
            self._options.log.complained(text)
        if self._options.on_stderr:
            try:
                self._options.on_stderr(text)
            except Exception:  # noqa: BLE001 - the user's mistake must not stop the reading
                _log.exception("on_stderr failed")

    def ended(self) -> None:
        self._hand_over(self._connection.receive_eof())

    def _hand_over(self, batch: Batch) -> None:
        try:
            self._commit(batch, self._route)
        except Exception as error:  # noqa: BLE001 - it should have told, but it means the same
            if self._routed is batch:
                _log.exception("the commit failed after it had succeeded")
            else:
                self._route(batch, error)

    def _write(self, line: bytes) -> None:
        if self._options.log:
            self._options.log.sent(line)
        self._transport.write(line)

    # --- routing

    def _route(self, batch: Batch, error: BaseException | None) -> None:
        self._routed = batch
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
            case ResponseReceived(request_id=request_id):
                self._responded(request_id, event)
            case StreamEnded():
                self._has_ended()

    def _responded(self, request_id: str, event: ResponseReceived) -> None:
        outcome = getattr(event.outcome, "answer", None)
        if isinstance(outcome, ModeSet):
            self._book.confirm_mode(outcome.mode)
        waiter = self._answers.pop(request_id, None)
        if waiter and not waiter.done():
            waiter.set_result(event)

    def _has_ended(self) -> None:
        self._end = self._how_it_ended()
        if self._gate:
            self._gate.ended(str(self._end))
        self._responder.cancel_all()
        self._fail_all(self._end)
        self._book.close(SessionClosed("the session was stopped") if self._stopping else self._end)

    def _how_it_ended(self) -> SessionEnded:
        status = self._transport.exit
        how = str(status) if status else "closed its output"
        return SessionEnded(
            f"{how}, and said: {self._book.complaint}" if self._book.complaint else how,
            exit_code=status.code if status else None,
            signal=status.signal if status else None,
            stderr=self._transport.stderr,
        )

    def _fail_all(self, error: BaseException) -> None:
        for request_id, waiter in list(self._answers.items()):
            if not waiter.done():
                request = self._connection.asked.get(request_id)
                if isinstance(error, SessionEnded) and request is not None:
                    error = error.while_asking(subtype_of(request))
                waiter.set_exception(error)

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
                    waiter = self._answers.pop(request_id, None)
                    if waiter and not waiter.done():
                        waiter.set_exception(failure)
                case StreamEnded():
                    self._has_ended()
