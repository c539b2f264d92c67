"""Calls that wait have no end of their own, and a server that ends would wait for them. Owns that
they are ended then: what was asked is not answered, so that it is asked again of the next one. In
the same way a call ends whose caller does."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from .asgi import App, Message, Receive, Scope, Send, refuse
from .waiting import ended


class Reason(Struct, frozen=True):
    """Why an answer breaks off, for one to whom nothing of it was sent yet."""

    status: int
    code: str
    words: str
    remedy: str


CLOSING = Reason(503, "closing", "The server is ending.", "Ask the next one.")


def ends_with(closing: asyncio.Event, app: App, reason: Reason = CLOSING) -> App:
    """The application, whose answers break off when `closing` is set."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        sent = _Sent(send)
        answering = asyncio.ensure_future(_called(app, scope, receive, sent))
        ending = asyncio.ensure_future(closing.wait())
        try:
            await asyncio.wait({answering, ending}, return_when=asyncio.FIRST_COMPLETED)
            is_broken_off = not answering.done()
        finally:
            await ended(answering, ending)
        if not is_broken_off:
            answering.result()
        elif not sent.is_whole:
            await sent.break_off(reason)

    return call


async def _called(app: App, scope: Scope, receive: Receive, send: Send) -> None:
    await app(scope, receive, send)


class _Sent:
    """What went out of an answer until now."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._is_begun = False
        self.is_whole = False

    async def __call__(self, message: Message) -> None:
        self._is_begun = True
        if message["type"] == "http.response.body":
            self.is_whole = not message.get("more_body", False)
        await self._send(message)

    async def break_off(self, reason: Reason) -> None:
        if self._is_begun:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        await refuse(self._send, reason.status, reason.code, reason.words, reason.remedy)
