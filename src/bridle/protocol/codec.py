"""JSON lines <-> structs, in one pass for what is common and with care for the rest.

Owns dispatch on `type`, `subtype` and `hook_event_name`, and the rule that nothing the CLI says
raises: `read_line` gives a struct, an `Unknown` with its raw JSON and a reason, an
`UnreadableRequest` that must be refused, or `Malformed`. Does not correlate or answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, get_args

import msgspec
from msgspec import Raw, Struct

from .blocks import Block, KnownBlock, ToolResultBlock
from .control import (
    PENDING_LISTS,
    CanUseTool,
    ControlCancelLine,
    ControlFailure,
    ControlRequestLine,
    ControlResponseLine,
    ControlSuccess,
    HookCallback,
)
from .hooks import PRE_TOOL_USE, KnownHookInput
from .messages import (
    ActiveGoal,
    Assistant,
    AuthStatus,
    CommandLifecycle,
    ConversationReset,
    KeepAlive,
    Message,
    PromptSuggestion,
    RateLimitEvent,
    Result,
    StreamEvent,
    ToolProgress,
    ToolUseSummary,
    TranscriptMirror,
    User,
)
from .permissions import PermissionUpdate
from .system import KnownSystem
from .unknown import Unknown


class SystemHead(Struct, tag_field="type", tag="system", gc=False):
    """A `system` line before its subtype is looked at."""

    subtype: str


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


PlainMessage: TypeAlias = (
    Assistant
    | User
    | StreamEvent
    | Result
    | RateLimitEvent
    | ToolProgress
    | ToolUseSummary
    | AuthStatus
    | PromptSuggestion
    | ConversationReset
    | CommandLifecycle
    | ActiveGoal
    | TranscriptMirror
    | KeepAlive
)
ControlLine: TypeAlias = ControlRequestLine | ControlResponseLine | ControlCancelLine
Decoded: TypeAlias = Message | ControlLine | Unknown | UnreadableRequest | Malformed

_Spoken = TypeVar("_Spoken", Assistant, User)
_Checked = TypeVar("_Checked")

#: The types that need nothing more once the one pass is done.
PLAIN_TYPES: frozenset[type] = frozenset(get_args(PlainMessage))

_LINE = msgspec.json.Decoder(PlainMessage | SystemHead | ControlLine)
_SYSTEM: msgspec.json.Decoder[KnownSystem] = msgspec.json.Decoder(KnownSystem)
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_TEXT = msgspec.json.Decoder(str)
_RAWS = msgspec.json.Decoder(list[Raw])
_BLOCK: msgspec.json.Decoder[KnownBlock] = msgspec.json.Decoder(KnownBlock)
_UPDATE: msgspec.json.Decoder[PermissionUpdate] = msgspec.json.Decoder(PermissionUpdate)

_KNOWN_HOOKS = frozenset(hook.__struct_config__.tag for hook in get_args(KnownHookInput))

# What a decoder of ours may raise on bytes that a CLI wrote. ValidationError is a DecodeError.
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

#: What checking or encoding our own words may raise: wrong types, lone surrogates, deep nesting.
UNWRITABLE = (*DECODE_ERRORS, UnicodeEncodeError, TypeError, ValueError, OverflowError)

#: The hot path: one pass over a line. Raises DECODE_ERRORS; then `read_line` finds out why.
decode_line: Callable[[bytes], PlainMessage | SystemHead | ControlLine] = _LINE.decode


def read_line(line: bytes) -> tuple[Decoded, bool]:
    """Decode a line whatever it holds; the flag tells that its text had to be repaired first."""
    decoded = _read(line)
    if not isinstance(decoded, Malformed):
        return decoded, False
    repaired = _repair(line)
    if repaired == line:
        return decoded, False
    again = _read(repaired)
    return (decoded, False) if isinstance(again, Malformed) else (again, True)


def read_system(line: bytes) -> Message | Unknown | Malformed:
    """Decode a line whose type is known to be `system`."""
    try:
        return _SYSTEM.decode(line)
    except msgspec.ValidationError as error:
        return Unknown(_tag(line, "system"), line, str(error))
    except DECODE_ERRORS as error:
        return Malformed(_reason(error))


def read_block(raw: bytes) -> Block:
    """Decode one content block; what no type fits becomes `Unknown`, inside a tool result too."""
    try:
        return _BLOCK.decode(raw)
    except DECODE_ERRORS as error:
        reason = _reason(error)
    members = _members(raw)
    if _text(members, "type") == "tool_result":
        try:
            parts = _RAWS.decode(members.get("content", b""))
            result = msgspec.json.decode(_encode_with(members, content=[]), type=ToolResultBlock)
        except DECODE_ERRORS:
            return Unknown("tool_result", bytes(raw), reason)
        result.content = [read_block(bytes(part)) for part in parts]
        return result
    return Unknown(_text(members, "type"), bytes(raw), reason)


def suggestions(request: CanUseTool) -> list[PermissionUpdate | Unknown]:
    """The permission updates that the CLI suggests for "always allow"."""
    if not request.permission_suggestions:
        return []
    try:
        raws = _RAWS.decode(request.permission_suggestions)
    except DECODE_ERRORS as error:
        return [Unknown("", bytes(request.permission_suggestions), _reason(error))]
    return [_read_update(bytes(raw)) for raw in raws]


def encode_line(value: Any) -> bytes:
    """One line of JSON with its newline.

    U+2028 and U+2029 are escaped: some line readers of JavaScript split at them.
    """
    line = msgspec.json.encode(value)
    if b"\n" in line:
        # JSON escapes those in strings: this one came in a `Raw`, and would tear the line in two.
        raise ValueError("a newline inside raw JSON")
    if b"\xe2\x80" in line:
        line = line.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return line + b"\n"


def check(value: _Checked) -> _Checked:
    """Refuse what its own type would not decode: structs do not check their fields when built.

    Gives the value as its reader will see it.
    """
    return msgspec.json.decode(msgspec.json.encode(value), type=type(value))


def _read(line: bytes) -> Decoded:
    try:
        decoded = _LINE.decode(line)
    except DECODE_ERRORS as error:
        return _read_carefully(line, error)
    return read_system(line) if isinstance(decoded, SystemHead) else decoded


def _read_carefully(line: bytes, error: Exception) -> Decoded:
    """The one pass failed: find out what can still be read."""
    try:
        members = _MEMBERS.decode(line)
    except DECODE_ERRORS as structure:
        return Malformed(_reason(structure))
    if not isinstance(error, msgspec.ValidationError) or _repair(line) != line:
        # The object's outline is sound, so what is broken is the text inside some value. It is
        # repaired before the rest is judged: a good block must not be lost for bad text in it.
        return Malformed(_reason(error))
    kind = _text(members, "type")
    read = _CAREFUL.get(kind)
    found = read(members, _reason(error)) if read else None
    return found or Unknown(_tag(line, kind), line, _reason(error))


def _with_careful_content(members: dict[str, Raw], kind: type[_Spoken]) -> _Spoken | None:
    """Decode the message without its content, then the content part by part."""
    inner = _members(members.get("message", b""))
    try:
        parts = _RAWS.decode(inner.get("content", b""))
        shell = _encode_with(members, message=Raw(_encode_with(inner, content=[])))
        message = msgspec.json.decode(shell, type=kind)
    except DECODE_ERRORS:
        return None
    message.message.content = [read_block(bytes(part)) for part in parts]
    return message


def _read_stream_event(members: dict[str, Raw], reason: str) -> StreamEvent | None:
    raw = bytes(members.get("event", b""))
    name = _text(_members(raw), "type")
    try:
        message = msgspec.json.decode(
            _encode_with(members, event={"type": "ping"}), type=StreamEvent
        )
    except DECODE_ERRORS:
        return None
    message.event = Unknown(name, raw, reason)
    return message


def _read_request(
    members: dict[str, Raw], reason: str
) -> ControlRequestLine | UnreadableRequest | None:
    request_id = _text(members, "request_id")
    if not request_id:
        return None
    body = _members(members.get("request", b""))
    subtype = _text(body, "subtype")
    if subtype == "hook_callback":
        return _read_hook(request_id, body, reason)
    # Without a readable subtype it may be a hook, which an error would not stop.
    return UnreadableRequest(request_id, subtype, reason, may_be_pre_tool_use=not subtype)


def _read_hook(
    request_id: str, body: dict[str, Raw], reason: str
) -> ControlRequestLine | UnreadableRequest:
    raw = bytes(body.get("input", b""))
    event = _text(_members(raw), "hook_event_name")
    # A name that had to be repaired may have been that of any event.
    if event and event not in _KNOWN_HOOKS and "\ufffd" not in event:
        try:
            shell = _encode_with(body, input={"hook_event_name": "Stop", "session_id": ""})
            callback = msgspec.json.decode(shell, type=HookCallback)
        except DECODE_ERRORS as error:
            return UnreadableRequest(request_id, "hook_callback", _reason(error), True)
        callback.input = Unknown(event, raw, reason)
        return ControlRequestLine(request_id, callback)
    safe = event in _KNOWN_HOOKS and event != PRE_TOOL_USE
    return UnreadableRequest(request_id, "hook_callback", reason, not safe)


def _read_response(members: dict[str, Raw], reason: str) -> ControlResponseLine | None:
    """Whoever waits must be woken, also where some part of the answer can't be read."""
    body = _members(members.get("response", b""))
    request_id = _text(body, "request_id")
    pending = [_raws(body.get(key, b"")) for key in PENDING_LISTS]
    match _text(body, "subtype") if request_id else "":
        case "success":
            answer = Raw(bytes(body.get("response", b"")))
            return ControlResponseLine(ControlSuccess(request_id, answer, *pending))
        case "error":
            error = _text(body, "error") or f"an error that can't be read: {reason}"
            code = _text(body, "error_code") or None
            return ControlResponseLine(ControlFailure(request_id, error, code, *pending))
    return None


