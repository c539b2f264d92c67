"""Who calls, and what they may: a person, an agent, a permit or a reader, never by their own word.

Owns the words and the check of a route; who somebody is, is found from a token, a cookie or the
peer of a socket elsewhere. A route says which roles it takes (`takes("person", "reader")`); one
that says nothing takes people alone.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from msgspec import Struct

from ..approvals import Person
from ..errors import UnknownSession
from ..supervisor import SessionRecord
from .problems import Problem

#: A `permit` is an agent that may ask what it may do, and nothing else.
Role: TypeAlias = Literal["person", "agent", "reader", "permit"]
#: Where they sit: `terminal` is the command, `web` a browser with our cookie, `api` a program.
Via: TypeAlias = Literal["terminal", "web", "api"]

#: The name under which a route keeps the roles that it takes.
TAKES = "takes"


class Caller(Struct, frozen=True, kw_only=True):
    """Whoever sent a request. `session` is an agent's own."""

    role: Role
    name: str
    via: Via = "api"
    session: str = ""
    #: The id of the token that they came with; "" for the socket.
    token: str = ""

    @property
    def is_agent(self) -> bool:
        """Whether it acts for one session."""
        return self.role in ("agent", "permit")

    @property
    def person(self) -> Person:
        """As the one who decides. Routes that need it take people alone; an agent is none."""
        if self.role != "person":
            raise forbidden(self, ("person",))
        return Person(self.name, self.via)

    def check_sees(self, record: SessionRecord) -> None:
        """An agent sees itself and what is below it; of all else it does not learn that it is."""
        if not self.sees(record):
            raise UnknownSession(record.id)

    def sees(self, record: SessionRecord) -> bool:
        return not self.is_agent or self.session in (record.id, *record.lineage)


HttpRequest: TypeAlias = Request[Caller, Any, Any]


def takes(*roles: Role) -> dict[str, Any]:
    """For the `opt` of a route: who may call it. With no role, anybody may, without a token."""
    return {TAKES: roles}


def roles_of(handler: BaseRouteHandler) -> tuple[Role, ...]:
    """Who may call this route."""
    roles: tuple[Role, ...] = handler.opt.get(TAKES, ("person",))
    return roles


def caller_of(connection: ASGIConnection[Any, Any, Any, Any]) -> Caller | None:
    """Who calls, for a route that anybody may call: None if they did not say."""
    caller: Caller | None = connection.scope.get("user")
    return caller


def check_role(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """The guard of every route."""
    roles = roles_of(handler)
    caller = caller_of(connection)
    if not roles:
        return
    if caller is None:
        raise Problem(
            401,
            "unauthorized",
            "This needs a token.",
            "Send `Authorization: Bearer TOKEN`; a person's is in the file `token` of Bridle's"
            " home, and `bridle mcp token` makes one for an agent. For a browser, run `bridle url`"
            " and open what it prints.",
        )
    if caller.role not in roles:
        raise forbidden(caller, roles)


def forbidden(caller: Caller, roles: tuple[Role, ...]) -> Problem:
    wanted = " or ".join(_TOKENS[role] for role in roles)
    made = "" if "person" in roles else f": {_MADE_BY[roles[0]]} makes one"
    return Problem(
        403,
        "forbidden",
        f"{_TOKENS[caller.role].capitalize()} does not do for this.",
        f"It takes {wanted}{made}.",
    )


_TOKENS: dict[Role, str] = {
    "person": "a person's token",
    "agent": "an agent's token",
    "reader": "a read-only token",
    "permit": "a permit's token",
}
_MADE_BY: dict[Role, str] = {
    "agent": "`bridle mcp token`",
    "reader": "`bridle token new`",
    "permit": "`bridle mcp token --permit`",
}
