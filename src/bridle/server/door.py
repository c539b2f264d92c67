"""The outermost of the server: who comes in, and as whom.

Owns the order in which a request is looked at: the name by which we are called, the page that asks,
who it says that it is (a token, then a cookie, then the socket that it came by), and whether the
process behind it is an agent's. Then the application gets it, with the caller in its scope. What is
answered goes out with headers that keep browsers strict.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from ..supervisor import Supervisor
from .access import Caller
from .answers import logged_problem
from .guards import Names, check_forgery, header
from .house import House
from .login import cookie_name
from .outsiders import counts
from .peers import Clear, OfAgent, Peer, SocketPeer, Standing, UnknownPeer, Unseen, Untold
from .problems import MEDIA_TYPE, Problem
from .protocol import MEET, PEER
from .token_file import login_name
from .tokens import Token

#: A page may do nothing that is not said here; ours that want more say so themselves.
CONTENT_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
HEADERS = {
    b"cache-control": b"no-store",
    b"content-security-policy": CONTENT_POLICY.encode(),
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
}

#: Who may not come in keeps no place.
_GO = {"connection": "close"}

_log = logging.getLogger(__name__)


class Door:
    """An ASGI application around another one."""

    def __init__(self, app: ASGIApp, house: House, names: Names) -> None:
        self._app = app
        self._house = house
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            raise RuntimeError(f"there is nothing here for {scope['type']}")
        safe_send = _with_headers(send)
        try:
            caller = await self._admitted(scope)
        except Exception as error:  # noqa: BLE001 - who can't be looked at is not let in
            await _refuse(logged_problem(error), safe_send)
            return
        if caller:
            scope["user"] = caller
        await self._app(scope, receive, safe_send)

    async def _admitted(self, scope: Scope) -> Caller | None:
        peer = peer_in(scope)
        host = self._names.check_host(scope, is_local=peer.is_local)
        self._names.check_origin(scope, host)
        shown = header(scope, b"authorization")
        if shown is None and isinstance(peer, SocketPeer):
            caller, token = Caller(role="person", name=login_name(peer.uid), via="terminal"), None
        else:
            token = self._login(scope) if shown is None else self._bearer(shown)
            if token is None:
                return None
            caller = token.caller("web" if shown is None else "api")
        standing = await check_peer(peer, self._house.supervisor, caller.name, caller.session)
        if isinstance(standing, Unseen) and not (token and token.is_unseen):
            raise _unseen(caller.name)
        if meet := scope.get("state", {}).get(MEET):
            meet(caller.role)
        return caller

    def _login(self, scope: Scope) -> Token | None:
        """A browser's, by its cookie; not yet whether that is theirs to show."""
        tokens, name = self._house.tokens, cookie_name(self._house.url)
        # Another server on this host may have set one of the same name: ours is the one we know.
        found = next(
            filter(None, (tokens.find(one, "login") for one in _cookies(scope, name))), None
        )
        if found is not None:
            check_forgery(scope)
        return found

    def _bearer(self, shown: str) -> Token:
        scheme, _, text = shown.partition(" ")
        found = self._house.tokens.find(text.strip(), "token")
        if scheme.lower() == "bearer" and found and counts(found, self._house.supervisor):
            return found
        raise Problem(
            401,
            "unauthorized",
            "This token is not known here.",
            "It was revoked, its session has ended, or it is of another home. `bridle mcp token`"
            " makes one for an agent, `bridle token new` one for a program.",
            headers={"www-authenticate": "Bearer"},
        )


def peer_in(scope: Any) -> Peer:
    """Who is at the other end; where nobody has looked, nothing is known of them."""
    peer: Peer = scope.get("state", {}).get(PEER) or UnknownPeer()
    return peer


async def check_peer(
    peer: Peer, supervisor: Supervisor, name: str, own: str = ""
) -> Clear | Unseen:
    """Nobody who is below an agent comes in as somebody else, whatever they have in hand. `own` is
    the session of an agent, which comes in as itself."""
    standing: Standing = await peer.standing()
    match standing:
        case Clear() | Unseen():
            return standing
        case OfAgent(launches):
            found = supervisor.list(
                lambda one: one.launch is not None and one.launch.id in launches
            )
            others = [one.id for one in found if one.id != own]
            if own and not others:
                return Clear()  # itself, or one that another home has started
            session = others[0] if others else ""
            who = f"session {session}" if session else f"launch {launches[0]}"
            _log.warning("a process of an agent (%s) came as %s, and was refused", who, name)
            raise Problem(
                403,
                "agent_peer",
                f"You are a process of an agent ({who}): the rights of others are not for you.",
                "Ask the person who runs the agent. Agents have tokens of their own.",
                {"session": session},
                _GO,
            )
        case Untold(why):
            _log.warning("a caller came as %s and was refused: %s", name, why)
            raise Problem(
                403,
                "unknown_peer",
                f"It can't be told whether you are a process of an agent: {why}.",
                "Connect again, and keep the connection open until the answer is there.",
                headers=_GO,
            )


def _unseen(name: str) -> Problem:
    _log.warning("a caller that can't be seen came as %s, and was refused", name)
    return Problem(
        403,
        "unseen_peer",
        "No process that can be seen has this connection, so it may be an agent's.",
        "If you come through `ssh -L`, or from outside of the server's container: log in with what"
        " `bridle url` prints there. For programs, start the server with --allow-unseen.",
        headers=_GO,
    )


def _cookies(scope: Scope, name: str) -> Iterator[str]:
    """All that are called so; other cookies of this host may look like anything."""
    for key, value in scope["headers"]:
        if key == b"cookie":
            for one in value.decode("latin-1").split(";"):
                called, _, text = one.strip().partition("=")
                if called == name:
                    yield text


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            there = {name.lower() for name, _ in headers}
            headers += [one for one in HEADERS.items() if one[0] not in there]
            message["headers"] = headers
        await send(message)

    return sent


async def _refuse(problem: Problem, send: Send) -> None:
    body = problem.body
    headers = [(name.encode(), value.encode()) for name, value in problem.headers.items()]
    headers += [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
