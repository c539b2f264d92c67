"""What is folded from a session's events, as the API gives it."""

from __future__ import annotations

from msgspec import Struct

from ...views import FileUse, Span


class FilesView(Struct, frozen=True, kw_only=True):
    """Files that the agent's tools have changed, and those that they have only read. `more` are
    calls on files that are not listed; `seq` is the last event that is in it."""

    changed: list[FileUse]
    read: list[FileUse]
    more: int
    seq: int


class TimelinePage(Struct, frozen=True, kw_only=True):
    """`count` is how many spans there are in all, `seq` the last event that is in them."""

    spans: list[Span]
    count: int
    seq: int
