"""The control protocol as a state machine: bytes in -> events out, intents in -> bytes out.

Owns framing, request ids, correlation and the rule of one answer per request. Does not read or
write pipes, look at the clock, log, sleep or decide; randomness is passed in. Every method that
returns bytes returns whole lines, to be written in the order in which they were asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ..errors import (
    AlreadyAnswered,
    AlreadyWithdrawn,
    ConnectionEnded,
    InvalidAnswer,
    InvalidRequest,
    InvalidState,
    NotPending,
)
from .answers import ANSWER_OF, Done, Initialized
from .blocks import KnownBlock
from .capabilities import Capabilities
from .codec import (
    DECODE_ERRORS,
    PLAIN_TYPES,
    Decoded,
    Malformed,
    SystemHead,
    UnreadableRequest,
    decode_line,
    encode_line,
    read_line,
    read_system,
)
from .control import (
    ANSWERS_TO,
    Allow,
    Answer,
    CanUseTool,
    ControlCancelLine,
    ControlFailure,
    ControlRequestLine,
    ControlResponseLine,
    ControlSuccess,
    HookCallback,
    HookOutput,
    Prompt,
    PromptContent,
)
from .events import (
    Counters,
    Event,
    Failure,
    LineIgnored,
    LineMalformed,
    LineOversized,
    MessageReceived,
    RequestReceived,
    RequestRefused,
    RequestWithdrawn,
    ResponseReceived,
    StreamEnded,
    Success,
    Unanswered,
)
from .framing import DEFAULT_LIMIT, LineSplitter, Oversize, Unfinished
from .hook_outputs import pre_tool_use
from .hooks import PreToolUse
from .messages import Message
from .requests import Initialize, OutboundRequest
from .system import Init
from .unknown import Unknown

# Ids of settled requests that are remembered, each way: enough to know a duplicate for one, and
# few enough that a session of many days does not grow.
REMEMBERED_IDS = 4096

Fate = Literal["answered", "withdrawn"]


class SavedConnection(Struct, tag_field="format", tag="bridle-connection-1"):
    """All that a later controller needs to take over in mid-conversation."""

    line_limit: int
    next_number: int
    version: str | None
    initialized: Initialized | None
    unfinished: Unfinished
    asked: dict[str, OutboundRequest]
    pending: list[bytes]
    fates: dict[str, Fate]
    responded: list[str]
    cancelled: list[str]
    counters: Counters


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
        self._nonce = nonce
        self._next_number = 1
        self._splitter = LineSplitter(line_limit)
        self._ended = False
        self._asked: dict[str, OutboundRequest] = {}
        self._responded: dict[str, None] = {}
        self._cancelled: dict[str, None] = {}
        self._pending: dict[str, RequestReceived] = {}
        self._fates: dict[str, Fate] = {}

    @property
    def pending(self) -> Mapping[str, RequestReceived]:
        """The CLI's requests that wait for our answer."""
        return MappingProxyType(self._pending)

    @property
    def asked(self) -> Mapping[str, OutboundRequest]:
        """Our requests that wait for the CLI's answer."""
        return MappingProxyType(self._asked)

    # --- from the CLI

    def receive(self, data: bytes) -> list[Event]:
        """Take the next bytes of the CLI's output; give what they say."""
        if self._ended:
            raise ConnectionEnded("bytes after the end of the stream")
        return self._read(self._splitter.feed(data))

    def receive_eof(self) -> list[Event]:
        """The CLI's output has ended: its last words, then all that is still open."""
        if self._ended:
            return []
        events = self._read(self._splitter.finish())
        self._ended = True
        unanswered = [Unanswered(*item) for item in self._asked.items()]
        events.append(StreamEnded(unanswered, list(self._pending.values())))
        return events

    def _read(self, lines: list[bytes | Oversize]) -> list[Event]:
        events: list[Event] = []
        append = events.append
        for line in lines:
            if line.__class__ is not bytes:
                self._oversized(line, events)  # type: ignore[arg-type]
                continue
            try:
                message = decode_line(line)
            except DECODE_ERRORS:
                self._carefully(line, events)
                continue
            if message.__class__ in PLAIN_TYPES:
                append(MessageReceived(message, line))  # type: ignore[arg-type]
            elif message.__class__ is SystemHead:
                self._route(read_system(line), line, False, events)
            else:
                self._route(message, line, False, events)  # type: ignore[arg-type]
        return events

    def _carefully(self, line: bytes, events: list[Event]) -> None:
        if line.isspace():
            self._splitter.blank_lines += 1
            return
        decoded, repaired = read_line(line)
        self.counters.repaired += repaired
        self._route(decoded, line, repaired, events)

    def _route(self, decoded: Decoded, raw: bytes, repaired: bool, events: list[Event]) -> None:
        match decoded:
            case ControlRequestLine():
                self._requested(decoded, raw, repaired, events)
            case ControlResponseLine():
                self._responded_to(decoded.response, raw, events)
            case ControlCancelLine():
                self._withdrawn(decoded.request_id, raw, events)
            case UnreadableRequest():
                self._refuse(decoded, raw, events)
            case Malformed():
                self.counters.malformed += 1
                events.append(LineMalformed(decoded.reason, raw))
                self._salvage(raw, events)
            case Unknown():
                self.counters.unknown += 1
                events.append(MessageReceived(decoded, raw, repaired))
            case Message():
                if isinstance(decoded, Init):
                    self.capabilities = self.capabilities.learn(decoded.claude_code_version)
                events.append(MessageReceived(decoded, raw, repaired))

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
            self._refuse(unreadable, b"", events)

    # --- the CLI's requests

    def _requested(
        self, line: ControlRequestLine, raw: bytes, repaired: bool, events: list[Event]
    ) -> None:
        if self._is_duplicate(line.request_id, raw, events):
            return
        event = RequestReceived(line.request_id, line.request, raw, repaired)
        self._pending[line.request_id] = event
        events.append(event)

    def _refuse(self, request: UnreadableRequest, raw: bytes, events: list[Event]) -> None:
        if self._is_duplicate(request.request_id, raw, events):
            return
        self.counters.refused += 1
        what = f"Bridle can't read this {request.subtype or 'control'} request: {request.reason}"
        if request.may_be_pre_tool_use:
            reply = _success(request.request_id, pre_tool_use("deny", what))
        else:
            reply = _error(request.request_id, what)
        self._settle(request.request_id, "answered")
        events.append(
            RequestRefused(request.request_id, request.subtype, request.reason, reply, raw)
        )

    def _is_duplicate(self, request_id: str, raw: bytes, events: list[Event]) -> bool:
        if request_id not in self._pending and request_id not in self._fates:
            return False
        self.counters.duplicate_requests += 1
        events.append(LineIgnored(f"request {request_id} was delivered before", raw))
        return True

    def _withdrawn(self, request_id: str, raw: bytes, events: list[Event]) -> None:
        pending = self._pending.pop(request_id, None)
        if pending is None:
            self.counters.strays += 1
            events.append(LineIgnored(f"a cancel for {request_id}, which is not pending", raw))
            return
        self._settle(request_id, "withdrawn")
        events.append(RequestWithdrawn(request_id, pending.request, raw))

    def answer(self, request_id: str, answer: Answer) -> bytes:
        """The line that answers a request of the CLI. The first answer is the only one."""
        pending = self._waiting(request_id)
        request = pending.request
        if not isinstance(answer, ANSWERS_TO[type(request)]):
            fitting = " or ".join(kind.__name__ for kind in ANSWERS_TO[type(request)])
            raise InvalidAnswer(request_id, f"a {type(answer).__name__} where {fitting} belongs")
        if isinstance(answer, HookOutput) and isinstance(request, HookCallback):
            _check_event(request_id, request, answer)
        if isinstance(answer, Allow) and isinstance(request, CanUseTool):
            answer = _with_input(answer, request)
        try:
            _check(answer)
            line = _success(request_id, answer)
        except _UNWRITABLE as error:
            raise InvalidAnswer(request_id, str(error)) from error
        del self._pending[request_id]
        self._settle(request_id, "answered")
        return line

    def fail(self, request_id: str, error: str) -> bytes:
        """The line that says that a request can't be answered; the tool, if any, does not run."""
        request = self._waiting(request_id).request
        if isinstance(request, HookCallback) and isinstance(request.input, PreToolUse):
            # An error here would count as an empty answer, and in bypass mode the tool would run.
            return self.answer(request_id, pre_tool_use("deny", error))
        line = _error(request_id, error)
        del self._pending[request_id]
        self._settle(request_id, "answered")
        return line

    def _waiting(self, request_id: str) -> RequestReceived:
        if request_id in self._pending:
            if self._ended:
                raise ConnectionEnded(f"request {request_id} ended with the stream")
            return self._pending[request_id]
        match self._fates.get(request_id):
            case "answered":
                raise AlreadyAnswered(request_id)
            case "withdrawn":
                raise AlreadyWithdrawn(request_id)
            case _:
                raise NotPending(request_id)

    def _settle(self, request_id: str, fate: Fate) -> None:
        self._fates[request_id] = fate
        _forget_oldest(self._fates)

    # --- our requests

    def request(self, request: OutboundRequest) -> tuple[str, bytes]:
        """The line that asks the CLI something, and the id that its answer will carry."""
        subtype = _subtype(request)
        if self._ended:
            raise ConnectionEnded(f"{subtype} after the end of the stream")
        hazard = self.capabilities.hazard(request)
        if hazard:
            raise InvalidRequest(subtype, hazard)
        request_id = f"req_{self._next_number}_{self._nonce}"
        envelope = {"type": "control_request", "request_id": request_id, "request": request}
        try:
            _check(request)
            line = encode_line(envelope)
        except _UNWRITABLE as error:
            raise InvalidRequest(subtype, str(error)) from error
        self._next_number += 1
        self._asked[request_id] = request
        return request_id, line

    def cancel(self, request_id: str) -> bytes:
        """The line that takes a request of ours back. A late answer to it will be ignored."""
        if self._asked.pop(request_id, None) is None:
            raise NotPending(request_id)
        self._cancelled[request_id] = None
        _forget_oldest(self._cancelled)
        return encode_line(ControlCancelLine(request_id))

    def prompt(self, content: str | list[KnownBlock], **options: Any) -> bytes:
        """The line that gives the CLI a user message. Options: the fields of `Prompt`."""
        if self._ended:
            raise ConnectionEnded("a prompt after the end of the stream")
        if not content:
            raise InvalidRequest("user", "a prompt needs text or content blocks")
        try:
            prompt = Prompt(PromptContent(content), **options)
            _check(prompt)
            return encode_line(prompt)
        except _UNWRITABLE as error:
            raise InvalidRequest("user", str(error)) from error

    def _responded_to(
        self, response: ControlSuccess | ControlFailure, raw: bytes, events: list[Event]
    ) -> None:
        request_id = response.request_id
        request = self._asked.pop(request_id, None)
        if request is None:
            events.append(LineIgnored(self._why_stray(request_id), raw))
        else:
            self._responded[request_id] = None
            _forget_oldest(self._responded)
            outcome = _outcome(request, response)
            self._learn(request, outcome)
            events.append(ResponseReceived(request_id, request, outcome, raw))
        for still_open in (
            *response.pending_permission_requests,
            *response.pending_user_dialog_requests,
            *response.pending_elicitation_requests,
        ):
            self._carefully(bytes(still_open), events)

    def _why_stray(self, request_id: str) -> str:
        if request_id in self._responded:
            self.counters.duplicate_responses += 1
            return f"a second response to {request_id}"
        if request_id in self._cancelled:
            self.counters.late_responses += 1
            return f"a response to {request_id}, which we had cancelled"
        if request_id in self._fates or request_id in self._pending:
            self.counters.echoes += 1
            return f"an echo of our own answer to {request_id}"
        self.counters.strays += 1
        return f"a response to {request_id}, which we never asked"

    def _learn(self, request: OutboundRequest, outcome: Success | Failure) -> None:
        if isinstance(request, Initialize) and isinstance(outcome, Success):
            if isinstance(outcome.answer, Initialized):
                self.capabilities = self.capabilities.with_initialized(outcome.answer)

    # --- taking over

    def save(self) -> bytes:
        """The whole state, for a later controller of the same CLI process."""
        return msgspec.json.encode(
            SavedConnection(
                line_limit=self._splitter.limit,
                next_number=self._next_number,
                version=self.capabilities.version,
                initialized=self.capabilities.initialized,
                unfinished=self._splitter.unfinished,
                asked=self._asked,
                pending=[event.raw for event in self._pending.values()],
                fates=self._fates,
                responded=list(self._responded),
                cancelled=list(self._cancelled),
                counters=self.counters,
            )
        )

    @classmethod
    def restore(cls, saved: bytes, *, nonce: str) -> Connection:
        """Go on where another controller stopped. Pending requests are in `pending`."""
        try:
            state = msgspec.json.decode(saved, type=SavedConnection)
        except DECODE_ERRORS as error:
            raise InvalidState(f"not a connection saved by this version: {error}") from error
        self = cls(nonce=nonce, version=state.version, line_limit=state.line_limit)
        if state.initialized:
            self.capabilities = self.capabilities.with_initialized(state.initialized)
        self._next_number = state.next_number
        self._splitter = LineSplitter(state.line_limit, state.unfinished)
        self._asked = state.asked
        for raw in state.pending:
            self._carefully(raw, [])
        self._fates |= state.fates
        self._responded = dict.fromkeys(state.responded)
        self._cancelled = dict.fromkeys(state.cancelled)
        self.counters = state.counters
        return self


