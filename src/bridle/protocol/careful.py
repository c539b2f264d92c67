"""What the one pass of `codec` can't read, read as far as it can be.

Owns the rule that nothing the CLI says raises. `read_line` gives a struct; an `Unknown` with its
raw JSON and a reason; an `UnreadableRequest`, which must be answered all the same; or `Malformed`.
Three things are read more leniently than the rest, because what hangs on them must not be lost
for a detail: an unknown block leaves the others of its message; a `result` (it ends the turn) and
a request of the CLI (an agent waits for it) lose only the optional fields that can't be read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, get_args, get_origin

import msgspec
from msgspec import Raw, Struct

from .blocks import Block, KnownBlock, ToolResultBlock
from .codec import DECODE_ERRORS, ControlLine, SystemHead, line_decoder
from .control import (
    PENDING_LISTS,
    ControlFailure,
    ControlRequestLine,
    ControlResponseLine,
    ControlSuccess,
    HookCallback,
    InboundRequest,
)
from .hooks import PRE_TOOL_USE, KnownHookInput
from .messages import Assistant, Message, Result, StreamEvent, User
from .repair import repair
from .system import KnownSystem
from .unknown import Unknown


class Malformed(Struct, frozen=True):
    """A line that is not a JSON object."""

    reason: str


class UnreadableRequest(Struct, frozen=True):
    """A control_request that has an id, so it must be answered, but can't be understood.

    `may_be_pre_tool_use`: an error answer could let a tool run; it needs an explicit deny.
    """

    request_id: str
    subtype: str
    reason: str
    may_be_pre_tool_use: bool = False


Decoded: TypeAlias = Message | ControlLine | Unknown | UnreadableRequest | Malformed


class Reading(Struct, frozen=True):
    """A line as far as it could be read, and what had to be done for it."""

    decoded: Decoded
    repaired: bool = False
    dropped: tuple[str, ...] = ()


Members: TypeAlias = dict[str, Raw]
_S = TypeVar("_S", bound=Struct)
_Spoken = TypeVar("_Spoken", Assistant, User)

_MEMBERS = msgspec.json.Decoder(Members)
_TEXT = msgspec.json.Decoder(str)
_RAWS = msgspec.json.Decoder(list[Raw])

_REQUESTS = {kind.__struct_config__.tag: kind for kind in get_args(InboundRequest)}
_HOOKS = {kind.__struct_config__.tag: kind for kind in get_args(KnownHookInput)}


@functools.cache
def _system() -> msgspec.json.Decoder[KnownSystem]:
    return msgspec.json.Decoder(KnownSystem)


@functools.cache
def _block() -> msgspec.json.Decoder[KnownBlock]:
    return msgspec.json.Decoder(KnownBlock)


def read_line(line: bytes) -> Reading:
    """Decode a line whatever it holds."""
    reading = _read(line)
    if not isinstance(reading.decoded, Malformed):
        return reading
    repaired = repair(line)
    again = _read(repaired) if repaired != line else reading
    if isinstance(again.decoded, Malformed):
        return reading
    return msgspec.structs.replace(again, repaired=True)


def read_system(line: bytes) -> Message | Unknown | Malformed:
    """Decode a line whose type is known to be `system`."""
    try:
        return _system().decode(line)
    except msgspec.ValidationError as error:
        return Unknown(_tag(line, "system"), line, str(error))
    except DECODE_ERRORS as error:
        return Malformed(_reason(error))


def read_block(raw: bytes) -> Block:
    """Decode one content block; what no type fits becomes `Unknown`, inside a tool result too."""
    try:
        return _block().decode(raw)
    except DECODE_ERRORS as error:
        reason = _reason(error)
    members = members_of(raw)
    if text_in(members, "type") == "tool_result":
        content = bytes(members.pop("content", b"null"))
        found = _leniently(ToolResultBlock, members)
        if found:
            found[0].content = _result_content(content)
            return found[0]
    return Unknown(text_in(members, "type"), bytes(raw), reason)


def _result_content(raw: bytes) -> str | list[Block]:
    """A call is over when its result has come, whatever that looks like."""
    try:
        return [read_block(bytes(part)) for part in _RAWS.decode(raw)]
    except DECODE_ERRORS:
        pass
    try:
        return _TEXT.decode(raw)
    except DECODE_ERRORS:
        return "" if raw == b"null" else raw.decode("utf-8", "replace")


def read_answer(raw: bytes, kind: type[_S]) -> _S | None:
    """An answer without those of its optional parts that can't be read; None if it is no object."""
    if not raw.lstrip().startswith(b"{"):
        return None
    found = _leniently(kind, members_of(raw))
    return found[0] if found else None


