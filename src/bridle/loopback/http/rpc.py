"""The tools as JSON-RPC 2.0: single calls, batches and notifications, by POST.

Owns the envelope. What a call gives, also where it is refused, is its result; errors of JSON-RPC
are for what is no call at all.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from ..service import Loopback
from .asgi import Left, Receive, Scope, Send, answer, body_of, has_left
from .entry import session_in
from .keys import NoKey, key_in
from .waiting import ended

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
#: So many calls make one batch.
LARGEST_BATCH = 100

Json: TypeAlias = dict[str, Any]


class Rpc:
    """One for all callers: it keeps nothing."""

    def __init__(self, loopback: Loopback) -> None:
        self._loopback = loopback
        self._names = {method.dotted: name for name, method in loopback.methods.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await body_of(receive)
            given = await _unless_left(self._answered(session_in(scope), body), receive)
        except Left:
            return
        if given is None:
            await answer(send, 204)
        else:
            # Not by msgspec: an id may be anything that JSON has, and goes back as it came.
            await answer(send, 200, json.dumps(given, separators=(",", ":")).encode())

    async def _answered(self, caller: str, body: bytes) -> Json | list[Json] | None:
        try:
            given = read(body)
        except ValueError as error:
            return _error(None, PARSE_ERROR, f"this is no JSON: {error}")
        if not isinstance(given, list):
            return await self._one(caller, given)
        if not given or len(given) > LARGEST_BATCH:
            return _error(None, INVALID_REQUEST, f"a batch has 1 to {LARGEST_BATCH} calls")
        # One after the other: a later one may need what an earlier one has made.
        answers = [await self._one(caller, one) for one in given]
        return [one for one in answers if one is not None] or None

    async def _one(self, caller: str, given: Any) -> Json | None:
        try:
            request = request_in(given)
        except ValueError as error:
            return _error(_id_in(given), INVALID_REQUEST, str(error))
        told = await self._told(caller, request)
        return None if request.is_notification else {"jsonrpc": "2.0", "id": request.id, **told}

    async def _told(self, caller: str, request: Request) -> Json:
        name = self._names.get(request.method)
        if name is None:
            words = (
                f"there is no method {request.method[:100]!r}; there is {', '.join(self._names)}"
            )
            return _failed(METHOD_NOT_FOUND, words)
        try:
            arguments, key = _arguments_in(request.params)
            self._loopback.methods[name].read(arguments)
        except (NoKey, msgspec.ValidationError) as error:
            return _failed(INVALID_PARAMS, str(error))
        result = await self._loopback.call(caller, name, arguments, key)
        if result.get("type") == "error" and result.get("code") == "internal":
            return _failed(INTERNAL_ERROR, str(result.get("message", "")))
        return {"result": result}


class Request(Struct, frozen=True):
    method: str
    params: Any
    id: Any
    is_notification: bool


def request_in(given: Any) -> Request:
    """ValueError if it is none."""
    if not isinstance(given, dict):
        raise ValueError("a call is an object")
    if given.get("jsonrpc") != "2.0":
        raise ValueError('`jsonrpc` must be "2.0"')
    if not isinstance(given.get("method"), str):
        raise ValueError("`method` must be a text")
    if "id" in given and not _is_id(given["id"]):
        raise ValueError("`id` must be a text, a number or null")
    if "params" in given and not isinstance(given["params"], dict | list):
        raise ValueError("`params` must be an object")
    return Request(given["method"], given.get("params", {}), given.get("id"), "id" not in given)


def _is_id(given: Any) -> bool:
    return given is None or (isinstance(given, str | int | float) and not isinstance(given, bool))


def _id_in(given: Any) -> Any:
    """Of what is no call: null, if it has none that could be one."""
    found = given.get("id") if isinstance(given, dict) else None
    return found if _is_id(found) else None


def _arguments_in(params: Any) -> tuple[Json, str]:
    if isinstance(params, Sequence):
        raise NoKey("`params` must be an object, with a name for each argument")
    arguments = dict(params)
    meta = arguments.pop("_meta", None)
    return arguments, key_in(meta)


def _error(id_: Any, code: int, message: str) -> Json:
    return {"jsonrpc": "2.0", "id": id_, **_failed(code, message)}


def _failed(code: int, message: str) -> Json:
    return {"error": {"code": code, "message": message}}


# --- reading


def read(body: bytes) -> Any:
    """Strictly: two who read it must not read two different things. ValueError says what is wrong.

    It may have no key twice, no NaN, and no half of a character.
    """
    try:
        given = json.loads(
            body.decode(), object_pairs_hook=_once, parse_constant=_refused, parse_float=_number
        )
        if b"\\u" in body:
            json.dumps(given, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return given


def _once(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) < len(pairs):
        # In one go: there may be a million of them.
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{twice[:100]!r} is there twice")
    return found


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


async def _unless_left(
    answering: Coroutine[Any, Any, Json | list[Json] | None], receive: Receive
) -> Json | list[Json] | None:
    """Left, if they hang up before it is there; then nothing more is done for them."""
    work, leaving = asyncio.ensure_future(answering), asyncio.ensure_future(has_left(receive))
    try:
        await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise Left
        return work.result()
    finally:
        await ended(work, leaving)
