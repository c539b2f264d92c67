"""The working directory that an agent's calls share, and whether it may have changed.

A call is judged in the directory that the CLI names in its hook. Calls can overlap, and a `cd` that
runs before an allowed call starts would have that call run elsewhere.
"""

from __future__ import annotations

from ..policy.script import may_move
from ..policy.tools import EDITS, READS, SHELL
from ..policy.verdicts import Call

#: Tools that move the agent into another folder by themselves.
_MOVING_TOOLS = frozenset(("EnterWorktree", "ExitWorktree"))


class Directory:
    """Counts the commands that may have changed the directory."""

    def __init__(self) -> None:
        #: How many were allowed so far.
        self.moves = 0
        #: The ids of those whose results have not come yet.
        self._running: set[str] = set()

    def allowed(self, tool_use_id: str, call: Call, agent_id: str | None) -> None:
        """A call was allowed. Subagents and background commands leave the directory as it is."""
        if agent_id is None and _moves(call):
            self.moves += 1
            self._running.add(tool_use_id)

    def finished(self, tool_use_id: str) -> None:
        self._running.discard(tool_use_id)

    def turn_ended(self) -> None:
        self._running.clear()

    def may_have_changed(self, since: int) -> bool:
        """Since a call was judged, when so many commands had changed it; or right now."""
        return self.moves != since or bool(self._running)


def _moves(call: Call) -> bool:
    if call.tool in _MOVING_TOOLS:
        return True
    command = call.input.get("command")
    if call.tool != SHELL or call.input.get("run_in_background") is True:
        return False
    return not isinstance(command, str) or may_move(command)


def depends(call: Call) -> bool:
    """Whether it would mean something else in another directory."""
    if call.tool == SHELL:
        return True
    field = READS.get(call.tool) or EDITS.get(call.tool)
    path = call.input.get(field) if field else "/"
    return not (isinstance(path, str) and path.startswith(("/", "~")))
