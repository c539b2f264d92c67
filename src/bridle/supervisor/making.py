"""What a supervised session is made of: its launch, its policy and desk, its handlers.

Owns how a record becomes these, for a new process and for one that runs already; starts nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ..approvals.desk import Desk
from ..approvals.seat import seated
from ..approvals.trust import TrustedFolders
from ..errors import InvalidLaunch
from ..policy.force import InForce
from ..policy.rules import Rule, parse_rule
from ..process.spec import LaunchSpec, StrPath
from ..session.folder import Survey, bytes_of, instructed, survey_of
from ..session.gate import Gate
from ..session.ground import with_repositories
from ..session.hooks import Hooks
from ..session.making import handlers_of, handshake_seconds, hello, launched
from ..session.options import SessionOptions
from ..session.policies import homes_of
from ..session.repository import git_runs
from ..session.responder import Handlers
from ..session.tools import DEFAULT_SERVER, Tools, ToolServers
from ..session.transcripts import list_sessions
from .delegations import SERVER, above_of, ground_under, pinned
from .means import Means
from .record import SessionRecord

#: Fields of a launch that belong to the supervisor.
OURS = (
    "cwd",
    "env",
    "resume",
    "fork_session",
    "session_id",
    "continue_last",
    "session_persistence",
)


class Made(Struct):
    """All that an `Agent` needs beside its process."""

    means: Means
    record: SessionRecord
    launch: str
    spec: LaunchSpec
    desk: Desk
    handlers: Handlers
    options: SessionOptions
    gate: Gate


def stored_spec(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a launch as they are kept, checked."""
    for name in OURS:
        if name in options:
            hint = "; give it beside the launch (bridle start --resume)" if name == "resume" else ""
            raise InvalidLaunch(f"{name} can't be given here: the supervisor sets it{hint}")
    unknown = sorted(set(options) - set(LaunchSpec.__struct_fields__))
    if unknown:
        raise InvalidLaunch(f"a launch has no option {unknown[0]!r}: docs/sessions.md has them all")
    kept: dict[str, Any] = msgspec.to_builtins(dict(options), enc_hook=str)
    return kept


def check_servers(spec: LaunchSpec) -> None:
    """That no MCP server of somebody else goes by the name of ours, by which agents run others."""
    if any(word.partition("=")[0] == "--mcp-config" for word in spec.extra_args):
        raise InvalidLaunch("with loopback give MCP servers as mcp_config, not in extra_args")
    given = spec.mcp_config
    configs = [given] if isinstance(given, str | Mapping) else given or ()
    for config in configs:
        for name in _server_names(config, spec.cwd or "."):
            told = re.sub(r"[^A-Za-z0-9_-]", "_", name)  # as the CLI writes it into names of tools
            if f"{told}__".startswith(f"{SERVER}__"):  # as its tools would: also `bridle_`
                raise InvalidLaunch(f"an MCP server can't be named {name!r} here: that is Bridle's")


def check_conversation(id_: str, spec: LaunchSpec) -> None:
    """That the CLI has a conversation of this id in the folder, to go on with."""
    config = homes_of(spec)["claude_home"] or None
    if all(one.id != id_ for one in list_sessions(spec.cwd or ".", config)):
        words = f"Claude Code has no conversation {id_[:100]!r} in {spec.cwd}"
        raise InvalidLaunch(f"{words}; `bridle import` lists those there are")


def _server_names(config: object, folder: StrPath) -> list[str]:
    """Those in a configuration, or in its file; what can't be read the CLI does not read either."""
    if isinstance(config, str):
        try:
            is_text = config.lstrip().startswith("{")
            text = config if is_text else bytes_of(Path(folder) / config)
            config = msgspec.json.decode(text)
        except (OSError, ValueError, RecursionError):
            return []
    servers = config.get("mcpServers") if isinstance(config, Mapping) else None
    return list(map(str, servers)) if isinstance(servers, Mapping) else []


