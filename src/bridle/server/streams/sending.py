"""A stream as the answer to a request, sent the cheapest way that there is.

Owns one connection from its first byte to its last. Two tasks for each: one sends what there is and
then waits at its bell, the other waits for the client to leave. No task and no timer per event.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

from litestar import Response
from litestar.response.base import ASGIResponse
from litestar.types import HTTPResponseBodyEvent, Receive, Scope, Send

from ...errors import BridleError, UnknownSession
from ..access import Caller
from ..problems import Problem
from .audience import BYE, GONE, Audience, Listener
from .follower import Following
from .frames import RETRY

MEDIA_TYPE = "text/event-stream"
#: Nobody on the way may keep it, or wait for more of it.
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
#: The name under which the state of a request has how to end its connection at once. Without it a
#: connection that is stuck is closed only when the client has read what was sent before.
ABORT = "bridle_abort"

#: Begins to follow, for as long as the answer lasts.
Begin = Callable[[], AbstractContextManager[Following]]

_log = logging.getLogger(__name__)


class EventStream(Response[Any]):
    """What a route gives for a stream of `session` (""; of everything). It begins when it is sent:
    a client that is gone before has cost nothing."""

    def __init__(self, begin: Begin, audience: Audience, caller: Caller, session: str) -> None:
        super().__init__(b"", media_type=MEDIA_TYPE, headers=HEADERS)
        self._begin = begin
        self._audience = audience
        self._caller = caller
        self._session = session

    def to_asgi_response(self, *_: Any, **__: Any) -> ASGIResponse:
        return _Sending(self._begin, self._audience, self._caller, self._session)


class _Sending(ASGIResponse):
    _should_set_content_length = False

    def __init__(self, begin: Begin, audience: Audience, caller: Caller, session: str) -> None:
        super().__init__(media_type=MEDIA_TYPE, headers=HEADERS)
        self._begin = begin
        self._audience = audience
        self._caller = caller
        self._session = session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        abort: Callable[[], None] | None = scope.get("state", {}).get(ABORT)

        def drop() -> None:
            telling.cancel()
            if abort:
                abort()

        listener = Listener(self._caller, self._session, drop)
        await self.start_response(send)
        telling = asyncio.ensure_future(self._tell(listener, send))
        leaving = asyncio.ensure_future(_left(receive))
        self._audience.add(listener)
        try:
            await asyncio.wait((telling, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._audience.remove(listener)
            for task in (telling, leaving):
                task.cancel()
            await asyncio.wait((telling, leaving))
        if not telling.cancelled():
            telling.result()  # a mistake of ours is the server's to log

    async def _tell(self, listener: Listener, send: Send) -> None:
        try:
            await self._follow(listener, send)
        except UnknownSession:
            listener.end(GONE)
        except BridleError:  # what was not sent is in the log: the client may come again
            _log.exception("a stream of %s ends", listener.session or "everything")
            listener.end(BYE)
        await _put(listener, send, listener.ending or b"", is_last=True)

    async def _follow(self, listener: Listener, send: Send) -> None:
        with self._begin() as following:
            following.crowd.join(listener.bell)
            try:
                # Who is sent the first words has its place, and misses nothing from then on.
                await _put(listener, send, RETRY + await following.more())
                while listener.ending is None:
                    data = await following.more()
                    if not data and listener.is_due:
                        data = following.beat()
                    if data:
                        await _put(listener, send, data)
                    elif following.is_over:
                        return
                    elif listener.ending is None:
                        await listener.bell.wait()
            finally:
                following.crowd.leave(listener.bell)


async def _put(listener: Listener, send: Send, data: bytes, *, is_last: bool = False) -> None:
    clock = asyncio.get_running_loop().time
    body: HTTPResponseBodyEvent = {
        "type": "http.response.body",
        "body": data,
        "more_body": not is_last,
    }
    listener.sending_since = clock()
    await send(body)
    listener.sending_since = None
    listener.sent_at = clock()
    listener.is_due = False


async def _left(receive: Receive) -> None:
    """Until the client is gone, or keeps us waiting for a body that it has promised."""
    with suppress(Problem):
        while (await receive())["type"] != "http.disconnect":
            pass
