"""Folders that people trust, and what one would bring to an agent."""

from __future__ import annotations

from msgspec import Struct

from ...policy.policy import RuleText
from ...session.folder import Brought


class SurveyView(Struct, frozen=True, kw_only=True):
    """What a folder, and those above it, would bring. `digest` is of just that: who trusts it gives
    it back; "" where there is too much to be looked at, which can't be trusted. `rules` hold in any
    case."""

    folder: str
    digest: str
    brings: tuple[Brought, ...]
    rules: tuple[RuleText, ...]
    has_instructions: bool
    is_trusted: bool


class Trusting(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`digest` is of the survey that was shown."""

    folder: str
    digest: str
