"""ASGI as these doors need it: types, the body of a request, and plain answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

import msgspec

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

JSON = "application/json"
PROBLEM = "application/problem+json"


class Left(Exception):
    """Whoever asked has hung up."""


async def body_of(receive: Receive) -> bytes:
    """All of it: how much that may be is for whoever serves us to say."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Left
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


async def has_left(receive: Receive) -> None:
    """Until they hang up. Nothing else comes after the body."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def answer(send: Send, status: int, body: bytes = b"", kind: str = JSON) -> None:
    headers = [(b"content-length", str(len(body)).encode())]
    if body:
        headers.append((b"content-type", kind.encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def refuse(send: Send, status: int, code: str, detail: str, remedy: str) -> None:
    """In the shape of every error of the server: docs/api.md."""
    problem = {
        "type": f"urn:bridle:problem:{code}",
        "title": code.replace("_", " ").capitalize(),
        "status": status,
        "code": code,
        "detail": detail,
        "remedy": remedy,
    }
    await answer(send, status, msgspec.json.encode(problem), PROBLEM)
