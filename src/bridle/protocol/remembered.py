"""How many settled request ids are remembered: a duplicate is known, and nothing grows for ever."""

from __future__ import annotations

from typing import Any

REMEMBERED_IDS = 4096


def forget_oldest(ids: dict[str, Any]) -> None:
    """To be called after each id that is added."""
    if len(ids) > REMEMBERED_IDS:
        del ids[next(iter(ids))]
