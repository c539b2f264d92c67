"""How much a request may bring along, and how long that may take.

Owns the limits, and what a route reads in their bounds: a body is looked at piece by piece, also
one that does not say how long it is. What it has in it as JSON is counted by `json_bounds`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from litestar.types import ASGIApp, Receive, Scope, Send
from msgspec import Struct

from .json_bounds import JsonBounds, JsonLimits
from .problems import Problem

MB = 1024 * 1024
#: More of them make no length.
DIGITS = 20
#: Ends of the addresses that take prompts, or what is asked back: there may be pictures in it, and
#: whole files in what an agent wants to write. And those that take copies of anchors.
_PROMPTS = ("/sessions", "/send", "/start", "/resume", "/fork", "/decide")
_LARGE = (*_PROMPTS, "/mcp", "/permit", "/rpc", "/audit/verify")


class BodyLimits(Struct, frozen=True, kw_only=True):
    """In bytes; `large` is for prompts. `seconds` is how long all of it may take."""

    most: int = MB
    large: int = 32 * MB
    seconds: float = 60.0
    json: JsonLimits = JsonLimits()


def bounded(app: ASGIApp) -> ASGIApp:
    """A middleware of the application, which knows by then which route it is."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        limits: BodyLimits = scope["state"]["house"].bodies
        is_large = str(scope.get("path_template", "")).endswith(_LARGE)
        most = limits.large if is_large else min(limits.most, limits.large)
        await app(scope, _Body(scope, receive, most, limits), send)

    return call


class _Body:
    """What a client sends; nothing of it is looked at before the route wants it."""

    def __init__(self, scope: Scope, receive: Receive, most: int, limits: BodyLimits) -> None:
        self._receive = receive
        self._left = most
        self._most = most
        self._end = asyncio.get_running_loop().time() + limits.seconds
        self._json = JsonBounds(limits.json)
        self._is_whole = False
        lengths = [value for name, value in scope["headers"] if name == b"content-length"]
        self._is_too_large = any(len(one) > DIGITS or int(one) > most for one in lengths)

    async def __call__(self) -> Any:
        message: Any
        if self._is_whole:
            return await self._receive()
        if self._is_too_large:
            raise _too_large(self._most)
        try:
            async with asyncio.timeout_at(self._end):
                message = await self._receive()
        except TimeoutError:
            raise Problem(
                408,
                "too_slow",
                "The body did not come in its time.",
                "Send it faster, or send less.",
                headers={"connection": "close"},
            ) from None
        self._is_whole = not message.get("more_body", False)
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise _too_large(self._most)
        self._json.add(message.get("body", b""))
        return message


def _too_large(most: int) -> Problem:
    return Problem(
        413,
        "too_large",
        f"The body is too large: {most} bytes is the most here.",
        "Send less, or raise `max_body`, which holds for prompts.",
        {"most": most},
        {"connection": "close"},
    )
