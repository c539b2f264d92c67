"""Many agents on one machine, each durable: they outlive the process that looks after them.

`open_supervisor` is the way in; docs/supervisor.md says what it does and what it promises.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..views.stream import Limits, OrphanRule, State
    from .environment import FromEnvironment, FromFile, Plain
    from .lineage import LineageLimits
    from .opening import default_home, open_supervisor
    from .record import Launch, SessionRecord
    from .sessions import Forgotten
    from .states import Outcome
    from .supervisor import Recovered, Supervisor

#: Where each name comes from: nothing is loaded before it is used.
_HOMES = {
    "Forgotten": "sessions",
    "FromEnvironment": "environment",
    "FromFile": "environment",
    "Launch": "record",
    "Limits": ".views.stream",
    "LineageLimits": "lineage",
    "OrphanRule": ".views.stream",
    "Outcome": "states",
    "Plain": "environment",
    "Recovered": "supervisor",
    "SessionRecord": "record",
    "State": ".views.stream",
    "Supervisor": "supervisor",
    "default_home": "opening",
    "open_supervisor": "opening",
}

__all__ = [
    "Forgotten",
    "FromEnvironment",
    "FromFile",
    "Launch",
    "Limits",
    "LineageLimits",
    "OrphanRule",
    "Outcome",
    "Plain",
    "Recovered",
    "SessionRecord",
    "State",
    "Supervisor",
    "default_home",
    "open_supervisor",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value
