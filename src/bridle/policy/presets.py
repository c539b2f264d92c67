"""Presets: what happens to a call of which no rule speaks. Tables, and nothing else."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from .tools import Kind
from .verdicts import Behavior

Preset: TypeAlias = Literal["ask", "read-only", "edits", "plan", "autonomous"]
Table: TypeAlias = dict[Kind, Behavior]

PRESETS: dict[Preset, Table] = {
    "ask": {
        "read": "allow",
        "bookkeeping": "allow",
        "edit": "ask",
        "edit elsewhere": "ask",
        "reading command": "ask",
        "command": "ask",
        "web": "ask",
        "mcp": "ask",
        "question": "ask",
        "plan": "ask",
        "other": "ask",
    },
    "read-only": {
        "read": "allow",
        "bookkeeping": "allow",
        "edit": "deny",
        "edit elsewhere": "deny",
        "reading command": "allow",
        "command": "deny",
        "web": "ask",
        "mcp": "ask",
        "question": "ask",
        "plan": "ask",
        "other": "deny",
    },
    "edits": {
        "read": "allow",
        "bookkeeping": "allow",
        "edit": "allow",
        "edit elsewhere": "ask",
        "reading command": "allow",
        "command": "ask",
        "web": "ask",
        "mcp": "ask",
        "question": "ask",
        "plan": "ask",
        "other": "ask",
    },
    "plan": {
        "read": "allow",
        "bookkeeping": "allow",
        "edit": "deny",
        "edit elsewhere": "deny",
        "reading command": "allow",
        "command": "deny",
        "web": "ask",
        "mcp": "deny",
        "question": "ask",
        "plan": "ask",
        "other": "deny",
    },
    "autonomous": {
        "read": "allow",
        "bookkeeping": "allow",
        "edit": "allow",
        "edit elsewhere": "allow",
        "reading command": "allow",
        "command": "allow",
        "web": "allow",
        "mcp": "allow",
        "question": "ask",
        "plan": "ask",
        "other": "allow",
    },
}

NAMES: tuple[Preset, ...] = get_args(Preset)

#: The CLI's permission modes that a person may choose, and the preset that each stands for.
PRESET_OF_MODE: dict[str, Preset] = {
    "acceptEdits": "edits",
    "bypassPermissions": "autonomous",
    "plan": "plan",
}

#: (While the CLI is in plan mode, it is judged so in any case.)
STRICTEST_FIRST: tuple[Preset, ...] = ("read-only", "plan", "ask", "edits", "autonomous")


def is_wider(preset: Preset, than: Preset) -> bool:
    return STRICTEST_FIRST.index(preset) > STRICTEST_FIRST.index(than)


#: What these modes let pass is for the policy to let pass.
WIDE_MODES: dict[str, Preset] = {
    "acceptEdits": "edits",
    "bypassPermissions": "autonomous",
    "auto": "autonomous",
}


def told_of_mode(mode: str | None, preset: Preset) -> str:
    """That a mode lets nothing pass which the policy does not, where one might expect it to."""
    wanted = WIDE_MODES.get(mode or "")
    if wanted is None or not is_wider(wanted, preset):
        return ""
    return f"the mode {mode} has no effect under the policy {preset}; use the policy `{wanted}`"
