"""The CLI's requests to us: delivered once, answered once, never after they were withdrawn."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

import msgspec

from ..errors import AlreadyAnswered, AlreadyWithdrawn, InvalidAnswer, NotPending
from .codec import UNWRITABLE, UnreadableRequest, check, encode_line
from .control import (
    ANSWERS_TO,
    Answer,
    CanUseTool,
    ControlRequestLine,
    HookCallback,
    InboundRequest,
)
from .events import (
    Counters,
    Event,
    LineIgnored,
    RequestReceived,
    RequestRefused,
    RequestWithdrawn,
)
from .hook_outputs import HookOutput, pre_tool_use
from .hooks import PreToolUse
from .permissions import Allow
from .remembered import forget_oldest
from .unknown import Unknown

Fate: TypeAlias = Literal["answered", "withdrawn"]


class InboundRequests:
    """What the CLI has asked: waiting for an answer, or settled and remembered for a while."""

    def __init__(
        self,
        counters: Counters,
        fates: dict[str, Fate] | None = None,
        pending: Mapping[str, RequestReceived] | None = None,
    ) -> None:
        self._counters = counters
        self._pending: dict[str, RequestReceived] = dict(pending or {})
        self.fates: dict[str, Fate] = fates or {}

    @property
    def pending(self) -> Mapping[str, RequestReceived]:
        return MappingProxyType(self._pending)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._pending or request_id in self.fates

    # --- what the CLI says

    def receive(self, line: ControlRequestLine, raw: bytes, repaired: bool) -> Event:
        if line.request_id in self:
            return self._duplicate(line.request_id, raw)
        event = RequestReceived(line.request_id, line.request, raw, repaired)
        self._pending[line.request_id] = event
        return event

    def refuse(self, request: UnreadableRequest, raw: bytes) -> Event:
        """A request that nobody can answer: settled at once, with a reply to be written."""
        if request.request_id in self:
            return self._duplicate(request.request_id, raw)
        self._counters.refused += 1
        what = f"Bridle can't read this {request.subtype or 'control'} request: {request.reason}"
        if request.may_be_pre_tool_use:
            reply = _success(request.request_id, pre_tool_use("deny", what))
        else:
            reply = _error(request.request_id, what)
        self._settle(request.request_id, "answered")
        return RequestRefused(request.request_id, request.subtype, request.reason, reply, raw)

    def withdraw(self, request_id: str, raw: bytes) -> Event:
        pending = self._pending.pop(request_id, None)
        if pending is None:
            self._counters.strays += 1
            return LineIgnored(f"a cancel for {request_id}, which is not pending", raw)
        self._settle(request_id, "withdrawn")
        return RequestWithdrawn(request_id, pending.request, raw)

    def _duplicate(self, request_id: str, raw: bytes) -> LineIgnored:
        self._counters.duplicate_requests += 1
        return LineIgnored(f"request {request_id} was delivered before", raw)

    # --- what we say

    def answer(self, request_id: str, answer: Answer) -> bytes:
        request = self._waiting(request_id)
        if not isinstance(answer, ANSWERS_TO[type(request)]):
            fitting = " or ".join(kind.__name__ for kind in ANSWERS_TO[type(request)])
            raise InvalidAnswer(request_id, f"a {type(answer).__name__} where {fitting} belongs")
        if isinstance(request, CanUseTool) and isinstance(answer, Allow):
            answer = _with_input(answer, request)
        try:
            checked = check(answer)
            line = _success(request_id, answer)
        except UNWRITABLE as error:
            raise InvalidAnswer(request_id, str(error)) from error
        if isinstance(request, HookCallback) and isinstance(checked, HookOutput):
            _check_event(request_id, request, checked)
        del self._pending[request_id]
        self._settle(request_id, "answered")
        return line

    def fail(self, request_id: str, error: str) -> bytes:
        request = self._waiting(request_id)
        if isinstance(request, HookCallback) and isinstance(request.input, PreToolUse | Unknown):
            # An error here would count as an empty answer, and in bypass mode the tool would run.
            # To a hook of any other event a deny of PreToolUse is but another error.
            line = _success(request_id, pre_tool_use("deny", _writable(error)))
        else:
            line = _error(request_id, error)
        del self._pending[request_id]
        self._settle(request_id, "answered")
        return line

    def _waiting(self, request_id: str) -> InboundRequest:
        if request_id in self._pending:
            return self._pending[request_id].request
        match self.fates.get(request_id):
            case "answered":
                raise AlreadyAnswered(request_id)
            case "withdrawn":
                raise AlreadyWithdrawn(request_id)
            case _:
                raise NotPending(request_id)

    def _settle(self, request_id: str, fate: Fate) -> None:
        self.fates[request_id] = fate
        forget_oldest(self.fates)


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
    body = {"subtype": "error", "request_id": request_id, "error": _writable(error)}
    return encode_line({"type": "control_response", "response": body})


def _writable(text: str) -> str:
    # An error's text must never be the reason why an error can't be told.
    return text.encode("utf-8", "replace").decode()
