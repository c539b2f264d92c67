"""Ids of settled requests: a duplicate is known for one, and nothing grows for ever."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

REMEMBERED_IDS = 4096

_V = TypeVar("_V")


class Remembered(OrderedDict[str, _V]):
    """The newest REMEMBERED_IDS ids, each with what became of it."""

    def __setitem__(self, request_id: str, fate: _V) -> None:
        super().__setitem__(request_id, fate)
        if len(self) > REMEMBERED_IDS:
            # Not next(iter(self)): a dict looks again past all that was ever deleted at its head.
            self.popitem(last=False)
