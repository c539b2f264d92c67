"""What we ask of the CLI: one struct for each request, checked before it is written.

Owns the shapes of protocol.md section 4. A struct is plain data; `Connection.request` turns it
into a line, and refuses one that its own type would not decode: old CLIs wedge or crash on some
wrong shapes instead of answering. What each version answers is in `capabilities`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field

from .hooks import HookEvent, HookMatcher
from .permissions import PermissionMode

Name: TypeAlias = Annotated[str, Meta(min_length=1)]


class _Request(Struct, tag_field="subtype"):
    """Something that we ask the CLI."""


class Agent(Struct, rename="camel"):
    """A subagent that this session may use."""

    description: str
    prompt: str
    tools: list[str] | UnsetType = UNSET
    model: str | UnsetType = UNSET


class Initialize(_Request, tag="initialize", rename="camel"):
    """Say hello and register what we serve. Not a way to recover a healthy session."""

    hooks: dict[HookEvent, list[HookMatcher]] | None = None
    agents: dict[str, Agent] | UnsetType = UNSET
    sdk_mcp_servers: list[Name] | UnsetType = UNSET
    json_schema: dict[str, Any] | UnsetType = UNSET
    system_prompt: str | list[str] | UnsetType = UNSET
    append_system_prompt: str | UnsetType = UNSET


class Interrupt(_Request, tag="interrupt"):
    """End the turn. New CLIs tell which prompts stay queued."""


class SetPermissionMode(_Request, tag="set_permission_mode"):
    mode: PermissionMode


class SetModel(_Request, tag="set_model"):
    """Use another model; None goes back to the default. No CLI checks the name."""

    model: Name | None = None


class SetMaxThinkingTokens(_Request, tag="set_max_thinking_tokens"):
    max_thinking_tokens: Annotated[int, Meta(ge=0)] | None = None


class RewindFiles(_Request, tag="rewind_files"):
    """Put files back as they were at one prompt. `dry_run` only tells what would change."""

    user_message_id: Name
    dry_run: bool | UnsetType = UNSET


class McpStatus(_Request, tag="mcp_status"):
    pass


class McpSetServers(_Request, tag="mcp_set_servers"):
    """Replace the servers that were added at run time; `{}` removes them all."""

    servers: dict[Name, dict[str, Any]]


class McpReconnect(_Request, tag="mcp_reconnect"):
    server_name: Name = field(name="serverName")


class McpToggle(_Request, tag="mcp_toggle"):
    server_name: Name = field(name="serverName")
    enabled: bool


class GetContextUsage(_Request, tag="get_context_usage"):
    detail: Literal["summary", "full"] | UnsetType = UNSET


class StopTask(_Request, tag="stop_task"):
    task_id: Name


class BackgroundTasks(_Request, tag="background_tasks"):
    """Send what runs in the foreground to the background."""

    tool_use_id: Name | UnsetType = UNSET


class GetTaskOutput(_Request, tag="get_task_output"):
    task_id: Name


class CancelAsyncMessage(_Request, tag="cancel_async_message"):
    """Take a queued prompt back, by the uuid that it was sent with."""

    message_uuid: Name


class GetSettings(_Request, tag="get_settings"):
    pass


class ApplyFlagSettings(_Request, tag="apply_flag_settings"):
    settings: dict[str, Any]


class ListPermissionRules(_Request, tag="list_permission_rules"):
    pass


class ReloadPlugins(_Request, tag="reload_plugins"):
    pass


class ReloadSkills(_Request, tag="reload_skills"):
    pass


class RenameSession(_Request, tag="rename_session"):
    title: Name


class GenerateSessionTitle(_Request, tag="generate_session_title"):
    description: str
    persist: bool | UnsetType = UNSET


class GetBinaryVersion(_Request, tag="get_binary_version"):
    pass


class GetSessionCost(_Request, tag="get_session_cost"):
    pass


class GetUsage(_Request, tag="get_usage"):
    pass


class EndSession(_Request, tag="end_session"):
    """Exit at once. Old CLIs never answer."""

    reason: str | UnsetType = UNSET


OutboundRequest: TypeAlias = (
    Initialize
    | Interrupt
    | SetPermissionMode
    | SetModel
    | SetMaxThinkingTokens
    | RewindFiles
    | McpStatus
    | McpSetServers
    | McpReconnect
    | McpToggle
    | GetContextUsage
    | StopTask
    | BackgroundTasks
    | GetTaskOutput
    | CancelAsyncMessage
    | GetSettings
    | ApplyFlagSettings
    | ListPermissionRules
    | ReloadPlugins
    | ReloadSkills
    | RenameSession
    | GenerateSessionTitle
    | GetBinaryVersion
    | GetSessionCost
    | GetUsage
    | EndSession
)
