"""`system` lines: what the CLI tells about itself. `subtype` on the wire tells which."""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct, field

from .messages import Message


class SystemMessage(Message, tag_field="subtype", kw_only=True):
    """Any `system` line. The `type` is checked by the codec before the subtype is."""


class McpServerState(Struct, omit_defaults=True):
    name: str
    status: str


class Init(SystemMessage, tag="init", kw_only=True):
    """The state of the session; comes again with every turn."""

    cwd: str
    model: str
    permission_mode: str = field(name="permissionMode")
    tools: list[str] = []
    mcp_servers: list[McpServerState] = []
    slash_commands: list[str] = []
    agents: list[str] = []
    skills: list[str] = []
    claude_code_version: str | None = None
    output_style: str | None = None
    api_key_source: str | None = field(name="apiKeySource", default=None)
    capabilities: list[str] = []
    user_message_uuids: list[str] | None = None


class Status(SystemMessage, tag="status", kw_only=True):
    """`compacting`, `requesting` or nothing; and the permission mode when it has changed."""

    status: str | None = None
    permission_mode: str | None = field(name="permissionMode", default=None)
    compact_result: str | None = None
    compact_error: str | None = None


class CompactMetadata(Struct, omit_defaults=True):
    trigger: str
    pre_tokens: int | None = None
    post_tokens: int | None = None


class CompactBoundary(SystemMessage, tag="compact_boundary", kw_only=True):
    compact_metadata: CompactMetadata


class ApiRetry(SystemMessage, tag="api_retry", kw_only=True):
    attempt: int
    max_retries: int
    retry_delay_ms: float
    error: str
    error_status: int | None = None


class SessionStateChanged(SystemMessage, tag="session_state_changed", kw_only=True):
    state: str


class SessionTitleChanged(SystemMessage, tag="session_title_changed", kw_only=True):
    title: str


class PermissionDenied(SystemMessage, tag="permission_denied", kw_only=True):
    """The CLI refused a tool by itself, without asking."""

    tool_name: str
    tool_use_id: str
    message: str
    agent_id: str | None = None
    decision_reason: str | None = None
    decision_reason_type: str | None = None


class HookStarted(SystemMessage, tag="hook_started", kw_only=True):
    hook_id: str
    hook_name: str
    hook_event: str


class HookProgress(SystemMessage, tag="hook_progress", kw_only=True):
    hook_id: str
    hook_name: str
    hook_event: str
    stdout: str = ""
    stderr: str = ""
    output: str = ""


class HookResponse(SystemMessage, tag="hook_response", kw_only=True):
    hook_id: str
    hook_name: str
    hook_event: str
    outcome: str | None = None
    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    output: str = ""


class TaskUsage(Struct, omit_defaults=True):
    total_tokens: int = 0
    tool_uses: int = 0
    duration_ms: float = 0


class TaskStarted(SystemMessage, tag="task_started", kw_only=True):
    task_id: str
    description: str
    task_type: str | None = None
    tool_use_id: str | None = None
    subagent_type: str | None = None
    is_backgrounded: bool | None = None
    prompt: str | None = None


class TaskProgress(SystemMessage, tag="task_progress", kw_only=True):
    task_id: str
    description: str
    tool_use_id: str | None = None
    usage: TaskUsage | None = None
    last_tool_name: str | None = None


class TaskUpdated(SystemMessage, tag="task_updated", kw_only=True):
    task_id: str
    patch: dict[str, Any]


class TaskNotification(SystemMessage, tag="task_notification", kw_only=True):
    task_id: str
    status: str
    summary: str = ""
    output_file: str | None = None
    tool_use_id: str | None = None
    usage: TaskUsage | None = None


class BackgroundTask(Struct, omit_defaults=True):
    task_id: str
    task_type: str
    description: str = ""
    subagent_type: str | None = None


class BackgroundTasksChanged(SystemMessage, tag="background_tasks_changed", kw_only=True):
    tasks: list[BackgroundTask]


class LocalCommandOutput(SystemMessage, tag="local_command_output", kw_only=True):
    content: str


class Notification(SystemMessage, tag="notification", kw_only=True):
    key: str
    text: str
    priority: str | None = None


class UiInvalidate(SystemMessage, tag="ui_invalidate", kw_only=True):
    """Something that the CLI would show anew on a screen of its own."""

    event: str | None = None


class Informational(SystemMessage, tag="informational", kw_only=True):
    content: str
    level: str | None = None
    tag_name: str | None = field(name="tag", default=None)
    tool_use_id: str | None = None
    prevent_continuation: bool = False


class ControlRequestProgress(SystemMessage, tag="control_request_progress", kw_only=True):
    """The CLI works on a request of ours that takes long."""

    request_id: str
    status: str


class ThinkingTokens(SystemMessage, tag="thinking_tokens", kw_only=True):
    estimated_tokens: int
    estimated_tokens_delta: int = 0


class CommandsChanged(SystemMessage, tag="commands_changed", kw_only=True):
    commands: list[dict[str, Any]]


class ElicitationComplete(SystemMessage, tag="elicitation_complete", kw_only=True):
    mcp_server_name: str
    elicitation_id: str


class FilesPersisted(SystemMessage, tag="files_persisted", kw_only=True):
    files: list[dict[str, Any]]
    failed: list[dict[str, Any]] = []


class MemoryRecall(SystemMessage, tag="memory_recall", kw_only=True):
    memories: list[dict[str, Any]]


class MirrorError(SystemMessage, tag="mirror_error", kw_only=True):
    error: str


class ModelRefusalFallback(SystemMessage, tag="model_refusal_fallback", kw_only=True):
    original_model: str
    fallback_model: str
    content: str = ""


class ModelRefusalNoFallback(SystemMessage, tag="model_refusal_no_fallback", kw_only=True):
    original_model: str
    content: str = ""


class PluginInstall(SystemMessage, tag="plugin_install", kw_only=True):
    status: str
    name: str | None = None
    error: str | None = None


class SessionWritesLost(SystemMessage, tag="session_writes_lost", kw_only=True):
    error_code: str
    lost: list[str] = []


class WorkerShuttingDown(SystemMessage, tag="worker_shutting_down", kw_only=True):
    reason: str


KnownSystem: TypeAlias = (
    Init
    | Status
    | CompactBoundary
    | ApiRetry
    | SessionStateChanged
    | SessionTitleChanged
    | PermissionDenied
    | HookStarted
    | HookProgress
    | HookResponse
    | TaskStarted
    | TaskProgress
    | TaskUpdated
    | TaskNotification
    | BackgroundTasksChanged
    | LocalCommandOutput
    | Notification
    | Informational
    | UiInvalidate
    | ControlRequestProgress
    | ThinkingTokens
    | CommandsChanged
    | ElicitationComplete
    | FilesPersisted
    | MemoryRecall
    | MirrorError
    | ModelRefusalFallback
    | ModelRefusalNoFallback
    | PluginInstall
    | SessionWritesLost
    | WorkerShuttingDown
)