def input_in(raw: bytes) -> Raw:
    """The `input` of a can_use_tool request, as it stands in its line."""
    try:
        return _INPUT.decode(raw).request.input
    except DECODE_ERRORS:
        return _INPUT.decode(repair(raw)).request.input


class _HasInput(Struct):
    input: Raw


class _InputLine(Struct):
    request: _HasInput


_INPUT: msgspec.json.Decoder[_InputLine] = msgspec.json.Decoder(_InputLine)


def members_of(raw: Raw | bytes) -> Members:
    try:
        return _MEMBERS.decode(raw)
    except DECODE_ERRORS:
        return {}


def text_in(members: Members, key: str) -> str:
    try:
        return _TEXT.decode(members[key])
    except (KeyError, *DECODE_ERRORS):
        return ""


def raws_in(raw: Raw | bytes) -> list[Raw]:
    try:
        return _RAWS.decode(raw)
    except DECODE_ERRORS:
        return []


def _read(line: bytes) -> Reading:
    try:
        decoded = line_decoder()(line)
    except DECODE_ERRORS as error:
        return _read_carefully(line, error)
    return Reading(read_system(line) if isinstance(decoded, SystemHead) else decoded)


def _read_carefully(line: bytes, error: Exception) -> Reading:
    """The one pass failed: find out what can still be read."""
    try:
        members = _MEMBERS.decode(line)
    except DECODE_ERRORS as structure:
        return Reading(Malformed(_reason(structure)))
    if not isinstance(error, msgspec.ValidationError) or repair(line) != line:
        # The object's outline is sound, so what is broken is the text inside some value. It is
        # repaired before the rest is judged: a good block must not be lost for bad text in it.
        return Reading(Malformed(_reason(error)))
    kind = text_in(members, "type")
    read = _CAREFUL.get(kind)
    found = read(members, _reason(error)) if read else None
    return found or Reading(Unknown(_tag(line, kind), line, _reason(error)))


def _leniently(kind: type[_S], members: Members) -> tuple[_S, tuple[str, ...]] | None:
    """The struct without the optional fields that can't be read; None if a required one can't. Of a
    list it keeps those that can be."""
    values: dict[str, Any] = {}
    dropped: list[str] = []
    for field in msgspec.structs.fields(kind):
        raw = members.get(field.encode_name)
        try:
            if raw is not None:
                values[field.name] = msgspec.json.decode(raw, type=field.type)
        except DECODE_ERRORS as error:
            dropped.append(f"{field.encode_name}: {_reason(error)}")
            [inner] = get_args(field.type) if get_origin(field.type) is list else [None]
            if isinstance(inner, type) and issubclass(inner, Struct):
                parts = (_leniently(inner, members_of(part)) for part in raws_in(raw or b""))
                values[field.name] = [part[0] for part in parts if part]
        if field.required and field.name not in values:
            return None
    return kind(**values), tuple(dropped)


def _with_careful_content(members: Members, kind: type[_Spoken]) -> Reading | None:
    """Decode the message without its content, then the content part by part."""
    inner = members_of(members.get("message", b""))
    try:
        parts = _RAWS.decode(inner.get("content", b""))
        shell = _encode_with(members, message=Raw(_encode_with(inner, content=[])))
        message = msgspec.json.decode(shell, type=kind)
    except DECODE_ERRORS:
        return None
    message.message.content = [read_block(bytes(part)) for part in parts]
    return Reading(message)


