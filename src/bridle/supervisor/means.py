"""What every session of a supervisor has in common: where things are kept, and who helps."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from ..approvals import Approvals
from ..errors import SupervisorError, words_of
from ..journal import Journal
from ..journal.owner import Owners
from ..policy.policy import Policy
from ..process.spool import Spool
from ..process.transport import StopLimits
from ..process.wake import Wakes
from ..session.hooks import Hooks
from ..session.tools import OneTool, Tools
from .environment import SecretValues, hidden, resolve
from .record import SessionRecord

#: Gives a session its hooks, and its tools: the same after a restart as before.
HooksOf = Callable[[SessionRecord], Hooks | None]
ToolsOf = Callable[[SessionRecord], Tools]
#: Gives one launch of a session the tools by which it runs others, by the name of their server.
LaunchTools = Callable[[SessionRecord, str], Mapping[str, Sequence[OneTool]]]


class Means(Struct):
    """Shared by all."""

    home: Path
    journal: Journal
    owners: Owners
    approvals: Approvals
    wakes: Wakes
    now: Callable[[], float]
    #: Where we are to be reached, by TCP and by a socket's path.
    addresses: tuple[str, ...] = ()
    #: So many seconds an ancestor has to answer before the next is asked; 0: people are at once.
    escalate_after: float = 0.0
    hooks: HooksOf = lambda _: None
    tools: ToolsOf = lambda _: ()
    loopback: LaunchTools = lambda _, __: {}
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    stop: StopLimits = StopLimits()
    #: Policies by their digest and the files that they guard: they never change.
    policies: dict[tuple[str, tuple[str, ...]], Policy] = {}
    #: Values of the variables that were given by hand, by session: in memory alone.
    secrets: dict[str, dict[str, str]] = {}
    secret_values: SecretValues = field(default_factory=SecretValues)

    def variables(self, record: SessionRecord) -> dict[str, str]:
        """The values that a launch of it has now; what is secret of them is kept from view."""
        env = resolve(record.env, self.secrets.get(record.id, {}), self.environ)
        self.secret_values.hold(record.id, hidden(record.env, env))
        return env

    def check_handlers(self, record: SessionRecord) -> None:
        """A mistake in them is told before any agent is taken up: none is to be ended by it."""
        try:
            self.hooks(record)
            self.tools(record)
        except Exception as error:
            words = f"the hooks or tools of session {record.id} can't be made: {words_of(error)}"
            raise SupervisorError(words) from error

    def spool(self, launch: str) -> Spool:
        return Spool(self.home / "spool" / launch)
