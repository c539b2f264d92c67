"""Following approvals: those that are pending, then each change. Nobody waits for a reader."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from weakref import WeakSet

from ..journal.bell import Bell
from .model import Approval


class ApprovalWatch:
    """First a list of those that are not finished (it may be empty), then lists of changes.

    Who is slow gets the latest state of each.
    """

    def __init__(self, present: Iterable[Approval]) -> None:
        self._changes = {approval.id: approval for approval in present}
        self._is_first = True
        self._is_closed = False
        self._bell = Bell()

    def offer(self, approval: Approval) -> None:
        self._changes.pop(approval.id, None)  # so that the order is that of the changes
        self._changes[approval.id] = approval
        self._bell.ring()

    def close(self) -> None:
        """End the iteration, at once."""
        self._is_closed = True
        self._bell.ring()

    def __aiter__(self) -> AsyncIterator[list[Approval]]:
        return self

    async def __anext__(self) -> list[Approval]:
        while not self._is_closed:
            if self._changes or self._is_first:
                self._is_first = False
                changes, self._changes = list(self._changes.values()), {}
                return changes
            await self._bell.wait()
        raise StopAsyncIteration


class Watches:
    """All who follow. One that nobody holds any more is forgotten."""

    def __init__(self) -> None:
        self._watches: WeakSet[ApprovalWatch] = WeakSet()

    def open(self, present: Iterable[Approval]) -> ApprovalWatch:
        watch = ApprovalWatch(present)
        self._watches.add(watch)
        return watch

    def tell(self, approval: Approval) -> None:
        for watch in self._watches:
            watch.offer(approval)

    def close(self) -> None:
        for watch in self._watches:
            watch.close()
