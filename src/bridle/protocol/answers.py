"""What the CLI answers to our requests, by request. A request with no entry answers `Done`."""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct, field

from . import requests


class Done(Struct):
    """It was done; there is nothing more to tell."""


class SlashCommand(Struct, rename="camel", omit_defaults=True):
    name: str
    description: str = ""
    argument_hint: str = ""
    aliases: list[str] = []


class ModelInfo(Struct, rename="camel", omit_defaults=True):
    value: str
    display_name: str = ""
    description: str = ""
    resolved_model: str | None = None


class AgentInfo(Struct, omit_defaults=True):
    name: str
    description: str = ""
    model: str | None = None


class Account(Struct, rename="camel", omit_defaults=True):
    email: str | None = None
    organization: str | None = None
    subscription_type: str | None = None
    token_source: str | None = None
    api_key_source: str | None = None
    api_provider: str | None = None


class Initialized(Struct, omit_defaults=True):
    """What a CLI can do. From `agents` on, only new CLIs tell."""

    commands: list[SlashCommand] = []
    models: list[ModelInfo] = []
    account: Account | None = None
    output_style: str | None = None
    available_output_styles: list[str] = []
    agents: list[AgentInfo] = []
    pid: int | None = None
    claude_code_version: str | None = None
    current_permission_mode: str | None = None
    session_state: str | None = None
    capabilities: list[str] = []
    hook_on_failure_supported: bool = False


class Interrupted(Struct, omit_defaults=True):
    still_queued: list[str] = []
    cancelled: list[str] = []


class ModeSet(Struct, omit_defaults=True):
    mode: str | None = None


class ModelSet(Struct, omit_defaults=True):
    model: str | None = None


class Rewound(Struct, rename="camel", omit_defaults=True):
    """2.0.75 answers without a word; then nothing is known but that it was done."""

    can_rewind: bool = True
    error: str | None = None
    files_changed: list[str] = []
    insertions: int = 0
    deletions: int = 0


class McpServer(Struct, rename="camel", omit_defaults=True):
    name: str
    status: str
    server_info: dict[str, Any] | None = None
    error: str | None = None
    scope: str | None = None
    tools: list[dict[str, Any]] = []


class McpServers(Struct, rename="camel", omit_defaults=True):
    mcp_servers: list[McpServer] = []


class McpServersSet(Struct, omit_defaults=True):
    added: list[str] = []
    removed: list[str] = []
    errors: dict[str, Any] = {}


class ContextCategory(Struct, rename="camel", omit_defaults=True):
    name: str
    tokens: int = 0
    kind: str | None = None


class ContextUsage(Struct, rename="camel", omit_defaults=True):
    categories: list[ContextCategory] = []
    total_tokens: int = 0
    max_tokens: int = 0
    raw_max_tokens: int = 0
    percentage: float = 0
    model: str | None = None


class TaskOutput(Struct, omit_defaults=True):
    output: str = ""
    total_bytes: int = 0
    truncated: bool = False


class MessageCancelled(Struct):
    cancelled: bool


class Settings(Struct, omit_defaults=True):
    effective: dict[str, Any] = {}
    sources: list[Any] = []
    applied: dict[str, Any] = {}


class PermissionRules(Struct, omit_defaults=True):
    state: dict[str, Any] = {}


class PluginsReloaded(Struct, rename="camel", omit_defaults=True):
    commands: list[SlashCommand] = []
    agents: list[AgentInfo] = []
    plugins: list[dict[str, Any]] = []
    mcp_servers: list[McpServer] = []
    error_count: int = field(name="error_count", default=0)


class SkillsReloaded(Struct, omit_defaults=True):
    skills: list[SlashCommand] = []


class SessionTitle(Struct, omit_defaults=True):
    title: str | None = None


class BinaryVersion(Struct, rename="camel", omit_defaults=True):
    version: str
    build_time: str | None = None


class SessionCost(Struct):
    text: str


class UsageReport(Struct, omit_defaults=True):
    session: dict[str, Any] = {}
    subscription_type: str | None = None
    rate_limits: dict[str, Any] | None = None


Answered: TypeAlias = (
    Done
    | Initialized
    | Interrupted
    | ModeSet
    | ModelSet
    | Rewound
    | McpServers
    | McpServersSet
    | ContextUsage
    | TaskOutput
    | MessageCancelled
    | Settings
    | PermissionRules
    | PluginsReloaded
    | SkillsReloaded
    | SessionTitle
    | BinaryVersion
    | SessionCost
    | UsageReport
)

ANSWER_OF: dict[type[requests.OutboundRequest], type[Answered]] = {
    requests.Initialize: Initialized,
    requests.Interrupt: Interrupted,
    requests.SetPermissionMode: ModeSet,
    requests.SetModel: ModelSet,
    requests.RewindFiles: Rewound,
    requests.McpStatus: McpServers,
    requests.McpSetServers: McpServersSet,
    requests.GetContextUsage: ContextUsage,
    requests.GetTaskOutput: TaskOutput,
    requests.CancelAsyncMessage: MessageCancelled,
    requests.GetSettings: Settings,
    requests.ListPermissionRules: PermissionRules,
    requests.ReloadPlugins: PluginsReloaded,
    requests.ReloadSkills: SkillsReloaded,
    requests.GenerateSessionTitle: SessionTitle,
    requests.GetBinaryVersion: BinaryVersion,
    requests.GetSessionCost: SessionCost,
    requests.GetUsage: UsageReport,
}

#: These tell what there is: a detail that can't be read takes nothing from the rest. What others
#: say is gone by, and so is read whole or not at all.
TELLING: frozenset[type[Answered]] = frozenset(
    (Initialized, PluginsReloaded, SkillsReloaded, McpServers, ContextUsage, UsageReport)
)
