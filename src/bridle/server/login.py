"""How a browser gets in: a ticket in an address works once, and turns into a cookie.

Owns tickets, which live in memory alone, and the words of the cookie. The login that the cookie
stands for is one of the `tokens`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from urllib.parse import urlsplit

from litestar.datastructures import Cookie
from msgspec import Struct

from .tokens import LOGIN_SECONDS, digest_of

TICKET_SECONDS = 600.0
#: More than anybody needs at a time; the oldest go first.
MOST_TICKETS = 100


class _Ticket(Struct, frozen=True):
    """`is_here`: for a browser of this machine, whose process can be seen. Such a one lies in a
    file for a moment, where an agent could read it."""

    name: str
    until: float
    is_here: bool


class Tickets:
    """Each is for one person, once, for 10 minutes."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._tickets: dict[str, _Ticket] = {}

    def make(self, name: str, *, is_here: bool = False) -> str:
        text = secrets.token_urlsafe(32)
        while len(self._tickets) >= MOST_TICKETS:
            self._tickets.pop(next(iter(self._tickets)))
        self._tickets[digest_of(text)] = _Ticket(name, self._now() + TICKET_SECONDS, is_here)
        return text

    def take(self, text: str, *, is_unseen: bool = False) -> str | None:
        """Whose it is; from now on it is nobody's."""
        ticket = self._tickets.pop(digest_of(text), None)
        if ticket and ticket.is_here and is_unseen:
            return None
        return ticket.name if ticket and ticket.until > self._now() else None


def login_url(url: str, ticket: str) -> str:
    return f"{url}/login?ticket={ticket}"


def cookie_name(url: str) -> str:
    """Browsers keep cookies apart by host and not by port: two servers must not mix theirs up."""
    return f"bridle_{urlsplit(url).port or 0}"


def login_cookie(url: str, text: str) -> Cookie:
    return _cookie(url, text, int(LOGIN_SECONDS))


def no_cookie(url: str) -> Cookie:
    return _cookie(url, "", 0)


def _cookie(url: str, text: str, seconds: int) -> Cookie:
    return Cookie(
        key=cookie_name(url),
        value=text,
        path="/",
        max_age=seconds,
        httponly=True,
        samesite="strict",
    )
