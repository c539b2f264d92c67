"""The CLI's requests to us: delivered once, answered once, never after they were withdrawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeGuard

import msgspec

from ..errors import AlreadyAnswered, AlreadyWithdrawn, InvalidAnswer, NotPending
from .careful import input_in
from .codec import UNWRITABLE, check, encode_line, finished_line
from .control import ANSWERS_TO, Answer, CanUseTool, ElicitationRequest, HookCallback
from .events import (
    Asked,
    Counters,
    Event,
    LineIgnored,
    RequestReceived,
    RequestUnreadable,
    RequestWithdrawn,
)
from .hook_outputs import HookOutput, pre_tool_use
from .hooks import PreToolUse
from .permissions import Allow
from .remembered import Remembered
from .unknown import Unknown

RESPONSE = "control_response"

#: What is answered most: nothing of it needs to be checked.
ALLOW = Allow()

Fate: TypeAlias = Literal["answered", "withdrawn"]


class InboundRequests:
    """What the CLI has asked: waiting for an answer, or settled and remembered for a while."""

    def __init__(
        self,
        counters: Counters,
        fates: dict[str, Fate] | None = None,
        pending: Iterable[Asked] = (),
    ) -> None:
        self._counters = counters
        self._pending = {event.request_id: event for event in pending}
        self.fates: Remembered[Fate] = Remembered(fates or {})

    @property
    def pending(self) -> Mapping[str, Asked]:
        return MappingProxyType(self._pending)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._pending or request_id in self.fates

    # --- what the CLI says

    def receive(self, event: Asked) -> Event:
        """A request, understood or not: it is pending until it is answered or withdrawn."""
        if event.request_id in self._pending or event.request_id in self.fates:
            self._counters.duplicate_requests += 1
            return LineIgnored(f"request {event.request_id} was delivered before", event.raw)
        if isinstance(event, RequestUnreadable):
            self._counters.unreadable_requests += 1
        elif isinstance(event.request, ElicitationRequest):
            event.request.request_id = event.request_id
        self._pending[event.request_id] = event
        return event

    def withdraw(self, request_id: str, raw: bytes) -> Event:
        pending = self._pending.pop(request_id, None)
        if pending is None:
            self._counters.strays += 1
            return LineIgnored(f"a cancel for {request_id}, which is not pending", raw)
        self.fates.remember(request_id, "withdrawn")
        request = pending.request if isinstance(pending, RequestReceived) else None
        return RequestWithdrawn(request_id, request, raw)

    # --- what we say

    def recall(self, request_id: str) -> Asked | None:
        """It was answered before our time."""
        event = self._pending.pop(request_id, None)
        if event:
            self.fates.remember(request_id, "answered")
        return event

    def answer(self, request_id: str, answer: Answer) -> bytes:
        event = self._waiting(request_id)
        if answer == ALLOW and _is_permission(event):
            return self._settled(request_id, _allowed(event))
        if isinstance(event, RequestUnreadable):
            raise InvalidAnswer(request_id, f"it can't be read ({event.reason}), only failed")
        request = event.request
        if not isinstance(answer, ANSWERS_TO[type(request)]):
            fitting = " or ".join(kind.__name__ for kind in ANSWERS_TO[type(request)])
            raise InvalidAnswer(request_id, f"a {type(answer).__name__} where {fitting} belongs")
        try:
            checked = check(answer)
            line = _success(request_id, _with_input(answer, event))
        except UNWRITABLE as error:
            raise InvalidAnswer(request_id, str(error)) from error
        if isinstance(request, HookCallback) and isinstance(checked, HookOutput):
            _check_event(request_id, request, checked)
        return self._settled(request_id, line)

    def fail(self, request_id: str, error: object) -> bytes:
        event = self._waiting(request_id)
        # An error's text must never be the reason why an error can't be told.
        text = str(error).encode("utf-8", "replace").decode()
        if isinstance(event, RequestUnreadable):
            text = f"Bridle can't read this {event.subtype or 'control'} request: {text}"
        if _may_be_pre_tool_use(event):
            # An error here would count as an empty answer, and in bypass mode the tool would run.
            # To a hook of any other event a deny of PreToolUse is but another error.
            return self._settled(request_id, _success(request_id, pre_tool_use("deny", text)))
        body = {"subtype": "error", "request_id": request_id, "error": text}
        return self._settled(request_id, encode_line({"type": RESPONSE, "response": body}))

    def _waiting(self, request_id: str) -> Asked:
        waiting = self._pending.get(request_id)
        if waiting is not None:
            return waiting
        match self.fates.get(request_id):
            case "answered":
                raise AlreadyAnswered(request_id)
            case "withdrawn":
                raise AlreadyWithdrawn(request_id)
            case _:
                raise NotPending(request_id)

    def _settled(self, request_id: str, line: bytes) -> bytes:
        del self._pending[request_id]
        self.fates.remember(request_id, "answered")
        return line


def _may_be_pre_tool_use(event: Asked) -> bool:
    if isinstance(event, RequestUnreadable):
        return event.may_be_pre_tool_use
    request = event.request
    return isinstance(request, HookCallback) and isinstance(request.input, PreToolUse | Unknown)


def _check_event(request_id: str, request: HookCallback, answer: HookOutput) -> None:
    # The CLI counts the wrong event's answer as an error, which is to say: as no answer.
    specific = answer.hook_specific_output
    if isinstance(specific, msgspec.UnsetType) or isinstance(request.input, Unknown):
        return
    asked, told = (part.__struct_config__.tag for part in (request.input, specific))
    if asked != told:
        raise InvalidAnswer(request_id, f"an answer for {told} hooks to a {asked} hook")


def _with_input(answer: Answer, event: RequestReceived) -> Any:
    """An allow without an input echoes the one that was asked: old CLIs deny it otherwise.

    It is taken from the raw line, so that nobody who was shown the request can have changed it.
    """
    if isinstance(answer, Allow) and isinstance(answer.updated_input, msgspec.UnsetType):
        return {**msgspec.to_builtins(answer), "updatedInput": input_in(event.raw)}
    return answer


def _is_permission(event: Asked) -> TypeGuard[RequestReceived]:
    return event.__class__ is RequestReceived and event.request.__class__ is CanUseTool


def _allowed(event: RequestReceived) -> bytes:
    """`Allow()` in one go: the input is passed on as it came."""
    return finished_line(
        b'{"type":"control_response","response":{"subtype":"success","request_id":'
        + msgspec.json.encode(event.request_id)
        + b',"response":{"behavior":"allow","updatedInput":'
        + input_in(event.raw)
        + b"}}}"
    )


def _success(request_id: str, answer: Any) -> bytes:
    body = {"subtype": "success", "request_id": request_id, "response": answer}
    return encode_line({"type": RESPONSE, "response": body})
