"""The control protocol as a state machine: bytes in -> events out, intents in -> bytes out.

Owns framing, routing by kind, and the state that a later controller takes over; the two ways of
asking are in `inbound` and `outbound`. Does not read or write pipes, look at the clock, log, sleep
or decide; randomness is passed in. Every method that returns bytes returns whole lines, to be
written in the order in which they were asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ..errors import ConnectionEnded, InvalidRequest, InvalidState
from .answers import Initialized
from .blocks import KnownBlock
from .capabilities import Capabilities
from .careful import Malformed, Reading, UnreadableRequest, read_line, read_system
from .codec import (
    DECODE_ERRORS,
    PLAIN_TYPES,
    SystemHead,
    line_decoder,
)
from .content import unknown_parts
from .control import (
    PENDING_LISTS,
    Answer,
    ControlCancelLine,
    ControlFailure,
    ControlRequestLine,
    ControlResponseLine,
    ControlSuccess,
    Priority,
)
from .events import (
    Asked,
    Counters,
    Event,
    LineMalformed,
    LineOversized,
    MessageReceived,
    RequestReceived,
    RequestUnreadable,
    StreamEnded,
    Success,
    Unanswered,
)
from .framing import DEFAULT_LIMIT, LineSplitter, Oversize, Unfinished
from .inbound import Fate, InboundRequests
from .messages import Message
from .outbound import Answering, Asking, OutboundRequests, prompt_line, read_written, subtype_of
from .requests import OutboundRequest
from .system import Init
from .unknown import Unknown

#: Of so many settled requests a later controller knows: duplicates come soon, or not at all.
SAVED_IDS = 512


class SavedConnection(Struct, tag_field="format", tag="bridle-connection-1"):
    """All that a later controller needs to take over in mid-conversation."""

    line_limit: int
    consumed: int
    next_number: int
    capabilities: Capabilities
    unfinished: Unfinished
    asked: dict[str, OutboundRequest]
    responded: list[str]
    cancelled: list[str]
    pending: list[bytes]
    fates: dict[str, Fate]
    counters: Counters
    ended: bool


class Connection:
    """One conversation with one CLI process.

    `nonce` makes our request ids unlike those of any other controller of the same process: give
    a fresh random one each time. `version` is the CLI's, where the launch has found it out.
    """

    def __init__(
        self, *, nonce: str, version: str | None = None, line_limit: int = DEFAULT_LIMIT
    ) -> None:
        self.capabilities = Capabilities(version)
        self.counters = Counters()
        self._splitter = LineSplitter(line_limit)
        self._decode = line_decoder()
        self._inbound = InboundRequests(self.counters)
        self._outbound = OutboundRequests(self.counters, nonce)
        self._ended = False

    @property
    def pending(self) -> Mapping[str, Asked]:
        """The CLI's requests that wait for our answer."""
        return self._inbound.pending

    @property
    def asked(self) -> Mapping[str, OutboundRequest]:
        """Our requests that wait for the CLI's answer."""
        return self._outbound.asked

    @property
    def is_ended(self) -> bool:
        """The CLI's output is over: nothing more can be written for it."""
        return self._ended

    # --- from the CLI

    @property
    def consumed(self) -> int:
        """How many bytes of the CLI's output make up the lines that were read so far.

        What has come after them is the half of a line: a later reader starts here.
        """
        return self._splitter.consumed

    def receive(self, data: bytes) -> list[Event]:
        """Take the next bytes of the CLI's output; give what they say."""
        if self._ended:
            self._check_open("bytes")
        return self._read(self._splitter.feed(bytes(data)))

    def receive_eof(self) -> list[Event]:
        """The CLI's output has ended: its last words, then all that is still open."""
        if self._ended:
            return []
        events = self._read(self._splitter.finish())
        self._ended = True
        unanswered = [Unanswered(*item) for item in self.asked.items()]
        events.append(StreamEnded(unanswered, list(self.pending.values())))
        return events

    def _read(self, lines: list[bytes | Oversize]) -> list[Event]:
        events: list[Event] = []
        append = events.append
        decode = self._decode
        for line in lines:
            if isinstance(line, Oversize):
                self._oversized(line, events)
                continue
            try:
                message = decode(line)
            except DECODE_ERRORS:
                self._carefully(line, events)
                continue
            if message.__class__ in PLAIN_TYPES:
                append(MessageReceived(message, line))  # type: ignore[arg-type]
            elif message.__class__ is ControlRequestLine:
                self._requested(message, line, append)
            elif isinstance(message, SystemHead):
                system = read_system(line)
                if isinstance(system, Message):
                    self._route(Reading(system), line, events)
                else:
                    self._carefully(line, events)
            else:
                self._route(Reading(message), line, events)
        return events

    def _requested(
        self, asked: ControlRequestLine, line: bytes, append: Callable[[Event], None]
    ) -> None:
        event = RequestReceived(asked.request_id, asked.request, line)
        append(self._inbound.receive(event))

    def _carefully(self, line: bytes, events: list[Event]) -> None:
        if not line.isspace():
            self._route(read_line(line), line, events)

    def _route(self, reading: Reading, raw: bytes, events: list[Event]) -> None:
        self.counters.repaired += reading.repaired
        self.counters.dropped += len(reading.dropped)
        match reading.decoded:
            case ControlRequestLine(request_id=request_id, request=request):
                self.counters.unknown += len(unknown_parts(request))
                asked = RequestReceived(request_id, request, raw, reading.repaired, reading.dropped)
                events.append(self._inbound.receive(asked))
            case ControlResponseLine(response=response):
                self._responded(response, raw, events)
            case ControlCancelLine(request_id=request_id):
                events.append(self._inbound.withdraw(request_id, raw))
            case UnreadableRequest() as request:
                self._unreadable(request, raw, events)
            case Malformed(reason=reason):
                self.counters.malformed += 1
                events.append(LineMalformed(reason, raw))
                self._salvage(raw, events)
            case message:
                if isinstance(message, Init):
                    self.capabilities = self.capabilities.with_init(message)
                self.counters.unknown += len(unknown_parts(message))
                events.append(MessageReceived(message, raw, reading.repaired, reading.dropped))

    def _unreadable(self, request: UnreadableRequest, raw: bytes, events: list[Event]) -> None:
        asked = RequestUnreadable(
            request.request_id,
            request.subtype,
            request.reason,
            raw,
            request.may_be_pre_tool_use,
        )
        events.append(self._inbound.receive(asked))

    def _responded(
        self, response: ControlSuccess | ControlFailure, raw: bytes, events: list[Event]
    ) -> None:
        request_id = response.request_id
        event = self._outbound.respond(response, raw)
        if event is None:
            is_echo = request_id in self._inbound
            events.append(self._outbound.stray(request_id, raw, is_echo=is_echo))
        else:
            events.append(event)
            answer = event.outcome.answer if isinstance(event.outcome, Success) else None
            self.counters.unknown += isinstance(answer, Unknown)
            if isinstance(answer, Initialized):
                self.capabilities = self.capabilities.with_initialized(answer)
        for name in PENDING_LISTS:
            for still_open in getattr(response, name):
                self._still_open(bytes(still_open), events)

    def _still_open(self, raw: bytes, events: list[Event]) -> None:
        reading = read_line(raw)
        if not isinstance(reading.decoded, ControlRequestLine | UnreadableRequest | Malformed):
            # A response in here could hold another, and so on: only requests belong here.
            reading = Reading(Unknown("", raw, "not a control_request, in a list of pending ones"))
        self._route(reading, raw, events)

    def _oversized(self, line: Oversize, events: list[Event]) -> None:
        self.counters.oversized += 1
        events.append(LineOversized(line.length, line.head))
        self._salvage(line.head, events)

    def _salvage(self, head: bytes, events: list[Event]) -> None:
        """A request whose line can't be read still needs an answer, where its id can be seen.

        Left alone, a hook would time out, and old CLIs then go on without it.
        """
        found = _REQUEST_HEAD.match(head)
        if found:
            subtype = found["subtype"].decode() if found["subtype"] else ""
            unreadable = UnreadableRequest(
                found["id"].decode(),
                subtype,
                "the request could not be read",
                may_be_pre_tool_use=subtype in ("", "hook_callback"),
            )
            self._unreadable(unreadable, head, events)

    # --- to the CLI

    def answer(self, request_id: str, answer: Answer) -> bytes:
        """The line that answers a request of the CLI. The first answer is the only one."""
        if self._ended:
            self._check_open("an answer")
        return self._inbound.answer(request_id, answer)

    def fail(self, request_id: str, error: object) -> bytes:
        """The line that says that a request can't be answered; the tool, if any, does not run."""
        self._check_open("an answer")
        return self._inbound.fail(request_id, error)

    def request(self, request: OutboundRequest) -> tuple[str, bytes]:
        """The line that asks the CLI something, with the id that its answer will carry."""
        self._check_open("a request")
        hazard = self.capabilities.hazard(request)
        if hazard:
            raise InvalidRequest(subtype_of(request), hazard)
        return self._outbound.request(request)

    def cancel(self, request_id: str) -> bytes:
        """Take a request of ours back: a late answer to it will be ignored.

        The line that tells the CLI is empty where the CLI might not survive it: old ones exit.
        """
        self._check_open("a cancel")
        line = self._outbound.cancel(request_id)
        return line if self.capabilities.does("cancels are understood") == "yes" else b""

    def prompt(
        self,
        content: str | Sequence[KnownBlock | str],
        *,
        uuid: str | UnsetType = UNSET,
        priority: Priority | UnsetType = UNSET,
        should_query: bool | UnsetType = UNSET,
    ) -> bytes:
        """The line that gives the CLI a user message."""
        self._check_open("a prompt")
        return prompt_line(content, uuid=uuid, priority=priority, should_query=should_query)

    def _check_open(self, what: str) -> None:
        if self._ended:
            raise ConnectionEnded(f"{what} after the end of the CLI's output")

    # --- taking over

    def recall(self, line: bytes) -> Asked | OutboundRequest | None:
        """A line that an earlier controller of the same process has written. Gives the request of
        the CLI that it answers, or the one of ours that it is, if it is either."""
        written = read_written(line)
        match written:
            case Answering(request_id=request_id):
                return self._inbound.recall(request_id)
            case ControlCancelLine(request_id=request_id):
                self._outbound.recall_cancel(request_id)
            case Asking(request_id=request_id, request=request):
                self._outbound.recall(request_id, request)
                return request
        return None

    def go_on_at(self, offset: int) -> None:
        """What the CLI wrote up to here is known: the next bytes that come are those behind it."""
        self._splitter = LineSplitter(self._splitter.limit, consumed=offset)

    def save(self) -> bytes:
        """The whole state, for a later controller of the same CLI process."""
        return msgspec.json.encode(
            SavedConnection(
                line_limit=self._splitter.limit,
                consumed=self.consumed,
                next_number=self._outbound.next_number,
                capabilities=self.capabilities,
                unfinished=self._splitter.unfinished,
                asked=dict(self.asked),
                responded=list(self._outbound.responded)[-SAVED_IDS:],
                cancelled=list(self._outbound.cancelled)[-SAVED_IDS:],
                pending=[event.raw for event in self.pending.values()],
                fates=dict(list(self._inbound.fates.items())[-SAVED_IDS:]),
                counters=self.counters,
                ended=self._ended,
            )
        )

    @classmethod
    def restore(cls, saved: bytes, *, nonce: str) -> Connection:
        """Go on where another controller stopped. Pending requests are in `pending`."""
        try:
            state = msgspec.json.decode(saved, type=SavedConnection)
        except DECODE_ERRORS as error:
            raise InvalidState(f"not a connection saved by this version: {error}") from error
        try:
            self = cls(nonce=nonce, line_limit=state.line_limit)
        except ValueError as error:
            raise InvalidState(str(error)) from error
        for raw in state.pending:
            self._carefully(raw, [])
        if len(self.pending) != len(state.pending):
            # Going on would leave the CLI waiting for an answer that nobody will give.
            raise InvalidState("a pending request in it can't be read")
        self.capabilities = state.capabilities
        self.counters = state.counters
        self._splitter = LineSplitter(state.line_limit, state.unfinished, state.consumed)
        self._inbound = InboundRequests(self.counters, state.fates, self.pending.values())
        self._outbound = OutboundRequests(
            self.counters,
            nonce,
            next_number=state.next_number,
            asked=state.asked,
            responded=state.responded,
            cancelled=state.cancelled,
        )
        self._ended = state.ended
        return self


# The order in which every known CLI writes these members.
_REQUEST_HEAD = re.compile(
    rb'\s*\{\s*"type"\s*:\s*"control_request"\s*,\s*"request_id"\s*:\s*"(?P<id>[\w.:-]+)"'
    rb'(?:\s*,\s*"request"\s*:\s*\{\s*"subtype"\s*:\s*"(?P<subtype>\w+)")?'
)
