"""What bounds a session: how much it may use, and what those above it may delegate.

Parts of events (`stream`): nothing here is ever renamed.
"""

from __future__ import annotations

from msgspec import Struct


class Limits(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a session and all below it may use; None is no limit."""

    turns: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    tokens: int | None = None
    #: How many sessions below it may live at a time, at all depths.
    concurrency: int | None = None


class Ceiling(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an ancestor might do and delegate when a session below it was made: its policy, by the
    digest, and the ground that its paths mean."""

    session: str
    policy: str
    guarded: tuple[str, ...] = ()
    folder: str
    also: tuple[str, ...] = ()
    homes: dict[str, str] = {}
