"""One agent: a CLI behind a transport, its turns, its requests and its end.

Owns the order of things: bytes -> `Connection` -> `commit` -> route. Nothing is routed from the
reader directly. What each part does is in the part: turns in `book`, answers in `responder`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

from msgspec import UNSET, Raw

from ..errors import (
    InvalidLaunch,
    NotSupported,
    SessionClosed,
    SessionEnded,
)
from ..ids import new_uuid
from ..process.stop import uncancelled
from ..process.transport import StopLimits, Stopped, Transport
from ..protocol.answers import Answered, Initialized
from ..protocol.blocks import KnownBlock
from ..protocol.capabilities import ANSWERED_SINCE, Capabilities
from ..protocol.control import Priority
from ..protocol.events import (
    Counters,
)
from ..protocol.outbound import subtype_of
from ..protocol.requests import EndSession, Initialize, Interrupt, OutboundRequest
from .book import TurnBook
from .commit import NOTHING_BETWEEN, Batch, Seams
from .folder import Survey
from .gate import Gate
from .gated import GatedControls
from .inline_commands import check_prompt
from .options import SessionOptions
from .outgoing import Outgoing, nowhere
from .past import Past, SavedSession, connection_of
from .responder import Handlers, Responder
from .router import Router
from .turns import Tap, Turn, turns_in
from .waiters import Waiters

#: For an agent that did what nobody has allowed.
AT_ONCE = StopLimits(graceful=0.0, signal=0.5, total=5.0)

_A = TypeVar("_A", bound=Answered)
_log = logging.getLogger("bridle.session")


class Session(GatedControls):
    """One agent, from its start to its end. `bridle.connect` makes them."""

    def __init__(
        self,
        transport: Transport,
        handlers: Handlers,
        options: SessionOptions,
        seams: Seams = NOTHING_BETWEEN,
        saved: SavedSession | None = None,
    ) -> None:
        self._transport = transport
        self._options = options
        self._handlers = handlers
        self._commit = seams.commit
        self._pass_on = seams.send or self._write_now
        self._connection = connection_of(transport.version, saved)
        self._responder = Responder(self._connection, handlers, self._send, seams.begin)
        self._waiters = Waiters(self._connection)
        self._book = TurnBook(options.unread_bytes, shows_replays=options.shows_replays)
        self._gate = handlers.gate
        if self._gate:
            self._book.watch(self._gate)
        if saved:
            self._book.restore(saved.book)
            if self._gate and saved.gate:
                self._gate.restore(saved.gate)
        self._unsent: list[Outgoing] = []
        self._is_ready = False
        self._end: SessionEnded | None = None
        self._router = Router(self._book, self._responder, self._waiters, self._has_ended)
        self._stopping: asyncio.Task[Stopped] | None = None
        self._halt_with = seams.halt or self._stop_at_once
        #: Why nobody can talk to it any more.
        self._why_stopped = "the session was stopped"
        #: Why Bridle has ended it at once: something ran that nobody allowed.
        self.halted_because = ""

    # --- what is known

    @property
    def info(self) -> Initialized:
        """What the CLI told of itself in the handshake."""
        told = self.capabilities.initialized
        if told is None:
            raise SessionClosed("the session is not ready: the CLI has not told anything yet")
        return told

    @property
    def book(self) -> TurnBook:
        """Its turns."""
        return self._book

    @property
    def is_over(self) -> bool:
        return bool(self._end or self._stopping)

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

    def taken_back(self, uuid: str, /) -> None:
        self._book.take_back(uuid)

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

    @property
    def consumed(self) -> int:
        """How many bytes of the CLI's output make up the lines that were read so far."""
        return self._connection.consumed

    # --- starting

    async def start(self) -> None:
        """Start the CLI and shake hands; what is sent before it answers is queued."""
        self._check_open()
        await self._transport.start(self)
        self._meet()
        await self.initialize()
        if self._gate:
            self._check_version()
        self._has_met()

    def past(self) -> Past:
        """To be told what an earlier controller of the same CLI heard and said."""
        return Past(self._connection, self._book, self._gate)

    async def go_on(self, past: Past, offset: int) -> None:
        """Go on where that controller stopped, at this byte of the output. The CLI, which knows
        nothing of it, is not initialised again: a hook that waits would fail by it."""
        self._connection.go_on_at(offset)
        self._meet()
        await self._transport.start(self)
        self._responder.take_over(past.open_requests(), past.begun)
        if self._gate and not self._book.is_running:
            self._gate.turn_ended()
        if self.capabilities.initialized is None:
            await self._shaken_hands()
        self._has_met()

    def save(self) -> SavedSession | None:
        """For a later controller, with which it need not be told all of the past; None while
        something is under way."""
        is_quiet = not (self._connection.pending or self._connection.asked)
        if not is_quiet or (self._gate and not self._gate.is_idle):
            return None
        gate = self._gate.save() if self._gate else None
        return SavedSession(Raw(self._connection.save()), self._book.save(), gate)

    async def initialize(self) -> Initialized:
        """Tell the CLI what we are. Again only if a part of what it said is lost: see protocol."""
        told = await self.ask(
            self._options.initialize, Initialized, self._options.handshake_seconds
        )
        self._book.confirm_mode(told.current_permission_mode)
        return told

    async def _shaken_hands(self) -> None:
        """The handshake was begun by another, perhaps."""
        for request_id, request in self._connection.asked.items():
            if isinstance(request, Initialize):
                future, limit = self._waiters.wait(request_id), self._options.handshake_seconds
                told = await self._waiters.answer(
                    future, "initialize", Initialized, limit, self._transport
                )
                self._book.confirm_mode(told.current_permission_mode)
                return
        await self.initialize()

    def _check_version(self) -> None:
        """An old CLI that claims to be a new one was not started as it needs: the settings of the
        user or the folder may have switched our hooks off."""
        claimed = self._transport.version
        is_new = Capabilities(claimed).does("settings can't remove hooks") == "yes"
        if is_new and self.info.claude_code_version is None:
            raise InvalidLaunch(
                f"the program claims to be Claude Code {claimed} but answers like an older one: "
                "have its wrapper pass on what `claude --version` says"
            )

    def _meet(self) -> None:
        self._connection.capabilities = self.capabilities.learn(self._transport.version)
        if self._gate:
            self._meet_gate(self._gate)
        self._options.initialize.hooks = self._handlers.hooks.matchers(self.capabilities)

    def _meet_gate(self, gate: Gate) -> None:
        gate.meet(
            lambda: self.capabilities, self._end_turn, self._book.confirm_mode, self._halt_with
        )

    def _has_met(self) -> None:
        self._is_ready = True
        unsent, self._unsent = self._unsent, []
        for outgoing in unsent:
            self._send(outgoing)

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
        if self.policy:
            check_prompt(prompt, self.policy.ground, self.policy.judge)
        uuid = new_uuid()
        line = self._connection.prompt(
            prompt,
            uuid=uuid,
            priority=priority or UNSET,
            should_query=UNSET if query else False,
        )
        return self.prompt(uuid, line)

    def prompt(self, uuid: str, line: bytes) -> Turn:
        """Give the agent a prompt that is a line already."""
        turn = Turn(self._book.open(uuid))
        outgoing = Outgoing(line, "prompt", uuid)
        if self._is_ready:
            self._send(outgoing)
        else:
            self._unsent.append(outgoing)
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
        future = self._waiters.wait(request_id)
        self._send(Outgoing(line, "request", request_id, subtype))
        seconds = self._options.request_seconds if timeout is None else timeout
        try:
            return await self._waiters.answer(future, subtype, answer, seconds, self._transport)
        finally:
            self._waiters.leave(request_id)
            # Timed out, or nobody waits any more: a late answer is to be ignored.
            if request_id in self._connection.asked and not self._connection.is_ended:
                self._send(Outgoing(self._connection.cancel(request_id), "cancel", request_id))

    # --- ending

    async def stop(self, limits: StopLimits | None = None) -> Stopped:
        """End the agent and all that it has started; tells which step was needed.

        Whoever cancels it, it goes on; asked again, it gives the same answer.
        """
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop(limits or self._options.stop))
        try:
            return await uncancelled(self._stopping)
        except OSError:
            self._stopping = None  # nothing could be looked at: it may be tried again
            raise

    async def _stop(self, limits: StopLimits) -> Stopped:
        asked = False
        if self._gate:
            # Before anything else: what is decided from now on would reach nobody.
            self._gate.ended(self._why_stopped)
        if not self._connection.is_ended and self._transport.exit is None:
            if self.is_busy:
                self._tell(Interrupt())
            if self._is_ready and self.capabilities.answers("end_session") == "yes":
                self._tell(EndSession())
                asked = True
        try:
            return await self._transport.stop(limits, asked=asked)
        finally:
            closed = SessionClosed(self._why_stopped)
            self._waiters.fail_all(closed)
            self._book.close(closed)
            await self._responder.close()
            if self._options.log:
                self._options.log.close()

    def _stop_at_once(self, words: str) -> None:
        if self._stopping is None:
            self.halted_because = words
            self._why_stopped = f"Bridle stopped the session: {words}"
            self._stopping = asyncio.ensure_future(self._stop(AT_ONCE))
            self._book.close(SessionClosed(self._why_stopped))

    async def leave(self) -> None:
        """We go, and the CLI stays: nothing is answered, cancelled or told any more by us."""
        self._pass_on = nowhere
        tasks = self._responder.leave()
        closed = SessionClosed("the controller has left the session")
        self._waiters.fail_all(closed)
        self._book.close(closed)
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)

    def _end_turn(self) -> None:
        if not self._connection.is_ended:
            self._tell(Interrupt())

    def _tell(self, request: OutboundRequest) -> None:
        """A request whose answer nobody waits for."""
        request_id, line = self._connection.request(request)
        self._send(Outgoing(line, "request", request_id, subtype_of(request)))

    def _check_open(self) -> None:
        if self.halted_because:
            raise SessionClosed(self._why_stopped)
        if self._end:
            raise self._end.with_traceback(None)
        if self._stopping:
            raise SessionClosed(self._why_stopped)
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
            self._commit(batch, self._router.route)
        except Exception as error:  # noqa: BLE001 - it should have told, but it means the same
            if self._router.routed is batch:
                _log.exception("the commit failed after it had succeeded")
            else:
                self._router.route(batch, error)

    def _send(self, outgoing: Outgoing, then: Callable[[], None] | None = None) -> None:
        if not outgoing.line:
            return  # there is nothing that this CLI could be told
        if self._options.log:
            self._options.log.sent(outgoing.line)
        self._pass_on(outgoing, then)

    def _write_now(self, outgoing: Outgoing, then: Callable[[], None] | None) -> None:
        self._transport.write(outgoing.line)
        if then:
            then()

    def _has_ended(self) -> None:
        self._end = self._how_it_ended()
        if self._gate:
            self._gate.ended(str(self._end))
        self._responder.cancel_all()
        self._waiters.fail_all(self._end)
        self._book.close(SessionClosed(self._why_stopped) if self._stopping else self._end)

    def _how_it_ended(self) -> SessionEnded:
        status = self._transport.exit
        how = str(status) if status else "closed its output"
        return SessionEnded(
            f"{how}, and said: {self._book.complaint}" if self._book.complaint else how,
            exit_code=status.code if status else None,
            signal=status.signal if status else None,
            stderr=self._transport.stderr,
        )
