"""The control protocol as a state machine: bytes in -> events out, intents in -> bytes out.

Owns framing, routing by kind, and the state that a later controller takes over; the two ways of
asking are in `inbound` and `outbound`. Does not read or write pipes, look at the clock, log, sleep
or decide; randomness is passed in. Every method that returns bytes returns whole lines, to be
written in the order in which they were asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ..errors import ConnectionEnded, InvalidRequest, InvalidState
from .answers import Initialized
from .blocks import KnownBlock
from .capabilities import Capabilities
from .codec import (
    DECODE_ERRORS,
    PLAIN_TYPES,
    UNWRITABLE,
    Decoded,
    Malformed,
    SystemHead,
    UnreadableRequest,
    check,
    decode_line,
    encode_line,
    read_line,
    read_system,
)
from .control import (
    PENDING_LISTS,
    Answer,
    ControlCancelLine,
    ControlFailure,
    ControlRequestLine,
    ControlResponseLine,
    ControlSuccess,
    Priority,
    Prompt,
    PromptContent,
)
from .events import (
    Counters,
    Event,
    LineMalformed,
    LineOversized,
    MessageReceived,
    RequestReceived,
    StreamEnded,
    Success,
    Unanswered,
)
from .framing import DEFAULT_LIMIT, LineSplitter, Oversize, Unfinished
from .inbound import Fate, InboundRequests
from .messages import Message
from .outbound import OutboundRequests, subtype_of
from .requests import OutboundRequest
from .system import Init
from .unknown import Unknown


class SavedConnection(Struct, tag_field="format", tag="bridle-connection-1"):
    """All that a later controller needs to take over in mid-conversation."""

    line_limit: int
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
        self._inbound = InboundRequests(self.counters)
        self._outbound = OutboundRequests(self.counters, nonce)
        self._ended = False

    @property
    def pending(self) -> Mapping[str, RequestReceived]:
        """The CLI's requests that wait for our answer."""
        return self._inbound.pending

    @property
    def asked(self) -> Mapping[str, OutboundRequest]:
        """Our requests that wait for the CLI's answer."""
        return self._outbound.asked

    # --- from the CLI

    def receive(self, data: bytes) -> list[Event]:
        """Take the next bytes of the CLI's output; give what they say."""
        self._check_open("bytes")
        return self._read(self._splitter.feed(data))

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
        for line in lines:
            if isinstance(line, Oversize):
                self._oversized(line, events)
                continue
            try:
                message = decode_line(line)
            except DECODE_ERRORS:
                self._carefully(line, events)
                continue
            if message.__class__ in PLAIN_TYPES:
                append(MessageReceived(message, line))  # type: ignore[arg-type]
            elif isinstance(message, SystemHead):
                system = read_system(line)
                if isinstance(system, Message):
                    self._route(system, line, False, events)
                else:
                    self._carefully(line, events)
            else:
                self._route(message, line, False, events)
        return events

    def _carefully(self, line: bytes, events: list[Event]) -> None:
        if line.isspace():
            return
        decoded, repaired = read_line(line)
        self.counters.repaired += repaired
        self._route(decoded, line, repaired, events)

    def _route(self, decoded: Decoded, raw: bytes, repaired: bool, events: list[Event]) -> None:
        match decoded:
            case ControlRequestLine():
                events.append(self._inbound.receive(decoded, raw, repaired))
            case ControlResponseLine():
                self._responded(decoded.response, raw, events)
            case ControlCancelLine():
                events.append(self._inbound.withdraw(decoded.request_id, raw))
            case UnreadableRequest():
                events.append(self._inbound.refuse(decoded, raw))
            case Malformed():
                self.counters.malformed += 1
                events.append(LineMalformed(decoded.reason, raw))
                self._salvage(raw, events)
            case Unknown():
                self.counters.unknown += 1
                events.append(MessageReceived(decoded, raw, repaired))
            case _:
                if isinstance(decoded, Init):
                    self.capabilities = self.capabilities.learn(decoded.claude_code_version)
                events.append(MessageReceived(decoded, raw, repaired))

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
            if isinstance(event.outcome, Success) and isinstance(event.outcome.answer, Initialized):
                self.capabilities = self.capabilities.with_initialized(event.outcome.answer)
        for name in PENDING_LISTS:
            for still_open in getattr(response, name):
                self._still_open(bytes(still_open), events)

    def _still_open(self, raw: bytes, events: list[Event]) -> None:
        decoded, repaired = read_line(raw)
        if not isinstance(decoded, ControlRequestLine | UnreadableRequest | Malformed):
            # A response in here could hold another, and so on: only requests belong here.
            decoded = Unknown("", raw, "not a control_request, in a list of pending ones")
        self.counters.repaired += repaired
        self._route(decoded, raw, repaired, events)

    def _oversized(self, line: Oversize, events: list[Event]) -> None:
        self.counters.oversized += 1
        events.append(LineOversized(line.length, line.head))
        self._salvage(line.head, events)

    def _salvage(self, head: bytes, events: list[Event]) -> None:
        """A request whose line can't be read still gets its refusal, where its id can be seen.

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
            events.append(self._inbound.refuse(unreadable, b""))

    # --- to the CLI

    def answer(self, request_id: str, answer: Answer) -> bytes:
        """The line that answers a request of the CLI. The first answer is the only one."""
        self._check_open("an answer")
        return self._inbound.answer(request_id, answer)

    def fail(self, request_id: str, error: str) -> bytes:
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
        content: str | list[KnownBlock],
        *,
        uuid: str | UnsetType = UNSET,
        priority: Priority | UnsetType = UNSET,
        should_query: bool | UnsetType = UNSET,
    ) -> bytes:
        """The line that gives the CLI a user message."""
        self._check_open("a prompt")
        if not content or not isinstance(content, str | list):
            raise InvalidRequest("user", "a prompt is text, or a list of content blocks")
        try:
            prompt = Prompt(
                PromptContent(content), uuid=uuid, priority=priority, should_query=should_query
            )
            check(prompt)
            return encode_line(prompt)
        except UNWRITABLE as error:
            raise InvalidRequest("user", str(error)) from error

    def _check_open(self, what: str) -> None:
        if self._ended:
            raise ConnectionEnded(f"{what} after the end of the CLI's output")

    # --- taking over

    def save(self) -> bytes:
        """The whole state, for a later controller of the same CLI process."""
        return msgspec.json.encode(
            SavedConnection(
                line_limit=self._splitter.limit,
                next_number=self._outbound.next_number,
                capabilities=self.capabilities,
                unfinished=self._splitter.unfinished,
                asked=dict(self.asked),
                responded=list(self._outbound.responded),
                cancelled=list(self._outbound.cancelled),
                pending=[event.raw for event in self.pending.values()],
                fates=self._inbound.fates,
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
        self._splitter = LineSplitter(state.line_limit, state.unfinished)
        self._inbound = InboundRequests(self.counters, state.fates, self._inbound.pending)
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