_CAREFUL: dict[str, Callable[[dict[str, Raw], str], Decoded | None]] = {
    "assistant": lambda members, _: _with_careful_content(members, Assistant),
    "user": lambda members, _: _with_careful_content(members, User),
    "stream_event": _read_stream_event,
    "control_request": _read_request,
    "control_response": _read_response,
}


def _read_update(raw: bytes) -> PermissionUpdate | Unknown:
    try:
        return _UPDATE.decode(raw)
    except DECODE_ERRORS as error:
        return Unknown(_text(_members(raw), "type"), raw, _reason(error))


def _members(raw: Raw | bytes) -> dict[str, Raw]:
    try:
        return _MEMBERS.decode(raw)
    except DECODE_ERRORS:
        return {}


def _raws(raw: Raw | bytes) -> list[Raw]:
    try:
        return _RAWS.decode(raw)
    except DECODE_ERRORS:
        return []


def _text(members: dict[str, Raw], key: str) -> str:
    try:
        return _TEXT.decode(members[key])
    except (KeyError, *DECODE_ERRORS):
        return ""


def _tag(line: bytes, kind: str) -> str:
    subtype = _text(_members(line), "subtype")
    return f"{kind}/{subtype}" if subtype else kind


def _encode_with(members: dict[str, Raw], **changed: Any) -> bytes:
    return msgspec.json.encode({**members, **changed})


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


# A surrogate pair, a lone surrogate, or any other escape (so that `\\ud800` is left alone).
_ESCAPES = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r"|\\."
)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _repair(line: bytes) -> bytes:
    """Put U+FFFD where the text is broken.

    JavaScript cuts strings between the halves of a character and writes the half as an escape,
    which no UTF-8 can hold; a request with one must not hang for it. Invalid UTF-8 likewise.
    """
    text = line.decode("utf-8", "replace")
    if not _SURROGATE.search(line):
        return text.encode()
    return _ESCAPES.sub(lambda escape: r"\ufffd" if escape["lone"] else escape[0], text).encode()
