"""Who may run now: a limited number of agents at a time, and none while the service refuses.

Owns the queue and the holding back of all when one is told to wait: twenty agents that ask again
and again would only make it longer. One timer, and only while something is held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..views.stream import Limited
from .charge import Charge
from .sessions import Sessions

#: How long to wait where nobody says; twice as long each time, up to the last.
FIRST_SECONDS, LAST_SECONDS = 30.0, 900.0


class Fleet:
    """`released` is told when all may go on; `may_start` says whether there is room on the disk."""

    def __init__(
        self,
        sessions: Sessions,
        size: int,
        now: Callable[[], float],
        released: Callable[[], None],
        may_start: Callable[[], bool],
    ) -> None:
        self._sessions = sessions
        self._size = size
        self._now = now
        self._released = released
        self._may_start = may_start
        self._timer: asyncio.TimerHandle | None = None
        self._pause = FIRST_SECONDS
        #: Nothing is started or told before it is known what holds it back, or after the end.
        self.is_open = False
        #: Why nothing is started or told now.
        self.held: Limited | None = None

    @property
    def may_go_on(self) -> bool:
        return self.is_open and self.held is None

    def open(self) -> None:
        self.is_open = True

    def pump(self) -> None:
        """Start those who wait, as far as there is room, the oldest first."""
        if not self.may_go_on or not self._may_start():
            return
        waiting = [charge for charge in self._sessions if _waits(charge)]
        if not waiting:
            return
        at_work = sum(charge.is_at_work for charge in self._sessions)
        for charge in sorted(waiting, key=_age)[: max(0, self._size - at_work)]:
            charge.start()

    def hold(self, limited: Limited) -> bool:
        """Let nobody begin anything; whether that is new."""
        if self.held and not _is_worse(limited, self.held):
            return False
        self.held = limited
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if not limited.needs_login:
            until = limited.until
            wait = until - self._now() if until else self._pause
            self._pause = min(self._pause * 2, LAST_SECONDS)
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(min(max(wait, 0.0), 7 * 86400.0), self.release)
        return True

    def release(self) -> None:
        """All may go on."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self.held and self.is_open:
            self.held = None
            self._released()

    def is_well(self) -> None:
        """The service has answered somebody."""
        self._pause = FIRST_SECONDS
        if self.held and self.held.needs_login:
            self.release()

    def close(self) -> None:
        self.is_open = False
        if self._timer:
            self._timer.cancel()


def _is_worse(limited: Limited, held: Limited) -> bool:
    """A login is worse than a time, and a longer time than a shorter one."""
    if held.needs_login or limited.needs_login:
        return not held.needs_login
    return limited.until is not None and (held.until is None or limited.until > held.until)


def _waits(charge: Charge) -> bool:
    facts = charge.record.facts
    is_free = not charge.is_at_work and not charge.is_to_stop
    return facts.is_queued and is_free and not facts.pauses


def _age(charge: Charge) -> tuple[float, str]:
    return charge.record.queued_at, charge.id
