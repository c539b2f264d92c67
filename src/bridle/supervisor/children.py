"""What an agent may make of a session below itself: of what it has, a part.

Owns which options it may choose, what the child has of its parent, and where "wider" begins. What
the child may do then is judged call by call, under those above it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from ..errors import InvalidLaunch, InvalidPolicy, WiderThanParent
from ..policy.paths import is_inside
from ..policy.policy import Policy
from ..policy.presets import (
    NAMES,
    PRESET_OF_MODE,
    STRICTEST_FIRST,
    WIDE_MODES,
    Preset,
    is_wider,
)
from ..process.spec import LaunchSpec, SettingSource
from ..session.restrictions import restricting_settings
from ..views.stream import Ceiling
from .delegations import folders_of
from .policies import Named, PolicyGiven
from .record import SessionRecord

#: How a CLI is run: the child's is run as its parent's.
INHERITED = (
    *("command", "router", "containment", "inherit_env", "unset", "remove_api_key", "entrypoint"),
    *("file_checkpointing", "session_state_events", "model"),
    # What these leave out or forbid to the parent, they do to the child.
    *("extra_args", "plugin_dirs", "agent", "builtin_tools"),
)
#: The least of what the parent has and the agent has chosen.
_LEAST = ("max_turns", "max_budget_usd")
#: These say which conversation it is, and a child's is its own.
_CONVERSATIONS = frozenset(
    (
        *("--resume", "-r", "--continue", "-c", "--session-id", "--fork-session"),
        *("--resume-session-at", "--from-pr", "--teleport"),
    )
)
#: What an agent may choose. All else is for people: what is run, what it loads, where it writes.
CHOSEN = frozenset(
    (
        *("model", "fallback_model", "system_prompt", "append_system_prompt", "thinking"),
        *("max_thinking_tokens", "effort", "json_schema", "builtin_tools", "allowed_tools"),
        *("disallowed_tools", "permission_mode", "add_dirs", "max_turns", "max_budget_usd"),
        *("partial_messages", "replay_user_messages"),
    )
)
#: What the policy decides in place of the CLI.
_OF_POLICY = ("allowed_tools",)
#: Where nobody has such a name, people mean a session whose id begins so.
_LIKE_AN_ID = re.compile(r"[0-9a-f]{4,8}|[0-9a-f]{8}-[0-9a-f-]*", re.IGNORECASE)


class Standing(Struct, frozen=True):
    """What a parent has to give: its record, its policy in the strictest form that holds now."""

    record: SessionRecord
    policy: Policy

    @property
    def ceiling(self) -> Ceiling:
        """The bounds that it sets for those below it."""
        record = self.record
        return Ceiling(
            session=record.id,
            policy=self.policy.digest,
            guarded=self.policy.files,
            folder=record.folder,
            also=folders_of(record),
            homes=record.homes,
        )


def check_child_name(name: str) -> None:
    """That people can read it on their screens, write it, and take it for no id."""
    is_plain = name.isprintable() and "/" not in name and name not in (".", "..")
    if not is_plain or name != name.strip():
        raise InvalidLaunch("a name is in printable characters, without a slash or spaces around")
    if _LIKE_AN_ID.fullmatch(name):
        raise InvalidLaunch(f"the name {name!r} looks like the beginning of an id: add a word")


def child_folder(given: str | os.PathLike[str], parent: SessionRecord) -> str:
    """Where the child works: inside of its parent's folders, with symbolic links followed."""
    return _inside("working folder", given, parent)


def child_spec(
    options: Mapping[str, Any], parent: SessionRecord, *, is_trusted: bool
) -> dict[str, Any]:
    """Its launch: how its parent is run, and what the agent has chosen. `is_trusted`: whether the
    parent's CLI reads what its folder brings."""
    for name in options:
        if name not in CHOSEN:
            raise InvalidLaunch(f"{name} is not for an agent to choose; a person may, at a start")
    kept = {name: value for name, value in parent.spec.items() if name in INHERITED}
    chosen = {name: value for name, value in options.items() if value is not None}
    _check_tools(chosen.get("builtin_tools"), parent)
    for name in _LEAST:
        if found := [one[name] for one in (parent.spec, chosen) if one.get(name) is not None]:
            chosen[name] = min(found)
    if folders := chosen.get("add_dirs"):
        chosen["add_dirs"] = [_inside("further folder", one, parent) for one in folders]
    return {**kept, **chosen, **closed(parent, is_trusted=is_trusted)}


