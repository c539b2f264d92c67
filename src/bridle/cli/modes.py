"""What is to be known of a permission mode that was given."""

from __future__ import annotations

from .context import Context


def note_mode(here: Context, mode: str | None, policy: str) -> None:
    """That the policy is stricter than the mode, where that can be told from its name."""
    from ..policy.presets import NAMES, told_of_mode

    preset = next((name for name in NAMES if name == policy), None)
    if preset and (note := told_of_mode(mode, preset)):
        here.note(note)
