"""How a CLI is to be launched, as plain data; `arguments` and `environment` turn it into words.

Owns the list of options. Finding the program is `find`'s work, starting it `child`'s.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

from msgspec import Struct

from ..protocol.permissions import PermissionMode

StrPath: TypeAlias = str | os.PathLike[str]
Thinking: TypeAlias = Literal["adaptive", "enabled", "disabled"]
Effort: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]
SettingSource: TypeAlias = Literal["user", "project", "local"]


class LaunchSpec(Struct, frozen=True, kw_only=True):
    """One launch. What is None is left to the CLI; docs/sessions.md explains every field."""

    # What to run, and where.
    cwd: StrPath | None = None
    command: str | Sequence[str] | None = None
    #: Run through claude-code-router of this version.
    router: str | None = None
    #: Put before the command: a sandbox, for example.
    containment: Sequence[str] = ()
    #: Added after all that we write, as they are.
    extra_args: Sequence[str] = ()

    # Its environment: inherited < what we set < `env`; then `unset` is taken away.
    env: Mapping[str, str] = {}
    unset: Sequence[str] = ()
    inherit_env: bool = True
    #: Use the login of a subscription even where a key is in the environment.
    remove_api_key: bool = False
    entrypoint: str = "bridle"
    file_checkpointing: bool = False
    session_state_events: bool = False
    mcp_tool_timeout_ms: int | None = None

    # The conversation.
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    model: str | None = None
    fallback_model: str | None = None
    agent: str | None = None
    betas: Sequence[str] = ()
    thinking: Thinking | None = None
    max_thinking_tokens: int | None = None
    effort: Effort | None = None
    json_schema: Mapping[str, Any] | None = None

    # What it may do.
    #: Which of the CLI's own tools there are; none for an empty list.
    builtin_tools: Sequence[str] | None = None
    allowed_tools: Sequence[str] = ()
    disallowed_tools: Sequence[str] = ()
    permission_mode: PermissionMode | None = None
    allow_dangerously_skip_permissions: bool = False
    dangerously_skip_permissions: bool = False
    add_dirs: Sequence[StrPath] = ()

    # How much it may spend.
    max_turns: int | None = None
    max_budget_usd: float | None = None

    # Which session it is.
    resume: str | None = None
    continue_last: bool = False
    fork_session: bool = False
    resume_session_at: str | None = None
    session_id: str | None = None
    session_persistence: bool = True

    # What it loads.
    settings: str | Mapping[str, Any] | None = None
    setting_sources: Sequence[SettingSource] | None = None
    mcp_config: str | Mapping[str, Any] | Sequence[str] | None = None
    strict_mcp_config: bool = False
    plugin_dirs: Sequence[StrPath] = ()

    # What it tells.
    partial_messages: bool = False
    hook_events: bool = False
    #: Show prompts as the CLI repeats them. (Some are told to in any case: `child` says why.)
    replay_user_messages: bool = False
    debug_file: StrPath | None = None


class LaunchOptions(TypedDict, total=False):
    """The fields of `LaunchSpec` as keyword arguments, for `connect` and `run`."""

    cwd: StrPath | None
    command: str | Sequence[str] | None
    router: str | None
    containment: Sequence[str]
    extra_args: Sequence[str]
    env: Mapping[str, str]
    unset: Sequence[str]
    inherit_env: bool
    remove_api_key: bool
    entrypoint: str
    file_checkpointing: bool
    session_state_events: bool
    mcp_tool_timeout_ms: int | None
    system_prompt: str | None
    append_system_prompt: str | None
    model: str | None
    fallback_model: str | None
    agent: str | None
    betas: Sequence[str]
    thinking: Thinking | None
    max_thinking_tokens: int | None
    effort: Effort | None
    json_schema: Mapping[str, Any] | None
    builtin_tools: Sequence[str] | None
    allowed_tools: Sequence[str]
    disallowed_tools: Sequence[str]
    permission_mode: PermissionMode | None
    allow_dangerously_skip_permissions: bool
    dangerously_skip_permissions: bool
    add_dirs: Sequence[StrPath]
    max_turns: int | None
    max_budget_usd: float | None
    resume: str | None
    continue_last: bool
    fork_session: bool
    resume_session_at: str | None
    session_id: str | None
    session_persistence: bool
    settings: str | Mapping[str, Any] | None
    setting_sources: Sequence[SettingSource] | None
    mcp_config: str | Mapping[str, Any] | Sequence[str] | None
    strict_mcp_config: bool
    plugin_dirs: Sequence[StrPath]
    partial_messages: bool
    hook_events: bool
    replay_user_messages: bool
    debug_file: StrPath | None