def spec_of(means: Means, record: SessionRecord) -> LaunchSpec:
    """How a session is launched, with its secrets."""
    return LaunchSpec(cwd=record.folder, env=means.variables(record), **record.spec)


async def make_new(means: Means, record: SessionRecord, launch: str, found: Survey) -> Made:
    """For a process that is to be started."""
    spec = spec_of(means, record)
    if record.loopback:  # looked at before, but what is in a file may be another thing by now
        await asyncio.to_thread(check_servers, spec)
    gate, desk = await gate_of(means, record, launch)
    trust = found if await _is_trusted(means, found) else None
    spec, withheld = launched(spec, gate, trust)
    if record.ceilings:  # an agent has made it: it reads nothing of a folder, and no CLAUDE.md
        spec = instructed(spec, found)
    made = _made(means, record, launch, spec, gate, desk)
    made.options.withheld = withheld
    return made


async def make_again(means: Means, record: SessionRecord, launch: str) -> Made:
    """For a process that runs: what it was started with can't be changed any more. Its gate waits
    to be told that all of the past was."""
    spec = LaunchSpec(cwd=record.folder, **record.spec)
    gate, desk = await gate_of(means, record, launch)
    if rules := _rules(record):
        gate.policy.add_rules(rules)
    if found := await _trusted(means, record):
        gate.policy.trust(map(str, found.git))
    gate.is_in_past = True
    return _made(means, record, launch, spec, gate, desk)


async def _trusted(means: Means, record: SessionRecord) -> Survey | None:
    """What the folder brings, if somebody trusts it and git would run something of it."""
    if not await asyncio.to_thread(git_runs, record.folder):
        return None
    found = await asyncio.to_thread(survey_of, record.folder)
    return found if await _is_trusted(means, found) else None


async def is_folder_trusted(means: Means, folder: str) -> bool:
    """Whether a CLI that is launched there reads what the folder brings."""
    return await _is_trusted(means, await asyncio.to_thread(survey_of, folder))


async def _is_trusted(means: Means, found: Survey) -> bool:
    return await TrustedFolders(means.journal, means.now).is_trusted(found.folder, found.digest)


def _rules(record: SessionRecord) -> list[Rule]:
    """What the folder's settings had to say when it was started: they may have changed since."""
    rules = record.launch.rules if record.launch else ()
    return [parse_rule(text, behavior, record.folder) for behavior, text in rules]  # type: ignore[arg-type]


async def gate_of(means: Means, record: SessionRecord, launch: str) -> tuple[Gate, Desk]:
    """What judges a session, and whom it asks."""
    # The record may change meanwhile.
    digest, guarded = record.policy, record.guarded
    policy = await pinned(means, digest, guarded)
    ground = with_repositories(ground_under(means, record, policy))
    force = InForce(policy, ground, await above_of(means, record))
    desk = await seated(
        means.approvals,
        force,
        session=record.id,
        launch=launch,
        lineage=record.lineage,
        has_rules=record.has_rules,
    )
    return Gate(force, desk), desk


def _tools(means: Means, record: SessionRecord, launch: str) -> Tools:
    """Those that the user gives it, and ours, if it is to run others."""
    given, ours = means.tools(record), means.loopback(record, launch)
    if not ours:
        return given
    groups = given if isinstance(given, Mapping) else {DEFAULT_SERVER: given} if given else {}
    return {**groups, **ours}


def _made(
    means: Means,
    record: SessionRecord,
    launch: str,
    spec: LaunchSpec,
    gate: Gate,
    desk: Desk,
) -> Made:
    servers = ToolServers(_tools(means, record, launch))
    hooks = means.hooks(record) or Hooks()
    options = SessionOptions(
        initialize=hello(servers, None),
        handshake_seconds=handshake_seconds(spec),
        shows_replays=spec.replay_user_messages,
    )
    handlers = handlers_of(desk, hooks, servers, None, None, gate)
    return Made(means, record, launch, spec, desk, handlers, options, gate)
