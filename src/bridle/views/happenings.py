"""What an agent sees of another that works for it: one Struct for each sort of event.

Owns the words; `loopback` makes them from a session's stream, `detail` cuts them to size. They are
the words of an API: nothing here is ever renamed.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

TurnOutcome: TypeAlias = Literal["complete", "failed", "cancelled", "lost"]
Resolution: TypeAlias = Literal["allowed", "denied", "timed_out", "cancelled"]


class Place(Struct, frozen=True):
    """A message in a conversation: `tree_id` is the conversation, `node_id` the message."""

    tree_id: str
    node_id: str | None = None


class _Happening(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """`node_id` is the message that it is from; `subagent` the tool call of the subagent that it
    belongs to. `cut` are the characters that were left out of a long text or input."""

    at: float
    node_id: str | None = None
    subagent: str | None = None
    cut: int = 0


class Start(_Happening, frozen=True, kw_only=True, tag="start"):
    """The agent is told something: a turn begins. `id` is the turn's."""

    id: str
    user_position: Place
    prompt: str = ""


class Content(_Happening, frozen=True, kw_only=True, tag="content"):
    """Words. `cli`: no model wrote them; `user`: the CLI put them into the user's mouth."""

    text: str
    speaker: Literal["agent", "user", "cli"] = "agent"


class Thinking(_Happening, frozen=True, kw_only=True, tag="thinking"):
    text: str


class ToolUse(_Happening, frozen=True, kw_only=True, tag="tool_use"):
    tool_name: str
    tool_use_id: str
    input: dict[str, Any]


class ToolResult(_Happening, frozen=True, kw_only=True, tag="tool_result"):
    tool_use_id: str
    output: str
    is_error: bool = False


class ApprovalRequested(_Happening, frozen=True, kw_only=True, tag="approval_requested"):
    """Somebody must decide. `kind`: a tool, a plan, a question or an elicitation."""

    id: str
    tool_name: str
    input: dict[str, Any]
    tool_use_id: str | None = None
    kind: str = "tool"
    reason: str = ""


class ApprovalEscalated(_Happening, frozen=True, kw_only=True, tag="approval_escalated"):
    """It is put to somebody else from now on: to an ancestor's session, or to people ("")."""

    id: str
    to: str
    why: str = ""
    by: str = ""


class ApprovalResolved(_Happening, frozen=True, kw_only=True, tag="approval_resolved"):
    id: str
    status: Resolution
    by: str = ""
    message: str = ""


class Status(_Happening, frozen=True, kw_only=True, tag="status"):
    """The session is in another state: docs/states.md has them all."""

    state: str
    why: str = ""


class ChildCreated(_Happening, frozen=True, kw_only=True, tag="child_created"):
    """It has a child of its own now."""

    session_id: str
    name: str = ""


class Used(_Happening, frozen=True, kw_only=True, tag="usage"):
    """What the turn that has ended used. Of tokens, what the CLI told of the main loop."""

    cost_usd: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0


class Complete(_Happening, frozen=True, kw_only=True, tag="complete"):
    """A turn has ended. `turn_ids` are of the prompts that it answers; `result` its last words."""

    outcome: TurnOutcome
    turn_ids: list[str] = []
    result: str = ""
    seconds: float = 0.0


class Error(_Happening, frozen=True, kw_only=True, tag="error"):
    """Something went wrong: at the model's service, in the turn, or with the process."""

    source: Literal["api", "turn", "launch"]
    message: str


class Other(_Happening, frozen=True, kw_only=True, tag="other"):
    """Something that Bridle can't name or can't read; all of it is in the log."""

    what: str
    text: str = ""


Happening: TypeAlias = (
    Start
    | Content
    | Thinking
    | ToolUse
    | ToolResult
    | ApprovalRequested
    | ApprovalEscalated
    | ApprovalResolved
    | Status
    | ChildCreated
    | Used
    | Complete
    | Error
    | Other
)