# The order in which every known CLI writes these members.
_REQUEST_HEAD = re.compile(
    rb'\s*\{\s*"type"\s*:\s*"control_request"\s*,\s*"request_id"\s*:\s*"(?P<id>[\w.:-]+)"'
    rb'(?:\s*,\s*"request"\s*:\s*\{\s*"subtype"\s*:\s*"(?P<subtype>\w+)")?'
)

# What encoding or checking our own words may raise: wrong types, lone surrogates, deep nesting.
_UNWRITABLE = (*DECODE_ERRORS, UnicodeEncodeError, TypeError, ValueError, OverflowError)


def _check(value: Any) -> None:
    """Refuse what its own type would not decode: structs do not check their fields when built."""
    msgspec.json.decode(msgspec.json.encode(value), type=type(value))


def _check_event(request_id: str, request: HookCallback, answer: HookOutput) -> None:
    # The CLI counts the wrong event's answer as an error, which is to say: as no answer.
    specific = answer.hook_specific_output
    if isinstance(specific, msgspec.UnsetType) or isinstance(request.input, Unknown):
        return
    asked, told = (part.__struct_config__.tag for part in (request.input, specific))
    if asked != told:
        raise InvalidAnswer(request_id, f"an answer for {told} hooks to a {asked} hook")


