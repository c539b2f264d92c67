"""What the CLI says of its own accord: assistant, user, stream_event, result and the rest.

Owns the shape of these lines (protocol.md section 5), except `system` ones, which are in
`system`. Structs name what Bridle reads; every other field is in the raw line, which stays
beside the message. Where one name has two spellings on the wire, Python's is used here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Raw, Struct, field

from ..errors import TurnFailed
from .blocks import Block, TextBlock
from .unknown import Unknown

SYNTHETIC_MODEL = "<synthetic>"


class Message(Struct, tag_field="type", kw_only=True, omit_defaults=True):
    """What any line may carry, whatever it is."""

    session_id: str | None = None
    uuid: str | None = None
    parent_tool_use_id: str | None = None


class Usage(Struct, omit_defaults=True, gc=False):
    """Tokens of one answer of the model, or of one turn."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    service_tier: str | None = None


class ApiMessage(Struct, omit_defaults=True):
    """The model's message inside an `assistant` line: usually one block of it."""

    id: str
    model: str
    content: list[Block]
    role: str = "assistant"
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: Usage | None = None


class Assistant(Message, tag="assistant", kw_only=True):
    """One content block (usually) of what the model said; blocks of one message share its id."""

    message: ApiMessage
    error: str | None = None
    request_id: str | None = None
    timestamp: str | None = None
    aborted: bool = False
    agent_id: str | None = None
    subagent_type: str | None = None
    user_message_uuid: str | None = None
    user_message_uuids: list[str] | None = None
    local_command_source: str | None = None

    @property
    def text(self) -> str:
        """What it says in words; empty for thoughts and tool calls."""
        return "".join(b.text for b in self.message.content if isinstance(b, TextBlock))

    @property
    def is_synthetic(self) -> bool:
        """Written by the CLI itself, not by a model."""
        return self.message.model == SYNTHETIC_MODEL


class UserContent(Struct, omit_defaults=True):
    content: str | list[Block]
    role: str = "user"


class User(Message, tag="user", kw_only=True):
    """A tool's result, a replayed prompt, or words that the CLI put into the user's mouth."""

    message: UserContent
    is_replay: bool = field(name="isReplay", default=False)
    is_synthetic: bool = field(name="isSynthetic", default=False)
    timestamp: str | None = None
    agent_id: str | None = None
    subagent_type: str | None = None
    #: Who decided about each tool, and why one was not run (new CLIs).
    tool_result_meta: list[dict[str, Any]] | None = None
    #: The tool's structured result, undecoded: `content.structured_result` reads it on request.
    tool_use_result: Raw = Raw()


class TextDelta(Struct, tag_field="type", tag="text_delta", gc=False):
    text: str


class InputJsonDelta(Struct, tag_field="type", tag="input_json_delta", gc=False):
    partial_json: str


class ThinkingDelta(Struct, tag_field="type", tag="thinking_delta", gc=False):
    thinking: str


class SignatureDelta(Struct, tag_field="type", tag="signature_delta", gc=False):
    signature: str


class CitationsDelta(Struct, tag_field="type", tag="citations_delta", gc=False):
    citation: dict[str, Any]


KnownDelta: TypeAlias = TextDelta | InputJsonDelta | ThinkingDelta | SignatureDelta | CitationsDelta


class MessageStart(Struct, tag_field="type", tag="message_start", gc=False):
    message: ApiMessage


class ContentBlockStart(Struct, tag_field="type", tag="content_block_start", gc=False):
    index: int
    content_block: Block


class ContentBlockDelta(Struct, tag_field="type", tag="content_block_delta", gc=False):
    index: int
    delta: KnownDelta


class ContentBlockStop(Struct, tag_field="type", tag="content_block_stop", gc=False):
    index: int


class MessageEnding(Struct, omit_defaults=True, gc=False):
    stop_reason: str | None = None
    stop_sequence: str | None = None


class MessageDelta(Struct, tag_field="type", tag="message_delta", gc=False):
    delta: MessageEnding
    usage: Usage | None = None


class MessageStop(Struct, tag_field="type", tag="message_stop", gc=False):
    pass


class Ping(Struct, tag_field="type", tag="ping", gc=False):
    pass


class StreamError(Struct, tag_field="type", tag="error", gc=False):
    error: dict[str, Any]


KnownApiEvent: TypeAlias = (
    ContentBlockDelta
    | ContentBlockStart
    | ContentBlockStop
    | MessageStart
    | MessageDelta
    | MessageStop
    | Ping
    | StreamError
)

