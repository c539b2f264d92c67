"""Every request that a controller may make of the CLI, as a typed method.

Owns the names and types; `Session` inherits them, and its `ask` does the asking. Each takes a
`timeout` in seconds (None: the session's own, 60 s): after it the request is taken back and
`RequestTimedOut` raised. What this CLI would never answer raises `NotSupported` at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from msgspec import UNSET

from ..protocol import answers, requests
from ..protocol.answers import Answered
from ..protocol.permissions import PermissionMode
from ..protocol.requests import OutboundRequest

_A = TypeVar("_A", bound=Answered)


class Controls:
    """What can be asked of a CLI while it runs."""

    @abstractmethod
    async def ask(
        self, request: OutboundRequest, answer: type[_A], timeout: float | None = None
    ) -> _A:
        """Write a request and wait for its answer."""

    @abstractmethod
    def taken_back(self, uuid: str, /) -> None:
        """The CLI has let a queued prompt go."""

    async def interrupt(self, *, timeout: float | None = None) -> answers.Interrupted:
        """End the turn that runs. Prompts that are queued stay so; new CLIs tell which."""
        return await self.ask(requests.Interrupt(), answers.Interrupted, timeout)

    async def set_permission_mode(
        self, mode: PermissionMode, *, timeout: float | None = None
    ) -> answers.ModeSet:
        """Ask for another mode; `Session.permission_mode` is what the CLI has confirmed."""
        return await self.ask(requests.SetPermissionMode(mode), answers.ModeSet, timeout)

    async def set_model(
        self, model: str | None, *, timeout: float | None = None
    ) -> answers.ModelSet:
        """Use another model from now on; None goes back to the default."""
        return await self.ask(requests.SetModel(model), answers.ModelSet, timeout)

    async def set_max_thinking_tokens(
        self, tokens: int | None, *, timeout: float | None = None
    ) -> answers.Done:
        return await self.ask(requests.SetMaxThinkingTokens(tokens), answers.Done, timeout)

    async def rewind_files(
        self, user_message_id: str, *, dry_run: bool = False, timeout: float | None = None
    ) -> answers.Rewound:
        """Put files back as they were at one prompt (`Turn.uuid`); needs `file_checkpointing`.

        A dry run only tells what would change; it is refused for CLIs that would do it for real.
        """
        request = requests.RewindFiles(user_message_id, True if dry_run else UNSET)
        return await self.ask(request, answers.Rewound, timeout)

    async def mcp_status(self, *, timeout: float | None = None) -> answers.McpServers:
        return await self.ask(requests.McpStatus(), answers.McpServers, timeout)

    async def mcp_set_servers(
        self, servers: Mapping[str, dict[str, Any]], *, timeout: float | None = None
    ) -> answers.McpServersSet:
        """Replace the servers that were added while it runs; an empty mapping removes them."""
        request = requests.McpSetServers(dict(servers))
        return await self.ask(request, answers.McpServersSet, timeout)

    async def mcp_reconnect(self, server: str, *, timeout: float | None = None) -> answers.Done:
        return await self.ask(requests.McpReconnect(server), answers.Done, timeout)

    async def mcp_toggle(
        self, server: str, *, enabled: bool, timeout: float | None = None
    ) -> answers.Done:
        return await self.ask(requests.McpToggle(server, enabled), answers.Done, timeout)

    async def context_usage(
        self,
        detail: Literal["summary", "full"] | None = None,
        *,
        timeout: float | None = None,
    ) -> answers.ContextUsage:
        """What fills the model's context."""
        request = requests.GetContextUsage(detail or UNSET)
        return await self.ask(request, answers.ContextUsage, timeout)

    async def stop_task(self, task_id: str, *, timeout: float | None = None) -> answers.Done:
        return await self.ask(requests.StopTask(task_id), answers.Done, timeout)

    async def background_tasks(
        self, tool_use_id: str | None = None, *, timeout: float | None = None
    ) -> answers.Done:
        """Send what runs in the foreground to the background."""
        return await self.ask(requests.BackgroundTasks(tool_use_id or UNSET), answers.Done, timeout)

    async def task_output(
        self, task_id: str, *, timeout: float | None = None
    ) -> answers.TaskOutput:
        return await self.ask(requests.GetTaskOutput(task_id), answers.TaskOutput, timeout)

    async def cancel_prompt(
        self, uuid: str, *, timeout: float | None = None
    ) -> answers.MessageCancelled:
        """Take a queued prompt back (`Turn.uuid`); its turn then raises `PromptCancelled`."""
        request = requests.CancelAsyncMessage(uuid)
        answer = await self.ask(request, answers.MessageCancelled, timeout)
        if answer.cancelled:  # some versions say no more of it than this
            self.taken_back(uuid)
        return answer

    async def settings(self, *, timeout: float | None = None) -> answers.Settings:
        return await self.ask(requests.GetSettings(), answers.Settings, timeout)

    async def apply_settings(
        self, settings: Mapping[str, Any], *, timeout: float | None = None
    ) -> answers.Done:
        request = requests.ApplyFlagSettings(dict(settings))
        return await self.ask(request, answers.Done, timeout)

    async def permission_rules(self, *, timeout: float | None = None) -> answers.PermissionRules:
        """The rules that the CLI itself holds."""
        return await self.ask(requests.ListPermissionRules(), answers.PermissionRules, timeout)

    async def reload_plugins(self, *, timeout: float | None = None) -> answers.PluginsReloaded:
        return await self.ask(requests.ReloadPlugins(), answers.PluginsReloaded, timeout)

    async def reload_skills(self, *, timeout: float | None = None) -> answers.SkillsReloaded:
        return await self.ask(requests.ReloadSkills(), answers.SkillsReloaded, timeout)

    async def rename(self, title: str, *, timeout: float | None = None) -> answers.Done:
        return await self.ask(requests.RenameSession(title), answers.Done, timeout)

    async def generate_title(
        self, description: str, *, persist: bool = False, timeout: float | None = None
    ) -> answers.SessionTitle:
        request = requests.GenerateSessionTitle(description, True if persist else UNSET)
        return await self.ask(request, answers.SessionTitle, timeout)

    async def binary_version(self, *, timeout: float | None = None) -> answers.BinaryVersion:
        return await self.ask(requests.GetBinaryVersion(), answers.BinaryVersion, timeout)

    async def cost(self, *, timeout: float | None = None) -> answers.SessionCost:
        return await self.ask(requests.GetSessionCost(), answers.SessionCost, timeout)

    async def usage(self, *, timeout: float | None = None) -> answers.UsageReport:
        return await self.ask(requests.GetUsage(), answers.UsageReport, timeout)
