"""Where nobody can be asked: what would be asked is denied, and that is said once."""

from __future__ import annotations

import contextlib

from ...approvals import AlreadyDecided, Approvals, Nobody, Reject
from .view import View

WORDS = "nobody sits at this terminal"
REMEDY = "allow it beforehand with --yes-to or --policy, or run it where there is a terminal"


class Unasked:
    """Says no to all that is pending, and to all that comes. `number` counts them."""

    def __init__(self, approvals: Approvals, view: View) -> None:
        self._approvals = approvals
        self._view = view
        self.number = 0

    async def deny_all(self) -> None:
        async for changes in self._approvals.watch():
            for approval in changes:
                if approval.status == "pending":
                    await self._deny(approval.id)

    async def _deny(self, approval_id: str) -> None:
        if not self.number:
            self._view.say("nobody can be asked here: what needs to be is denied", "warn", REMEDY)
        self.number += 1
        with contextlib.suppress(AlreadyDecided):
            await self._approvals.decide(approval_id, Reject(WORDS), by=Nobody())
