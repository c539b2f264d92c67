"""What stands in a line of JSON-RPC, as far as a proxy must know it.

Owns the reading of both sides' messages and the few changes that are made to them. What is not
changed goes on byte by byte; nothing here waits or writes.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ...ids import new_uuid

#: By which the server knows a call that it is asked for again.
REQUEST_ID = "bridle/requestId"
#: Where a client of the newer kind says, with each message, which protocol it speaks.
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR, REFUSED = -32700, -32600, -32603, -32000

Id: TypeAlias = str | int | float | None
Headers: TypeAlias = dict[str, str]

#: What of a message has to be in its headers, too.
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PLAIN = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_PROGRESS = "notifications/progress"


# --- what the client says


class Request(Struct, frozen=True, kw_only=True):
    """It waits for an answer. `progress` is the name under which it wants to hear how it goes."""

    id: Id
    method: str
    body: bytes
    headers: Headers
    progress: Raw | None = None


class Notice(Struct, frozen=True):
    """Nobody waits for an answer."""

    body: bytes
    headers: Headers


class Withdrawn(Struct, frozen=True):
    """The client does not want this answer any more."""

    id: Id


class Unreadable(Struct, frozen=True):
    """No message, and what is to be told of that."""

    code: int
    words: str
    id: Id = None


class Nothing(Struct, frozen=True):
    """Nobody's: an answer of the client's, whom the server asks nothing, or the end of no call."""


FromClient: TypeAlias = Request | Notice | Withdrawn | Unreadable | Nothing


class _Envelope(Struct):
    id: Id | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw = Raw(b"{}")


_envelope = msgspec.json.Decoder(_Envelope)
_members = msgspec.json.Decoder(dict[str, Raw])
_any = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode


def read_line(line: bytes) -> FromClient:
    """What the client has said."""
    try:
        found = _envelope.decode(line)
    except msgspec.ValidationError as error:
        return Unreadable(INVALID_REQUEST, f"a line is one JSON-RPC message: {error}")
    except (msgspec.DecodeError, RecursionError) as error:
        return Unreadable(PARSE_ERROR, f"this line is no JSON: {error}", _id_in(line))
    if found.method is UNSET:
        return Nothing()
    params = _object(found.params)
    if found.id is UNSET:
        if found.method == "notifications/cancelled":
            given = _value(params.get("requestId"))
            return Withdrawn(given) if isinstance(given, str | int | float) else Nothing()
        return Notice(line, _headers(found.method, params))
    return _request(found.id, found.method, params, line)


def _id_in(line: bytes) -> Id:
    """Of what only a laxer reader can read (half of a character, say): whoever sent it waits."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    given = found.get("id") if isinstance(found, dict) else None
    return given if isinstance(given, str | int) else None


def _request(id_: Id, method: str, params: dict[str, Raw], line: bytes) -> Request:
    told = params.get("_meta", Raw(b"{}"))
    meta = _object(told)
    headers, body = _headers(method, params), line
    # What is no call for us to read is for the server to refuse, as it is.
    if method == "tools/call" and params and bytes(told).startswith(b"{"):
        # The same in every attempt: so what is done for it is done once.
        meta.setdefault(REQUEST_ID, Raw(_encode(new_uuid())))
        members = params | {"_meta": Raw(_encode(meta))}
        body = _encode({"jsonrpc": "2.0", "id": id_, "method": method, "params": members})
    return Request(
        id=id_, method=method, body=body, headers=headers, progress=meta.get("progressToken")
    )


def _headers(method: str, params: dict[str, Raw]) -> Headers:
    """Clients of the newer kind say in headers what is also in the message; others don't."""
    version = _value(_object(params.get("_meta", Raw(b""))).get(VERSION_KEY))
    if not isinstance(version, str):
        return {}
    headers = {"mcp-protocol-version": _header(version), "mcp-method": _header(method)}
    name = _value(params.get(_NAMED.get(method, "")))
    return headers | ({"mcp-name": _header(name)} if isinstance(name, str) else {})


def _header(value: str) -> str:
    """A value as a header has it; what a header can't have is wrapped, as the protocol says."""
    if _PLAIN.fullmatch(value) and not value.startswith("=?base64?"):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


# --- what the server says


class Answer(Struct, frozen=True):
    """The last that comes. `version` is the protocol that an initialize has agreed upon."""

    line: bytes
    version: str = ""


class Told(Struct, frozen=True):
    """Something beside the answer. `progress` is how far it says that it is."""

    line: bytes
    progress: float | None = None


class _FromServer(Struct):
    id: Id | UnsetType = UNSET
    method: str = ""
    params: Raw = Raw(b"{}")
    result: Raw = Raw(b"")


_from_server = msgspec.json.Decoder(_FromServer)


def read_answer(data: bytes, request: Request) -> Answer | Told | None:
    """What a message of the server's is to the one who asked; None if it is nothing to them."""
    try:
        found = _from_server.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return None
    line = on_a_line(data)
    if not found.method:
        if found.id is UNSET or found.id != request.id:
            return None
        agreed = _value(_object(found.result).get("protocolVersion"))
        is_first = request.method == "initialize" and isinstance(agreed, str)
        return Answer(line, str(agreed) if is_first else "")
    if found.id is not UNSET:
        return None
    how_far = _value(_object(found.params).get("progress")) if found.method == _PROGRESS else None
    return Told(line, float(how_far) if isinstance(how_far, int | float) else None)


def progress_line(request: Request, value: float, words: str) -> bytes:
    """Our own word to one who waits. Only where they have said under which name."""
    token = request.progress or Raw(b"null")
    params = {"progressToken": token, "progress": value, "message": words}
    return _encode({"jsonrpc": "2.0", "method": _PROGRESS, "params": params})


def moved_on(line: bytes, value: float) -> bytes:
    """A progress with another number: it must be larger each time, also after a restart."""
    members = _members.decode(line)
    params = _members.decode(members["params"]) | {"progress": Raw(_encode(value))}
    return _encode(members | {"params": Raw(_encode(params))})


def error_line(id_: Id, code: int, words: str) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": words}})


def refusal_line(id_: Id, error: Raw) -> bytes:
    """An error of the server's, for the one who asked."""
    return on_a_line(_encode({"jsonrpc": "2.0", "id": id_, "error": error}))


def on_a_line(data: bytes) -> bytes:
    """No string of JSON has a line's end in it, so each of them stands between two tokens."""
    return data.replace(b"\r", b" ").replace(b"\n", b" ")


def _object(raw: Raw) -> dict[str, Raw]:
    """The members of an object; none, if it is something else."""
    try:
        return _members.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return {}


def _value(raw: Raw | None) -> Any:
    try:
        return _any.decode(raw) if raw is not None else None
    except (msgspec.MsgspecError, RecursionError):
        return None
