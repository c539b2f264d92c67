"""One connection: uvicorn's HTTP/1.1, with deadlines and with who is at the other end.

Owns what uvicorn leaves open: a client that never ends its headers, goes on with a body that nobody
wants any more, or does not read what it is answered, is not waited for; there are no more of them
than there may be. The other end is asked for as soon as it connects, and is in the state of each
request as `PEER`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

import h11
from msgspec import Struct
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from .capacity import Capacity, full
from .peers import Lookout, Peer, UnknownPeer, peer_of
from .problems import MEDIA_TYPE, Problem
from .requests import StrictConnection
from .streams.sending import ABORT

#: The name under which the state of a request has the peer.
PEER = "bridle_peer"
#: And that under which it has whom to tell what its caller is.
MEET = "bridle_meet"
#: How long what is left of a body is read and thrown away, so that the answer is not lost.
LINGER_SECONDS = 2.0


class ConnectionLimits(Struct, frozen=True, kw_only=True):
    """What a connection may take. `most` is how many there may be, over TCP and over the socket
    each; `unread_seconds`, how long nothing may be read of an answer that waits to be."""

    header_seconds: float = 10.0
    unread_seconds: float = 30.0
    most: int = 512


class DoorProtocol(H11Protocol):
    """Made by uvicorn for each connection, by way of `protocol_with`."""

    limits = ConnectionLimits()
    lookout = Lookout()
    #: By whether they come over the socket in the home.
    places: Mapping[bool, Capacity]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = StrictConnection()
        self.peer: Peer = UnknownPeer()
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._is_refused = False

    # --- from the first to the last byte

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        connection = transport.get_extra_info("socket")
        if connection is not None:
            self.peer = peer_of(connection, self.lookout)
        self.app_state = {
            **self.app_state,
            PEER: self.peer,
            ABORT: transport.abort,
            MEET: partial(self._places.meet, self),
        }
        super().connection_made(transport)
        if not self._places.enter(self):
            self._refuse(full())
            return
        self._set_deadline(self.limits.header_seconds)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        super().data_received(data)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._drop_deadline()
        if self._unread:
            self._unread.cancel()
        self._unset_keepalive_if_required()
        self._places.leave(self)
        super().connection_lost(exc)

    @property
    def _places(self) -> Capacity:
        return self.places[self.peer.is_local]

    def turn_away(self) -> None:
        """Somebody else needs the place."""
        if self._is_in_request():
            self.transport.abort()
        else:
            self._refuse(full())

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_unread()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_unread()
        if self.conn.their_state is h11.SEND_BODY:
            self._drop_deadline()
            self._set_deadline(LINGER_SECONDS)
        else:
            self._look()

    # --- deadlines

    def _look(self) -> None:
        """Whether it is for them to say more of the headers that they have begun."""
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._set_deadline(self.limits.header_seconds)
        elif self.conn.their_state is not h11.IDLE and self._is_in_request():
            self._drop_deadline()

    def _is_in_request(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _set_deadline(self, seconds: float) -> None:
        """The first one counts, however much is said meanwhile."""
        if self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(seconds, self._too_late)

    def _drop_deadline(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        self.transport.abort()

    def _watch_unread(self) -> None:
        """One that is closed stays open until all is read, so this is for little as for much."""
        size = self.transport.get_write_buffer_size()
        if size and self._unread is None:
            seconds = self.limits.unread_seconds
            self._unread = self.loop.call_later(seconds, self._look_at_unread, size)

    def _look_at_unread(self, size: int) -> None:
        self._unread = None
        # A slow line is no fault, and more may have come: who stands still has gone.
        if self.transport.get_write_buffer_size() == size:
            self.transport.abort()
        else:
            self._watch_unread()

    def timeout_keep_alive_handler(self) -> None:
        self.transport.close()

    def shutdown(self) -> None:
        """The server ends: at once, or after the answer that is on its way."""
        if self._is_in_request():
            self.cycle.keep_alive = False
        else:
            self.transport.close()

    def _should_upgrade(self) -> bool:
        return False  # uvicorn would log a warning for whoever asks for it

    # --- what can't be answered by the application

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._refuse(self._why() or Problem(400, "bad_request", msg, "Send HTTP/1.1."))
        else:  # an answer is half sent
            self.transport.close()

    def _why(self) -> Problem | None:
        return self.conn.refusal if isinstance(self.conn, StrictConnection) else None

    def _refuse(self, problem: Problem) -> None:
        self._is_refused = True
        self.transport.write(_raw(problem))
        self.transport.close()
        self._watch_unread()


def protocol_with(limits: ConnectionLimits, lookout: Lookout) -> type[DoorProtocol]:
    """The protocol with these limits, for one server."""
    places = {is_local: Capacity(limits.most) for is_local in (False, True)}
    its = {"limits": limits, "lookout": lookout, "places": places}
    return type("DoorProtocol", (DoorProtocol,), its)


def _raw(problem: Problem) -> bytes:
    """An answer as it goes over the wire."""
    body = problem.body
    head = (
        f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n"
        f"content-type: {MEDIA_TYPE}\r\n"
        f"content-length: {len(body)}\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + body
