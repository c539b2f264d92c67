"""What a session writes to its CLI, on its way out.

`send(outgoing, then)` gets a line to the CLI and calls `then` when it is there: in the order of the
calls, each once, now or later. In the library it is written at once. Under a supervisor it is
written down first; what stops an agent does not wait for that (`is_urgent`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from msgspec import Struct

from ..protocol.control import Answer
from ..protocol.hook_outputs import HookOutput, PreToolUseOutput
from ..protocol.permissions import Allow, Deny

What: TypeAlias = Literal["prompt", "allow", "deny", "answer", "request", "cancel"]

#: Requests that stop something: they never wait.
STOPS = ("interrupt", "end_session")


class Outgoing(Struct, frozen=True, gc=False):
    """A whole line. `id` is the prompt's uuid or the request's id, `type` a request's subtype."""

    line: bytes
    what: What
    id: str
    type: str = ""

    @property
    def is_urgent(self) -> bool:
        """Whether it lets nothing happen that would not happen without it."""
        return self.what in ("deny", "cancel") or self.type in STOPS


Then: TypeAlias = Callable[[], None]
Send: TypeAlias = Callable[[Outgoing, Then | None], None]


def nowhere(outgoing: Outgoing, then: Then | None) -> None:
    """For who has nothing to say any more."""


def what_it_says(answer: Answer) -> What:
    """An answer that lets a tool run, one that does not, or neither."""
    match answer:
        case Allow():
            return "allow"
        case Deny():
            return "deny"
        case HookOutput(hook_specific_output=PreToolUseOutput(permission_decision=decision)):
            # Not "ask": old CLIs may then run what they think is safe.
            if decision == "deny":
                return "deny"
    return "answer"
