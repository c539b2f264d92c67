"""`LaunchSpec` -> the CLI's arguments, by one table. Pure.

A value always stands in the same word as its flag (`--model=…`), so that none can become a flag.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from ..errors import InvalidLaunch
from .spec import LaunchSpec, StrPath

#: With these every CLI speaks the protocol and asks us about tools.
STREAM_JSON = (
    "-p",
    "--input-format=stream-json",
    "--output-format=stream-json",
    "--verbose",
)
ASK_US = ("--permission-prompt-tool=stdio",)

Words: TypeAlias = Callable[[str, Any], Iterator[str]]


def _value(flag: str, value: object) -> Iterator[str]:
    yield f"{flag}={value}"


def _switch(flag: str, value: object) -> Iterator[str]:
    if value:
        yield flag


def _unless(flag: str, value: object) -> Iterator[str]:
    if not value:
        yield flag


def _joined(flag: str, values: Sequence[str]) -> Iterator[str]:
    yield f"{flag}={','.join(values)}"


def _some(flag: str, values: Sequence[str]) -> Iterator[str]:
    if values:
        yield from _joined(flag, values)


def _each(flag: str, values: Sequence[object]) -> Iterator[str]:
    for value in values:
        yield f"{flag}={value}"


def _json(flag: str, value: object) -> Iterator[str]:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    yield f"{flag}={text}"


def _configs(flag: str, value: str | Mapping[str, Any] | Sequence[str]) -> Iterator[str]:
    if isinstance(value, str | Mapping):
        yield from _json(flag, value)
    else:
        yield from _each(flag, value)


#: Every option that becomes a flag, in the order in which they are written.
FLAGS: dict[str, tuple[str, Words]] = {
    "system_prompt": ("--system-prompt", _value),
    "append_system_prompt": ("--append-system-prompt", _value),
    "builtin_tools": ("--tools", _joined),
    "allowed_tools": ("--allowedTools", _some),
    "disallowed_tools": ("--disallowedTools", _some),
    "max_turns": ("--max-turns", _value),
    "max_budget_usd": ("--max-budget-usd", _value),
    "model": ("--model", _value),
    "fallback_model": ("--fallback-model", _value),
    "betas": ("--betas", _some),
    "agent": ("--agent", _value),
    "permission_mode": ("--permission-mode", _value),
    "allow_dangerously_skip_permissions": ("--allow-dangerously-skip-permissions", _switch),
    "dangerously_skip_permissions": ("--dangerously-skip-permissions", _switch),
    "continue_last": ("--continue", _switch),
    "resume": ("--resume", _value),
    "session_id": ("--session-id", _value),
    "fork_session": ("--fork-session", _switch),
    "resume_session_at": ("--resume-session-at", _value),
    "session_persistence": ("--no-session-persistence", _unless),
    "settings": ("--settings", _json),
    "setting_sources": ("--setting-sources", _joined),
    "add_dirs": ("--add-dir", _each),
    "mcp_config": ("--mcp-config", _configs),
    "strict_mcp_config": ("--strict-mcp-config", _switch),
    "partial_messages": ("--include-partial-messages", _switch),
    "hook_events": ("--include-hook-events", _switch),
    "replay_user_messages": ("--replay-user-messages", _switch),
    "plugin_dirs": ("--plugin-dir", _each),
    "thinking": ("--thinking", _value),
    "max_thinking_tokens": ("--max-thinking-tokens", _value),
    "effort": ("--effort", _value),
    "json_schema": ("--json-schema", _json),
    "debug_file": ("--debug-file", _value),
}

LISTS = (
    *("containment", "extra_args", "unset", "betas", "builtin_tools", "allowed_tools"),
    *("disallowed_tools", "add_dirs", "setting_sources", "plugin_dirs"),
)


def cli_arguments(spec: LaunchSpec) -> list[str]:
    """The arguments that follow the command."""
    for field in LISTS:
        if isinstance(value := getattr(spec, field), str):
            # It would be taken letter by letter, and a tool that is to be denied would not be.
            raise InvalidLaunch(f"{field} is a list: give [{value!r}]")
    words = [*STREAM_JSON, *ASK_US]
    for field, (flag, write) in FLAGS.items():
        value = getattr(spec, field)
        if value is not None:
            words += write(flag, value)
    words += spec.extra_args
    for word in words:
        if "\0" in word:
            raise InvalidLaunch(f"an argument can't hold a NUL byte: {word[:60]!r}")
    return words


def can_bypass(spec: LaunchSpec) -> bool:
    """Whether the CLI starts at all when it is told that permissions may be skipped.

    As root it does so only in what it is told is a sandbox.
    """
    env = {**(os.environ if spec.inherit_env else {}), **spec.env}
    return not hasattr(os, "geteuid") or os.geteuid() != 0 or env.get("IS_SANDBOX") == "1"


def with_hooks_on(
    settings: str | Mapping[str, Any] | None, cwd: StrPath | None = None
) -> Mapping[str, Any]:
    """Settings under which hooks are called, whatever the user's or the folder's files say.

    Old CLIs have one switch for all hooks, those of the protocol too.
    """
    if isinstance(settings, str):
        try:
            is_text = settings.lstrip().startswith("{")
            text = settings if is_text else (Path(cwd or ".") / settings).read_text()
            settings = msgspec.json.decode(text, type=dict[str, Any])
        except (OSError, ValueError) as error:
            raise InvalidLaunch(f"settings can't be read: {error}") from error
    given = dict(settings or {})
    if given.get("disableAllHooks"):
        raise InvalidLaunch(
            "settings with disableAllHooks would switch off Bridle's own hook as well in this "
            "version of Claude Code: use setting_sources=[], or policy=bridle.Ungated()"
        )
    return {**given, "disableAllHooks": False}


def cli_environment(spec: LaunchSpec, inherited: Mapping[str, str], launch: str) -> dict[str, str]:
    """The whole environment: inherited < what we set < the user's; then removals; then the mark.

    `launch` marks every process that this launch starts, so that all of them can be found.
    """
    ours = {
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_ENTRYPOINT": spec.entrypoint,
    }
    if spec.file_checkpointing:
        ours["CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"] = "1"
    if spec.session_state_events:
        ours["CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"] = "1"
    if spec.mcp_tool_timeout_ms is not None:
        ours["MCP_TOOL_TIMEOUT"] = str(spec.mcp_tool_timeout_ms)
    # A nested agent that believes that it runs inside of another refuses to start.
    base = {name: value for name, value in inherited.items() if name != "CLAUDECODE"}
    env = {**(base if spec.inherit_env else {}), **ours, **spec.env}
    env |= _git_settings(env)
    for name in (*spec.unset, *(("ANTHROPIC_API_KEY",) if spec.remove_api_key else ())):
        env.pop(name, None)
    env.setdefault("PATH", os.defpath)
    for name, value in env.items():
        if not name or "=" in name or "\0" in f"{name}{value}":
            raise InvalidLaunch(f"not a variable of an environment: {name!r}")
        if not isinstance(value, str):
            raise InvalidLaunch(f"the variable {name} must be text, not {value!r}")
    # An agent that runs below another one belongs to both.
    above = inherited.get(MARKER)
    return {**env, MARKER: f"{above}/{launch}" if above else launch}


def _git_settings(env: Mapping[str, str]) -> dict[str, str]:
    """One more setting for git: no folder is a repository only because it has a repository's files
    in it. Whoever could write them could have git run anything."""
    count = env.get("GIT_CONFIG_COUNT", "0")
    if not count.isdecimal():
        return {}  # git will say so
    number = int(count)
    return {
        "GIT_CONFIG_COUNT": str(number + 1),
        f"GIT_CONFIG_KEY_{number}": "safe.bareRepository",
        f"GIT_CONFIG_VALUE_{number}": "explicit",
    }


#: What marks every process of a launch.
MARKER = "BRIDLE_LAUNCH"
