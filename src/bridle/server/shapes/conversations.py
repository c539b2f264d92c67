"""Conversations that Claude Code has stored by itself."""

from __future__ import annotations

from msgspec import Struct


class ConversationView(Struct, frozen=True, kw_only=True):
    """One of a folder's. `session` is ours that goes on with it, if one does."""

    id: str
    #: Unix seconds.
    modified: float
    bytes: int
    #: What the user said first.
    first_prompt: str
    session: str | None = None
