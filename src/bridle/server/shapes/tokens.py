"""What the API says of tokens, and what it is told to make one."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ...views.stream import External
from ..access import Role
from ..tokens import Kind
from .sessions import LimitsGiven

#: What can be asked for: a permit is made as an agent elsewhere.
GivenRole: TypeAlias = Literal["person", "agent", "reader"]


class TokenView(Struct, frozen=True, kw_only=True):
    """A token, or a browser's login, without its text: `tail` is the end of that."""

    id: str
    kind: Kind
    role: Role
    name: str
    session: str
    tail: str
    created_at: float
    expires_at: float | None
    #: Whether it is the one in the file `token` of the home.
    is_first: bool


class NewExternal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent that somebody else runs: a `root` may run others below it, a `permit` only asks."""

    kind: External
    folder: str
    policy: str = "ask"
    limits: LimitsGiven = LimitsGiven()


class NewToken(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent's token is for a `session` (an id or a name), or for one that is made with it: an
    `external` one, which gets the token's name."""

    role: GivenRole
    name: str
    session: str = ""
    external: NewExternal | None = None


class MadeToken(Struct, frozen=True, kw_only=True):
    """`text` is shown this once."""

    token: TokenView
    text: str


class TicketView(Struct, frozen=True, kw_only=True):
    """An address that logs a browser in, once, within 10 minutes."""

    url: str