def _read_stream_event(members: Members, reason: str) -> Reading | None:
    raw = bytes(members.get("event", b""))
    name = text_in(members_of(raw), "type")
    try:
        message = msgspec.json.decode(
            _encode_with(members, event={"type": "ping"}), type=StreamEvent
        )
    except DECODE_ERRORS:
        return None
    message.event = Unknown(name, raw, reason)
    return Reading(message)


def _read_result(members: Members, _: str) -> Reading | None:
    found = _leniently(Result, members)
    return Reading(found[0], dropped=found[1]) if found else None


def _read_request(members: Members, reason: str) -> Reading | None:
    request_id = text_in(members, "request_id")
    if not request_id:
        return None
    body = members_of(members.get("request", b""))
    subtype = text_in(body, "subtype")
    if subtype == "hook_callback":
        return _read_hook(request_id, body, reason)
    found = _leniently(_REQUESTS[subtype], body) if subtype in _REQUESTS else None
    if found:
        return Reading(ControlRequestLine(request_id, found[0]), dropped=found[1])
    # Without a readable subtype it may be a hook, which an error would not stop.
    return Reading(UnreadableRequest(request_id, subtype, reason, may_be_pre_tool_use=not subtype))


def _read_hook(request_id: str, body: Members, reason: str) -> Reading:
    raw = bytes(body.get("input", b""))
    told = members_of(raw)
    event = text_in(told, "hook_event_name")
    stand_in = Raw(b'{"hook_event_name":"Stop","session_id":""}')
    callback = _leniently(HookCallback, {**body, "input": stand_in})
    found = _hook_input(event, raw, told, reason)
    if callback and found:
        callback[0].input = found[0]
        dropped = callback[1] + found[1]
        return Reading(ControlRequestLine(request_id, callback[0]), dropped=dropped)
    safe = event in _HOOKS and event != PRE_TOOL_USE
    return Reading(
        UnreadableRequest(request_id, "hook_callback", reason, may_be_pre_tool_use=not safe)
    )


def _hook_input(
    event: str, raw: bytes, told: Members, reason: str
) -> tuple[KnownHookInput | Unknown, tuple[str, ...]] | None:
    if event in _HOOKS:
        return _leniently(_HOOKS[event], told)
    # A name that is not there, or had to be repaired, may have been that of any event.
    if not event or "\ufffd" in event:
        return None
    return Unknown(event, raw, reason), ()


def _read_response(members: Members, reason: str) -> Reading | None:
    """Whoever waits must be woken, also where some part of the answer can't be read."""
    body = members_of(members.get("response", b""))
    request_id = text_in(body, "request_id")
    pending = [raws_in(body.get(key, b"")) for key in PENDING_LISTS]
    match text_in(body, "subtype") if request_id else "":
        case "success":
            answer = Raw(bytes(body.get("response", b"")))
            return Reading(ControlResponseLine(ControlSuccess(request_id, answer, *pending)))
        case "error":
            error = text_in(body, "error") or f"an error that can't be read: {reason}"
            code = text_in(body, "error_code") or None
            return Reading(ControlResponseLine(ControlFailure(request_id, error, code, *pending)))
    return None


_CAREFUL: dict[str, Callable[[Members, str], Reading | None]] = {
    "assistant": lambda members, _: _with_careful_content(members, Assistant),
    "user": lambda members, _: _with_careful_content(members, User),
    "stream_event": _read_stream_event,
    "result": _read_result,
    "control_request": _read_request,
    "control_response": _read_response,
}


def _tag(line: bytes, kind: str) -> str:
    subtype = text_in(members_of(line), "subtype")
    return f"{kind}/{subtype}" if subtype else kind


def _encode_with(members: Members, **changed: Any) -> bytes:
    return msgspec.json.encode({**members, **changed})


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)
