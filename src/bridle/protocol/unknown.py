"""What the CLI said and Bridle can't name or can't read: kept whole, never fatal."""

from __future__ import annotations

from msgspec import Struct


class Unknown(Struct, frozen=True):
    """A message, block, request, answer or hook input that no type fits.

    `type` is what it calls itself (`system/new_thing`, or empty where it has no name), `raw` its
    JSON as it came, `reason` why no type fits.
    """

    type: str
    raw: bytes
    reason: str
