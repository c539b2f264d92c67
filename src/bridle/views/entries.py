"""What a transcript shows: one Struct for each sort of entry.

Owns the words; `transcript` makes entries from events. Positions count from 1, without gaps, and
an entry keeps its own for ever: what comes later of the same thing changes the entry at its place.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeAlias, TypeVar

from msgspec import Struct

Outcome: TypeAlias = Literal["ok", "error", "denied", "cancelled", "unknown"]
ApprovalStatus: TypeAlias = Literal["pending", "allowed", "denied", "timed_out", "cancelled"]
Topic: TypeAlias = Literal[
    "state",
    "launch",
    "mode",
    "model",
    "compaction",
    "pause",
    "limit",
    "stop",
    "budget",
    "parent",
    "child",
    "approval",
    "retry",
    "task",
    "hook",
    "conversation",
    "policy",
    "notice",
]


class Excerpt(Struct, frozen=True, omit_defaults=True):
    """A text, or so much of it as is kept: then `size` is how many characters it has in all."""

    text: str
    is_cut: bool = False
    size: int = 0


class Picture(Struct, frozen=True, omit_defaults=True):
    """An image without its bytes; `url` is where it is, if it is elsewhere."""

    media_type: str
    size: int = 0
    url: str = ""


class CallEnd(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a tool call ended. `unknown`: only the head of its result is here, or none will come."""

    outcome: Outcome
    at: float
    seq: int
    output: Excerpt = Excerpt("")
    pictures: tuple[Picture, ...] = ()
    exit_code: int | None = None


class Decision(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where an approval stands. `delivered` is when the answer was written to the agent."""

    id: str
    status: ApprovalStatus = "pending"
    by: str = ""
    words: str = ""
    ended: float | None = None
    delivered: float | None = None
    outcome: str = ""
    expires: float | None = None


class _Entry(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """`seq` is the event that made it, `changed` the last that changed it. `parent` is the tool
    call of the subagent that it belongs to; None is the main loop."""

    position: int
    seq: int
    changed: int
    at: float
    launch: str = ""
    parent: str | None = None


class Prompt(_Entry, frozen=True, kw_only=True, tag="prompt"):
    """What somebody told the agent."""

    uuid: str
    text: Excerpt
    status: Literal["queued", "written"]
    pictures: tuple[Picture, ...] = ()
    by: str = ""


class Text(_Entry, frozen=True, kw_only=True, tag="text"):
    """Words. `user`: what the CLI itself put into the user's mouth; `cli`: no model wrote it."""

    text: Excerpt
    speaker: Literal["agent", "user", "cli"] = "agent"


class Thinking(_Entry, frozen=True, kw_only=True, tag="thinking"):
    text: Excerpt
    is_redacted: bool = False


class ToolCall(_Entry, frozen=True, kw_only=True, tag="tool_call"):
    """`end` comes with the result; None while it runs. A long input is cut, and says so."""

    id: str
    name: str
    input: dict[str, Any]
    is_input_cut: bool = False
    end: CallEnd | None = None


class ToolResult(_Entry, frozen=True, kw_only=True, tag="tool_result"):
    """A result whose call is not known, or no longer."""

    id: str
    end: CallEnd


class Plan(_Entry, frozen=True, kw_only=True, tag="plan"):
    """A plan, whether it may be carried out, and how its call ended."""

    id: str
    plan: Excerpt
    decision: Decision | None = None
    end: CallEnd | None = None


class Approval(_Entry, frozen=True, kw_only=True, tag="approval"):
    """Something that somebody is asked: `about` a tool, a question or an elicitation."""

    decision: Decision
    about: str
    tool: str
    input: dict[str, Any]
    is_input_cut: bool = False
    tool_use_id: str | None = None
    agent_id: str | None = None
    reason: str = ""
    guard: str = ""


class Image(_Entry, frozen=True, kw_only=True, tag="image"):
    """An image that stands by itself in a message."""

    picture: Picture


class CommandOutput(_Entry, frozen=True, kw_only=True, tag="command_output"):
    """What a slash command that the CLI ran by itself has written."""

    text: Excerpt


class Stderr(_Entry, frozen=True, kw_only=True, tag="stderr"):
    text: Excerpt


class Error(_Entry, frozen=True, kw_only=True, tag="error"):
    """Something went wrong: at the model's service, in a line, in a turn, or with the process."""

    source: Literal["api", "line", "turn", "launch"]
    words: Excerpt


class Status(_Entry, frozen=True, kw_only=True, tag="status"):
    """Something is otherwise now: `value` for programs, `words` for people."""

    topic: Topic
    value: str
    words: str = ""


class TurnEnd(_Entry, frozen=True, kw_only=True, tag="turn_end"):
    """`cost_usd` is what this turn cost, `seconds` how long it took."""

    outcome: Literal["done", "failed", "interrupted"]
    subtype: str
    cost_usd: float = 0.0
    seconds: float = 0.0
    denials: int = 0
    command: str = ""


class Strange(_Entry, frozen=True, kw_only=True, tag="strange"):
    """A message, block or event that Bridle can't name or can't read; all of it is in the log."""

    type: str
    reason: str
    raw: Excerpt


class Large(_Entry, frozen=True, kw_only=True, tag="large"):
    """An event too large to be kept here: the log has all of it, at `seq`."""

    event: str
    type: str
    head: Excerpt


TranscriptEntry: TypeAlias = (
    Prompt
    | Text
    | Thinking
    | ToolCall
    | ToolResult
    | Plan
    | Approval
    | Image
    | CommandOutput
    | Stderr
    | Error
    | Status
    | TurnEnd
    | Strange
    | Large
)

T = TypeVar("T")


class Changes(Struct, Generic[T], frozen=True):
    """What one event did: entries that are new, and new versions of entries that were there."""

    added: list[T] = []
    changed: list[T] = []

    def __bool__(self) -> bool:
        return bool(self.added or self.changed)
