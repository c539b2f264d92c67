"""How many connections there may be, and who has to go first.

Until it is known who somebody is, they are a stranger: where there is no room, the stranger who has
waited longest goes, so that nobody keeps people out by connecting and saying nothing. Of those who
are known, agents take at most half.
"""

from __future__ import annotations

from typing import Protocol

from .access import Role
from .problems import Problem

_AGENTS: tuple[Role, ...] = ("agent", "permit")


class Guest(Protocol):
    """One connection."""

    def turn_away(self) -> None:
        """Close it: somebody else needs the place."""


class Capacity:
    """The places of one listening socket."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._strangers: dict[Guest, None] = {}
        self._known: dict[Guest, Role] = {}

    def enter(self, guest: Guest) -> bool:
        """A stranger comes: whether there is room."""
        if len(self._known) >= self._most:
            return False
        if len(self._known) + len(self._strangers) >= self._most:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.turn_away()
        self._strangers[guest] = None
        return True

    def meet(self, guest: Guest, role: Role) -> None:
        """It is known who it is. A Problem, if there are too many of them."""
        before = self._known.get(guest)
        if before == role:
            return
        if before is None and guest not in self._strangers:
            raise full()  # it was turned away
        agents = sum(one in _AGENTS for one in self._known.values())
        if role in _AGENTS and before not in _AGENTS and agents >= self._most // 2:
            raise full()
        self._strangers.pop(guest, None)
        self._known[guest] = role

    def leave(self, guest: Guest) -> None:
        self._strangers.pop(guest, None)
        self._known.pop(guest, None)


def full() -> Problem:
    return Problem(
        503,
        "too_many_connections",
        "There are as many connections as there may be.",
        "Close some, or try it again in a moment.",
        headers={"connection": "close"},
    )
