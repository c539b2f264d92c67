"""Many agents on one machine, each durable: they outlive the process that looks after them.

`open_supervisor` is the way in; docs/supervisor.md says what it does and what it promises.
"""

from ..views.stream import Limits, OrphanRule, State
from .environment import FromEnvironment, FromFile, Plain
from .lineage import LineageLimits
from .opening import default_home, open_supervisor
from .record import Launch, SessionRecord
from .states import Outcome
from .supervisor import Recovered, Supervisor

__all__ = [
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
