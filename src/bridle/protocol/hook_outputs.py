"""What a hook may answer. Absent fields are left out of the JSON; an empty answer is `{}`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field

from .hooks import MAX_TIMEOUT_SECONDS, PRE_TOOL_USE
from .permissions import Allow, Deny

ToolDecision: TypeAlias = Literal["allow", "deny", "ask", "defer"]


class _Specific(Struct, tag_field="hookEventName", rename="camel"):
    """The part of an answer that only one event understands."""


class PreToolUseOutput(_Specific, tag=PRE_TOOL_USE):
    permission_decision: ToolDecision | UnsetType = UNSET
    permission_decision_reason: str | UnsetType = UNSET
    updated_input: dict[str, Any] | UnsetType = UNSET
    additional_context: str | UnsetType = UNSET


class PostToolUseOutput(_Specific, tag="PostToolUse"):
    additional_context: str | UnsetType = UNSET
    updated_tool_output: Any = UNSET
    updated_mcp_tool_output: Any = field(name="updatedMCPToolOutput", default=UNSET)


class PermissionRequestOutput(_Specific, tag="PermissionRequest"):
    decision: Allow | Deny


class PermissionDeniedOutput(_Specific, tag="PermissionDenied"):
    retry: bool | UnsetType = UNSET


class UserPromptSubmitOutput(_Specific, tag="UserPromptSubmit"):
    additional_context: str | UnsetType = UNSET
    session_title: str | UnsetType = UNSET
    suppress_original_prompt: bool | UnsetType = UNSET


class UserPromptExpansionOutput(_Specific, tag="UserPromptExpansion"):
    additional_context: str | UnsetType = UNSET
    suppress_original_prompt: bool | UnsetType = UNSET


class SessionStartOutput(_Specific, tag="SessionStart"):
    additional_context: str | UnsetType = UNSET
    initial_user_message: str | UnsetType = UNSET
    session_title: str | UnsetType = UNSET
    watch_paths: list[str] | UnsetType = UNSET
    reload_skills: bool | UnsetType = UNSET


class PreModelSwitchOutput(_Specific, tag="PreModelSwitch"):
    permission_decision: Literal["allow", "deny", "ask"] | UnsetType = UNSET
    permission_decision_reason: str | UnsetType = UNSET


class _ElicitationOutput(_Specific):
    action: Literal["accept", "decline", "cancel"] | UnsetType = UNSET
    content: dict[str, Any] | UnsetType = UNSET


class ElicitationOutput(_ElicitationOutput, tag="Elicitation"):
    pass


class ElicitationResultOutput(_ElicitationOutput, tag="ElicitationResult"):
    pass


class _WatchOutput(_Specific):
    watch_paths: list[str] | UnsetType = UNSET


class CwdChangedOutput(_WatchOutput, tag="CwdChanged"):
    pass


class FileChangedOutput(_WatchOutput, tag="FileChanged"):
    pass


class WorktreeCreateOutput(_Specific, tag="WorktreeCreate"):
    worktree_path: str


class MessageDisplayOutput(_Specific, tag="MessageDisplay"):
    display_content: str | UnsetType = UNSET


class _ContextOutput(_Specific):
    additional_context: str | UnsetType = UNSET


class PostToolUseFailureOutput(_ContextOutput, tag="PostToolUseFailure"):
    pass


class PostToolBatchOutput(_ContextOutput, tag="PostToolBatch"):
    pass


class PostModelSwitchOutput(_ContextOutput, tag="PostModelSwitch"):
    pass


class SetupOutput(_ContextOutput, tag="Setup"):
    pass


class StopOutput(_ContextOutput, tag="Stop"):
    pass


class SubagentStartOutput(_ContextOutput, tag="SubagentStart"):
    pass


class SubagentStopOutput(_ContextOutput, tag="SubagentStop"):
    pass


class NotificationOutput(_ContextOutput, tag="Notification"):
    pass


SpecificOutput: TypeAlias = (
    PreToolUseOutput
    | PostToolUseOutput
    | PostToolUseFailureOutput
    | PostToolBatchOutput
    | PermissionRequestOutput
    | PermissionDeniedOutput
    | UserPromptSubmitOutput
    | UserPromptExpansionOutput
    | SessionStartOutput
    | PreModelSwitchOutput
    | PostModelSwitchOutput
    | SetupOutput
    | StopOutput
    | SubagentStartOutput
    | SubagentStopOutput
    | NotificationOutput
    | ElicitationOutput
    | ElicitationResultOutput
    | CwdChangedOutput
    | FileChangedOutput
    | WorktreeCreateOutput
    | MessageDisplayOutput
)


class HookOutput(Struct, rename="camel"):
    """A hook's answer. `continue_=False` ends the turn but does not stop the tool: deny does."""

    continue_: bool | UnsetType = field(name="continue", default=UNSET)
    stop_reason: str | UnsetType = UNSET
    suppress_output: bool | UnsetType = UNSET
    decision: Literal["approve", "block"] | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    system_message: str | UnsetType = UNSET
    hook_specific_output: SpecificOutput | UnsetType = UNSET


class AsyncHookOutput(Struct, rename="camel"):
    """The hook goes on by itself; the CLI does not wait for it."""

    async_: Literal[True] = field(name="async", default=True)
    async_timeout: Annotated[float, Meta(gt=0, le=MAX_TIMEOUT_SECONDS)] | UnsetType = UNSET


def pre_tool_use(decision: ToolDecision, reason: str | UnsetType = UNSET) -> HookOutput:
    """The answer to a PreToolUse hook that decides about the tool."""
    return HookOutput(
        hook_specific_output=PreToolUseOutput(
            permission_decision=decision, permission_decision_reason=reason
        )
    )
