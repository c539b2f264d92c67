"""Ids of settled requests: a duplicate is known for one, and nothing grows for ever."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TypeVar

REMEMBERED_IDS = 4096

_V = TypeVar("_V")


class Remembered(dict[str, _V]):
    """The newest REMEMBERED_IDS ids, each with what became of it. An id is settled once."""

    def __init__(self, known: Mapping[str, _V]) -> None:
        super().__init__(known)
        # A dict would find its oldest only by looking past all that was ever deleted before it.
        self._order = deque(known)

    def remember(self, request_id: str, fate: _V) -> None:
        self[request_id] = fate
        self._order.append(request_id)
        if len(self) > REMEMBERED_IDS:
            del self[self._order.popleft()]
