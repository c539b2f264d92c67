"""Entries kept in memory, page by page from either end."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from .entries import Changes


class _Placed(Protocol):
    @property
    def position(self) -> int: ...


P = TypeVar("P", bound=_Placed)


class Pages(Generic[P]):
    """Positions count from 1 without gaps, so that a page is a slice."""

    def __init__(self) -> None:
        self._entries: list[P] = []

    def __len__(self) -> int:
        return len(self._entries)

    def take(self, changes: Changes[P]) -> None:
        self._entries += changes.added
        for entry in changes.changed:
            self._entries[entry.position - 1] = entry

    def page(
        self, *, after: int | None = None, before: int | None = None, limit: int = 100
    ) -> list[P]:
        """At most `limit` entries, in order, between two positions (neither is in it).

        With `after` the first ones after it, else the last ones: the end is what people want first.
        """
        if limit <= 0:
            return []
        start = max(after or 0, 0)
        stop = len(self._entries) if before is None else min(before - 1, len(self._entries))
        if after is None:
            start = max(start, stop - limit)
        else:
            stop = min(stop, start + limit)
        return self._entries[start : max(stop, start)]
