"""Why an approval is asked, and what could be remembered instead of asking again."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ...approvals.model import Always, ForSession

Where: TypeAlias = Literal["session", "folder", "everywhere"]


class Scope(Struct, frozen=True, kw_only=True):
    """Where a rule would hold. `remember` is what to decide with; `sessions` are how many there are
    now that it would hold for."""

    where: Where
    words: str
    sessions: int
    remember: ForSession | Always


class Candidate(Struct, frozen=True, kw_only=True):
    """A rule that would allow the same the next time."""

    rule: str
    scopes: list[Scope]


class Explanation(Struct, frozen=True, kw_only=True):
    """`text` is the verdict in words; `guard` what the laundering guard has seen, if it has: then
    it is asked each time, whatever is remembered. The narrowest rule of `always` is the first."""

    text: str
    reason: str
    rule: str
    source: str
    guard: str
    notes: tuple[str, ...]
    always: list[Candidate]