def _with_input(answer: Allow, request: CanUseTool) -> Allow:
    if not isinstance(answer.updated_input, msgspec.UnsetType):
        return answer
    return msgspec.structs.replace(answer, updated_input=request.input)


def _success(request_id: str, answer: Answer) -> bytes:
    body = {"subtype": "success", "request_id": request_id, "response": answer}
    return encode_line({"type": "control_response", "response": body})


def _error(request_id: str, error: str) -> bytes:
    text = error.encode("utf-8", "replace").decode()
    body = {"subtype": "error", "request_id": request_id, "error": text}
    return encode_line({"type": "control_response", "response": body})


def _outcome(
    request: OutboundRequest, response: ControlSuccess | ControlFailure
) -> Success | Failure:
    if isinstance(response, ControlFailure):
        return Failure(response.error, response.error_code)
    kind = ANSWER_OF.get(type(request), Done)
    raw = bytes(response.response) or b"{}"
    try:
        return Success(msgspec.json.decode(raw, type=kind))
    except DECODE_ERRORS as error:
        return Success(Unknown(_subtype(request), raw, str(error)))


def _subtype(request: OutboundRequest) -> str:
    return str(request.__struct_config__.tag)


def _forget_oldest(ids: dict[str, Any]) -> None:
    if len(ids) > REMEMBERED_IDS:
        del ids[next(iter(ids))]