# As with `Block`: readers may meet `Unknown`, the decoder does not know it.
if TYPE_CHECKING:
    ApiEvent: TypeAlias = KnownApiEvent | Unknown
else:
    ApiEvent = KnownApiEvent


class StreamEvent(Message, tag="stream_event", kw_only=True):
    """A raw event of the model's stream: live only, the final message is the record."""

    event: ApiEvent
    ttft_ms: float | None = None


class ModelUsage(Struct, rename="camel", omit_defaults=True):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    web_search_requests: int = 0
    cost_usd: float = field(name="costUSD", default=0.0)
    context_window: int | None = None


class PermissionDenial(Struct):
    """A tool call that did not run, as the result lists it."""

    tool_name: str
    tool_use_id: str
    tool_input: dict[str, Any]


class Origin(Struct, omit_defaults=True):
    """Whence a turn came that nobody prompted: `task-notification` and the like."""

    kind: str


class Result(Message, tag="result", kw_only=True):
    """The end of a turn (not of the run).

    `subtype` is `success` or one of an open set of `error_…` words: an unknown one still ends the
    turn, so it is a `Result` and not an `Unknown`. `total_cost_usd` is cumulative over the
    process: never sum it.
    """

    subtype: str
    is_error: bool
    result: str | None = None
    errors: list[str] = []
    num_turns: int = 0
    duration_ms: float = 0
    duration_api_ms: float = 0
    total_cost_usd: float = 0
    usage: Usage | None = None
    model_usage: dict[str, ModelUsage] = field(name="modelUsage", default_factory=dict)
    model_usage_since_last_result: dict[str, ModelUsage] | None = None
    permission_denials: list[PermissionDenial] = []
    structured_output: Any = None
    stop_reason: str | None = None
    terminal_reason: str | None = None
    local_command: str | None = None
    api_error_status: int | None = None
    origin: Origin | None = None
    user_message_uuid: str | None = None
    user_message_uuids: list[str] | None = None
    queued_turn_count: int | None = None

    @property
    def text(self) -> str:
        """The agent's last words; what went wrong where it has none."""
        return self.result if self.result is not None else "\n".join(self.errors)

    @property
    def is_interrupted(self) -> bool:
        """Whether somebody ended the turn. (Old CLIs say so with `is_error: false`.)"""
        if self.terminal_reason is not None:
            return self.terminal_reason.startswith("aborted")
        return self.subtype == "error_during_execution" and not self.is_error

    def raise_for_error(self) -> Result:
        """Raise `TurnFailed` where the turn ended in an error or was interrupted."""
        if self.is_error or self.subtype != "success":
            why = f": {self.text}" if self.text else ""
            raise TurnFailed(f"the turn ended with {self.subtype}{why}", self)
        return self


class RateLimitInfo(Struct, rename="camel", omit_defaults=True):
    status: str
    resets_at: float | None = None
    rate_limit_type: str | None = None
    utilization: float | None = None


class RateLimitEvent(Message, tag="rate_limit_event", kw_only=True):
    rate_limit_info: RateLimitInfo


class ToolProgress(Message, tag="tool_progress", kw_only=True):
    tool_use_id: str
    tool_name: str
    elapsed_time_seconds: float = 0
    task_id: str | None = None


class ToolUseSummary(Message, tag="tool_use_summary", kw_only=True):
    summary: str
    preceding_tool_use_ids: list[str] = []


class AuthStatus(Message, tag="auth_status", kw_only=True):
    is_authenticating: bool = field(name="isAuthenticating")
    output: list[str] = []
    error: str | None = None


class PromptSuggestion(Message, tag="prompt_suggestion", kw_only=True):
    suggestion: str


class ConversationReset(Message, tag="conversation_reset", kw_only=True):
    """After /clear. The session id changes with the next messages; this one has the old id."""

    new_conversation_id: str
    trigger: str | None = None


class CommandLifecycle(Message, tag="command_lifecycle", kw_only=True):
    """A prompt on its way through the queue: queued, started, completed, cancelled."""

    command_uuid: str
    state: str


class ActiveGoal(Message, tag="active_goal", kw_only=True):
    value: dict[str, Any] | None = None


class TranscriptMirror(Message, tag="transcript_mirror", kw_only=True):
    """Lines of the transcript file, for hosts that keep it themselves; read from the raw line."""


class KeepAlive(Message, tag="keep_alive", kw_only=True):
    """Nothing happened; the pipe is alive."""
