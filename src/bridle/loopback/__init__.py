"""Agents that run agents: the tools, who sees whom, and what each may do.

`tools_of` gives them to the sessions of a supervisor (`open_supervisor(loopback=tools_of)`);
`loopback_of` is what other ways in call. docs/loopback.md says what it does and promises.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .registry import METHODS, Method
    from .service import Loopback, loopback_of
    from .tools import SERVER, tools_of

#: Where each name comes from: nothing is loaded before it is used.
_HOMES = {
    "METHODS": "registry",
    "Loopback": "service",
    "Method": "registry",
    "SERVER": "tools",
    "loopback_of": "service",
    "tools_of": "tools",
}

__all__ = ["METHODS", "SERVER", "Loopback", "Method", "loopback_of", "tools_of"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value
