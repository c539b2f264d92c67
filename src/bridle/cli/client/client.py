"""All that can be asked of a server, by what it is about."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import cached_property
from typing import TYPE_CHECKING

from .approvals import ApprovalsOf
from .house import HouseOf
from .sessions import SessionsOf
from .sse import ServerEvent
from .talk import Talk

if TYPE_CHECKING:
    import httpx

    from .policies import PoliciesOf, TrustOf


class Client:
    """Made by `open_client`."""

    def __init__(self, http: httpx.AsyncClient, place: str, *, is_offline: bool = False) -> None:
        self.talk = Talk(http, place, is_offline=is_offline)
        self.sessions = SessionsOf(self.talk)
        self.approvals = ApprovalsOf(self.talk)
        self.house = HouseOf(self.talk)

    @cached_property
    def policies(self) -> PoliciesOf:
        from .policies import PoliciesOf  # seldom wanted, and not light

        return PoliciesOf(self.talk)

    @cached_property
    def trust(self) -> TrustOf:
        from .policies import TrustOf

        return TrustOf(self.talk)

    @property
    def place(self) -> str:
        """Where the server is, for people."""
        return self.talk.place

    @property
    def is_offline(self) -> bool:
        """Nothing is up: what is asked is read from the home, and nothing runs."""
        return self.talk.is_offline

    def follow_all(
        self, last_id: str = "", on_break: Callable[[str], None] = lambda _: None
    ) -> AsyncIterator[ServerEvent]:
        """What a dashboard needs: `session`, `session.deleted`, `approval`, `fleet`; `reset` when
        all of the present is told anew."""
        return self.talk.follow("/events", {}, last_id, on_break)
