"""Who decides about what the rules leave open. `Desk` is the seam; `PlainDesk` serves a function.

A desk that keeps a trail (`bridle.approvals`) is told of every call, of every answer when it has
been written to the agent, and of what came of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias, runtime_checkable

from msgspec.structs import replace

from ..policy.verdicts import Allowed, Asked, Denied, Verdict
from ..protocol.control import CanUseTool
from ..protocol.permissions import Decision, Deny

Approver: TypeAlias = Callable[[CanUseTool], Decision | Awaitable[Decision]]

NO_APPROVER = "Bridle denied this: nobody is there to approve it (the session has no approver)."


@runtime_checkable
class Desk(Protocol):
    """Asked about calls that no rule decides, and told about all of them."""

    def judged(self, request: CanUseTool, verdict: Allowed | Denied) -> Awaitable[None] | None:
        """A rule has decided. What it allows does not run before this is done, or if it fails.

        A no is not waited for: what this gives for one is dropped.
        """

    def ask(self, request: CanUseTool, verdict: Asked) -> Decision | Awaitable[Decision]:
        """May it run? The task that waits is cancelled when the CLI takes its question back."""

    def is_asked(self, tool_use_id: str) -> bool:
        """Whether somebody was asked about this call already, and nothing was answered yet: a
        restart came between."""

    def delivered(self, tool_use_id: str) -> None:
        """The answer has been written to the agent."""

    def overruled(self, tool_use_id: str, why: str) -> None:
        """It was approved and the agent was told no: its changed input is denied by a rule, or the
        working directory has changed."""

    def ran(self, tool_use_id: str, is_error: bool) -> None:
        """The result of what was allowed has come. With an error it may not have run to its end,
        or not at all: the CLI tells no more."""

    def went_on(self, tool_use_id: str, chosen: str, told: str) -> None:
        """After a plan: the mode that was chosen, and the one in which the CLI says it is."""

    def interrupted(self) -> None:
        """The turn is interrupted by us: what waits is not to be decided any more."""

    def turn_ended(self) -> None:
        """The turn is over; only subagents in the background may still wait."""

    def ended(self, how: str) -> None:
        """The agent is gone."""


class PlainDesk:
    """A function that is asked, and no trail. Without a function, the answer is no."""

    def __init__(self, approver: Approver | None) -> None:
        self._approver = approver

    def judged(self, request: CanUseTool, verdict: Allowed | Denied) -> None:  # noqa: ARG002
        return None

    def ask(
        self,
        request: CanUseTool,
        verdict: Asked,
    ) -> Decision | Awaitable[Decision]:
        if self._approver is None:
            return Deny(NO_APPROVER)
        if verdict.guard or not request.decision_reason:
            request = replace(request, decision_reason=verdict.because)
        return self._approver(request)

    def is_asked(self, tool_use_id: str) -> bool:  # noqa: ARG002
        return False

    def delivered(self, tool_use_id: str) -> None:
        pass

    def overruled(self, tool_use_id: str, why: str) -> None:
        pass

    def ran(self, tool_use_id: str, is_error: bool) -> None:
        pass

    def went_on(self, tool_use_id: str, chosen: str, told: str) -> None:
        pass

    def interrupted(self) -> None:
        pass

    def turn_ended(self) -> None:
        pass

    def ended(self, how: str) -> None:
        pass


def unless_asked(verdict: Verdict, request: CanUseTool, desk: Desk) -> Verdict:
    """What somebody was asked, somebody decides, whatever rule has come between."""
    called = request.tool_use_id
    if not isinstance(verdict, Asked) and called and desk.is_asked(called):
        return Asked("somebody was asked about it before")
    return verdict
