"""The testing kit: a scripted model, a fake CLI, real CLIs, recordings. For users too.

Names are imported when they are first used, so that the fake CLI, which lives in this package,
starts without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..process.recording import Entry, Recorder, load_recording
    from .environment import cli_environment
    from .fake import FakeCli
    from .install import InstalledCli, install_cli
    from .memory import MemoryTransport
    from .model import ScriptedModel
    from .model_request import ModelRequest
    from .pipe import PipedCli
    from .replay import Replay
    from .script import (
        Conversation,
        Hold,
        Turn,
        block,
        drop,
        fail,
        has_image,
        mentions,
        offers,
        pause,
        says,
        text,
        thinking,
        tool_use,
    )

_HOME = {
    ".process.recording": ["Entry", "Recorder", "load_recording"],
    "environment": ["cli_environment"],
    "fake": ["FakeCli"],
    "install": ["InstalledCli", "install_cli"],
    "memory": ["MemoryTransport"],
    "model": ["ScriptedModel"],
    "model_request": ["ModelRequest"],
    "pipe": ["PipedCli"],
    "replay": ["Replay"],
    "script": [
        "Conversation",
        "Hold",
        "Turn",
        "block",
        "drop",
        "fail",
        "has_image",
        "mentions",
        "offers",
        "pause",
        "says",
        "text",
        "thinking",
        "tool_use",
    ],
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Conversation",
    "Entry",
    "FakeCli",
    "Hold",
    "InstalledCli",
    "MemoryTransport",
    "ModelRequest",
    "PipedCli",
    "Recorder",
    "Replay",
    "ScriptedModel",
    "Turn",
    "block",
    "cli_environment",
    "drop",
    "fail",
    "has_image",
    "install_cli",
    "load_recording",
    "mentions",
    "offers",
    "pause",
    "says",
    "text",
    "thinking",
    "tool_use",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