def closed(parent: SessionRecord, *, is_trusted: bool) -> dict[str, Any]:
    """What its CLI is to read: no settings of a folder and no MCP servers beside our own; of the
    user and of the launch, what the parent's reads, with what keeps that in its sandbox."""
    spec = LaunchSpec(cwd=parent.folder, **parent.spec)
    conversation = next(filter(_is_conversation, spec.extra_args), "")
    if conversation:
        words = f"its parent was started with {conversation} in extra_args"
        raise InvalidLaunch(f"{words}: with such words it can't have children")
    _check_agent(parent)
    if spec.setting_sources is None:
        every: tuple[SettingSource, ...] = ("user", "project", "local")
        spec = structs.replace(spec, setting_sources=every if is_trusted else ("user",))
    sources = spec.setting_sources or ()
    told: dict[str, Any] = {"setting_sources": [one for one in sources if one == "user"]}
    if settings := restricting_settings(spec):
        told["settings"] = settings
    return {**told, "strict_mcp_config": True}


def _is_conversation(word: str) -> bool:
    glued = word[:2] in ("-r", "-c") and len(word) > len("-r")
    return glued or word.partition("=")[0] in _CONVERSATIONS


def _check_agent(parent: SessionRecord) -> None:
    """A CLI that does not find an agent goes on as its usual self, with all tools."""
    agent, homes = parent.spec.get("agent"), parent.homes
    claude = Path(homes.get("claude_home") or f"{homes.get('home') or Path.home()}/.claude")
    if agent and not (claude / "agents" / f"{agent}.md").is_file():
        words = f"its parent runs as the agent {agent!r}, which is none of the user's own"
        raise InvalidLaunch(f"{words}: a child could not be held to it")


def _check_tools(chosen: Sequence[str] | None, parent: SessionRecord) -> None:
    has: Sequence[str] | None = parent.spec.get("builtin_tools")
    for tool in chosen or ():
        if has is not None and tool not in has:
            raise WiderThanParent("tool", tool, ", ".join(has) or "none")


def launched_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What the child's CLI itself is told: what its policy decides, it does not hear."""
    kept = {name: value for name, value in spec.items() if name not in _OF_POLICY}
    if kept.get("permission_mode") in ("bypassPermissions", "auto"):
        del kept["permission_mode"]
    return kept


def child_policy(given: PolicyGiven | None, mode: str | None, widest: Preset) -> Policy | Named:
    """The policy that an agent has chosen; of its own, it is to be asked."""
    wanted = WIDE_MODES.get(mode or "")
    if wanted and is_wider(wanted, widest):
        raise WiderThanParent("permission mode", str(mode), widest)
    if given is None:
        wanted = wanted or PRESET_OF_MODE.get(mode or "")
        return Policy(wanted) if wanted else Policy(min("ask", widest, key=STRICTEST_FIRST.index))
    if isinstance(given, str | os.PathLike):
        for name in NAMES:
            if given == name:
                given = Policy(name)
                break
        else:
            presets = ", ".join(NAMES)
            reason = f"an agent names a preset ({presets}), or a policy that a person has stored"
            raise InvalidPolicy(str(given), None, reason)
    preset = given.policy.preset if isinstance(given, Named) else given.preset
    if is_wider(preset, widest):
        raise WiderThanParent("preset", preset, widest)
    return given


def _inside(what: str, given: str | os.PathLike[str], parent: SessionRecord) -> str:
    """The folder as it really is, so that what it is called later changes nothing."""
    if "\0" in str(given):
        raise InvalidLaunch(f"the {what} {str(given)!r} can't be a path")
    found = os.path.realpath(Path(parent.folder) / given)
    held = (parent.folder, *folders_of(parent))
    if not any(is_inside(found, os.path.realpath(folder)) for folder in held):
        raise WiderThanParent(what, str(given), " or ".join(held))
    if not Path(found).is_dir():
        raise InvalidLaunch(f"there is no folder {found}")
    return found
