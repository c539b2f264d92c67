"""Hooks on the wire: how they are registered, what they are told, what they may answer.

Owns the shapes (protocol.md section 6). Every hook event has an input type; one that Bridle does
not know arrives as `Unknown`. `PRE_TOOL_USE` is special: an error answer to it would let the tool
run, so whatever goes wrong is answered with an explicit deny (`Connection` sees to that).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from .unknown import Unknown

PRE_TOOL_USE = "PreToolUse"

# A longer one overflows the timer of old CLIs: the hook is cancelled at once and the tool runs.
MAX_TIMEOUT_SECONDS = 2_147_483


#: Where a hook may be registered. A name that no CLI knows would register nothing, silently.
HookEvent: TypeAlias = Literal[
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "PermissionRequest",
    "PermissionDenied",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "PreModelSwitch",
    "PostModelSwitch",
    "Notification",
    "Setup",
    "TeammateIdle",
    "TaskCreated",
    "TaskCompleted",
    "Elicitation",
    "ElicitationResult",
    "ConfigChange",
    "InstructionsLoaded",
    "WorktreeCreate",
    "WorktreeRemove",
    "CwdChanged",
    "FileChanged",
    "DirectoryAdded",
    "MessageDisplay",
]


class HookMatcher(Struct, rename="camel"):
    """Callbacks for the tools that `matcher` matches: a plain word is one name, else a regex."""

    hook_callback_ids: list[str]
    matcher: str | UnsetType = UNSET
    timeout: Annotated[float, Meta(gt=0, le=MAX_TIMEOUT_SECONDS)] | UnsetType = UNSET
    on_failure: Literal["continue", "block"] | UnsetType = UNSET


class HookInput(Struct, tag_field="hook_event_name", kw_only=True, omit_defaults=True):
    """What every hook is told, whatever its event."""

    session_id: str
    transcript_path: str = ""
    cwd: str = ""
    permission_mode: str | None = None
    prompt_id: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None


class _ToolHookInput(HookInput, kw_only=True):
    tool_name: str
    tool_input: Any
    tool_use_id: str | None = None


class PreToolUse(_ToolHookInput, tag=PRE_TOOL_USE, kw_only=True):
    pass


class PostToolUse(_ToolHookInput, tag="PostToolUse", kw_only=True):
    tool_response: Any = None
    duration_ms: float | None = None


class PostToolUseFailure(_ToolHookInput, tag="PostToolUseFailure", kw_only=True):
    error: str = ""
    is_interrupt: bool = False


class PostToolBatch(HookInput, tag="PostToolBatch", kw_only=True):
    tool_calls: list[dict[str, Any]]


class PermissionRequest(_ToolHookInput, tag="PermissionRequest", kw_only=True):
    #: `content.suggestions` reads them.
    permission_suggestions: Raw = Raw()


class PermissionDenied(_ToolHookInput, tag="PermissionDenied", kw_only=True):
    reason: str = ""


class UserPromptSubmit(HookInput, tag="UserPromptSubmit", kw_only=True):
    prompt: str


class UserPromptExpansion(HookInput, tag="UserPromptExpansion", kw_only=True):
    command_name: str
    prompt: str = ""
    expansion_type: str | None = None
    command_args: str = ""


class SessionStart(HookInput, tag="SessionStart", kw_only=True):
    source: str
    model: str | None = None


class SessionEnd(HookInput, tag="SessionEnd", kw_only=True):
    reason: str


class Stop(HookInput, tag="Stop", kw_only=True):
    stop_hook_active: bool = False
    last_assistant_message: str | None = None


class StopFailure(HookInput, tag="StopFailure", kw_only=True):
    error: str
    error_details: str | None = None


class SubagentStart(HookInput, tag="SubagentStart", kw_only=True):
    pass


class SubagentStop(HookInput, tag="SubagentStop", kw_only=True):
    stop_hook_active: bool = False
    agent_transcript_path: str | None = None
    last_assistant_message: str | None = None


class PreCompact(HookInput, tag="PreCompact", kw_only=True):
    trigger: str
    custom_instructions: str | None = None


class PostCompact(HookInput, tag="PostCompact", kw_only=True):
    trigger: str
    compact_summary: str = ""


class _ModelSwitch(HookInput, kw_only=True):
    from_model: str
    to_model: str
    requested_model: str | None = None
    source: str | None = None


class PreModelSwitch(_ModelSwitch, tag="PreModelSwitch", kw_only=True):
    pass


class PostModelSwitch(_ModelSwitch, tag="PostModelSwitch", kw_only=True):
    pass


class Notification(HookInput, tag="Notification", kw_only=True):
    message: str
    title: str | None = None
    notification_type: str | None = None


class Setup(HookInput, tag="Setup", kw_only=True):
    trigger: str


class TeammateIdle(HookInput, tag="TeammateIdle", kw_only=True):
    teammate_name: str
    team_name: str | None = None


class _TaskHookInput(HookInput, kw_only=True):
    task_id: str
    task_subject: str = ""
    task_description: str | None = None
    teammate_name: str | None = None
    team_name: str | None = None


class TaskCreated(_TaskHookInput, tag="TaskCreated", kw_only=True):
    pass


class TaskCompleted(_TaskHookInput, tag="TaskCompleted", kw_only=True):
    pass


class Elicitation(HookInput, tag="Elicitation", kw_only=True):
    mcp_server_name: str
    message: str
    mode: str | None = None
    url: str | None = None
    elicitation_id: str | None = None
    requested_schema: dict[str, Any] | None = None


class ElicitationResult(HookInput, tag="ElicitationResult", kw_only=True):
    mcp_server_name: str
    action: str
    mode: str | None = None
    elicitation_id: str | None = None
    content: dict[str, Any] | None = None


class ConfigChange(HookInput, tag="ConfigChange", kw_only=True):
    source: str
    file_path: str | None = None


class InstructionsLoaded(HookInput, tag="InstructionsLoaded", kw_only=True):
    file_path: str
    memory_type: str | None = None
    load_reason: str | None = None


class WorktreeCreate(HookInput, tag="WorktreeCreate", kw_only=True):
    name: str


class WorktreeRemove(HookInput, tag="WorktreeRemove", kw_only=True):
    worktree_path: str


class CwdChanged(HookInput, tag="CwdChanged", kw_only=True):
    old_cwd: str
    new_cwd: str


class FileChanged(HookInput, tag="FileChanged", kw_only=True):
    file_path: str
    event: str


class DirectoryAdded(HookInput, tag="DirectoryAdded", kw_only=True):
    directory: str
    source: str | None = None


class MessageDisplay(HookInput, tag="MessageDisplay", kw_only=True):
    message_id: str
    delta: str = ""
    index: int = 0
    final: bool = False


KnownHookInput: TypeAlias = (
    PreToolUse
    | PostToolUse
    | PostToolUseFailure
    | PostToolBatch
    | PermissionRequest
    | PermissionDenied
    | UserPromptSubmit
    | UserPromptExpansion
    | SessionStart
    | SessionEnd
    | Stop
    | StopFailure
    | SubagentStart
    | SubagentStop
    | PreCompact
    | PostCompact
    | PreModelSwitch
    | PostModelSwitch
    | Notification
    | Setup
    | TeammateIdle
    | TaskCreated
    | TaskCompleted
    | Elicitation
    | ElicitationResult
    | ConfigChange
    | InstructionsLoaded
    | WorktreeCreate
    | WorktreeRemove
    | CwdChanged
    | FileChanged
    | DirectoryAdded
    | MessageDisplay
)

# As with `Block`: readers may meet `Unknown`, the decoder does not know it.
if TYPE_CHECKING:
    AnyHookInput: TypeAlias = KnownHookInput | Unknown
else:
    AnyHookInput = KnownHookInput
