"""All who wait at one place, called together and not too often.

To call one costs about the same whether there is one event for it or twenty (some 30 µs, of which
most is not ours: the loop, HTTP, the socket). So the more there are, the longer what comes is
gathered: at once when it was quiet, then at most every `EACH_SECONDS` for each who waits. That
bounds what all calls together can cost to about a tenth of a core, whatever the rate, until there
are 400: then nobody waits longer than people notice. What waits is never lost, since each takes all
that is there when it is called.
"""

from __future__ import annotations

import asyncio

from ...journal.bell import Bell

EACH_SECONDS = 0.00025
#: What people do not notice yet.
MOST_SECONDS = 0.1
#: So many are called in one pass of the loop: others, who do other things, come between.
SLICE = 25


class Crowd:
    def __init__(self, each: float = EACH_SECONDS, most: float = MOST_SECONDS) -> None:
        self._bells: dict[Bell, None] = {}
        self._each = each
        self._most = most
        self._loop = asyncio.get_running_loop()
        self._quiet_until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._bells)

    def join(self, bell: Bell) -> None:
        self._bells[bell] = None

    def leave(self, bell: Bell) -> None:
        self._bells.pop(bell, None)

    def call(self) -> None:
        """There is something for all of them."""
        if self._timer is None and self._bells:
            self._timer = self._loop.call_at(self._quiet_until, self._ring, None)

    def close(self) -> None:
        if self._timer:
            self._timer.cancel()

    def _ring(self, rest: list[Bell] | None) -> None:
        if rest is None:
            self._timer = None
            rest = list(self._bells)
            self._quiet_until = self._loop.time() + min(self._most, self._each * len(rest))
        for bell in rest[:SLICE]:
            bell.ring()
        if len(rest) > SLICE:
            self._loop.call_soon(self._ring, rest[SLICE:])
