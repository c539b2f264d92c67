"""What a CLI answers and what it never answers, as data: by version and by what it says itself.

Owns the table; `docs/conformance.md` shows the runs that fill it. A version between two tested
ones is judged by the older: what it may answer is `unknown`. Every request needs a timeout anyway.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from .answers import Initialized
from .requests import OutboundRequest, RewindFiles
from .system import Init

Support: TypeAlias = Literal["yes", "no", "unknown"]
Version: TypeAlias = tuple[int, ...]

Behaviour: TypeAlias = Literal[
    "cancels are understood",
    "edited plans come with the answer",
    "hooks may block on failure",
    "plan mode doubts a hook's allow",
    "settings can't remove hooks",
    "prompts without a query",
    "queued prompts are merged",
    "rewind dry run",
    "unknown requests are answered",
]

#: The versions that the conformance suite drives, oldest first.
TESTED_VERSIONS: tuple[str, ...] = ("2.0.75", "2.1.12", "2.1.325")


def parse_version(text: str | None) -> Version | None:
    """`2.1.12 (Claude Code)` -> (2, 1, 12); None where there is no version in it."""
    found = re.match(r"\s*v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})", text or "")
    return tuple(int(part) for part in found.groups()) if found else None


_TESTED: list[Version] = [version for text in TESTED_VERSIONS if (version := parse_version(text))]
OLDEST, MIDDLE, NEWEST = (2, 0, 75), (2, 1, 12), (2, 1, 325)

#: The oldest tested version that answers each request.
ANSWERED_SINCE: dict[str, Version] = {
    "initialize": OLDEST,
    "interrupt": OLDEST,
    "set_permission_mode": OLDEST,
    "set_model": OLDEST,
    "set_max_thinking_tokens": OLDEST,
    "rewind_files": OLDEST,
    "mcp_status": OLDEST,
    "mcp_set_servers": OLDEST,
    "mcp_reconnect": NEWEST,
    "mcp_toggle": NEWEST,
    "get_context_usage": NEWEST,
    "stop_task": NEWEST,
    "background_tasks": NEWEST,
    "get_task_output": NEWEST,
    "cancel_async_message": NEWEST,
    "get_settings": NEWEST,
    "apply_flag_settings": NEWEST,
    "list_permission_rules": NEWEST,
    "reload_plugins": NEWEST,
    "reload_skills": NEWEST,
    "rename_session": NEWEST,
    "generate_session_title": NEWEST,
    "get_binary_version": NEWEST,
    "get_session_cost": NEWEST,
    "get_usage": NEWEST,
    "end_session": NEWEST,
}

#: The oldest tested version that does each of these; older ones do something else.
BEHAVES_SINCE: dict[Behaviour, Version] = {
    "rewind dry run": MIDDLE,
    "cancels are understood": NEWEST,
    "unknown requests are answered": NEWEST,
    "edited plans come with the answer": NEWEST,
    "hooks may block on failure": NEWEST,
    "plan mode doubts a hook's allow": NEWEST,
    "settings can't remove hooks": NEWEST,
    "prompts without a query": NEWEST,
    "queued prompts are merged": NEWEST,
}


class Capabilities(Struct, frozen=True):
    """What is known of one CLI process."""

    version: str | None = None
    initialized: Initialized | None = None
    #: What the CLI announces by itself (`capabilities` of initialize and of `system/init`).
    announced: frozenset[str] = frozenset()

    def answers(self, subtype: str) -> Support:
        """Whether this CLI answers such a request; one that does not stays silent for ever."""
        return self._since(ANSWERED_SINCE.get(subtype))

    def does(self, behaviour: Behaviour) -> Support:
        """Whether this CLI has one of the behaviours of BEHAVES_SINCE."""
        return self._since(BEHAVES_SINCE[behaviour])

    @property
    def hook_on_failure(self) -> bool:
        """Whether hooks may be registered with `onFailure`."""
        return bool(self.initialized and self.initialized.hook_on_failure_supported)

    @property
    def keeps_commands(self) -> bool:
        """Whether its shell is given each command as it stands. Up to 2.1.85 some are rewritten.

        That it announces what it can do shows that it is newer; a version number is only a claim.
        """
        return bool(self.announced)

    def hazard(self, request: OutboundRequest) -> str | None:
        """Why this request must not be written to this CLI; None where it may."""
        is_dry_run = isinstance(request, RewindFiles) and request.dry_run is True
        if is_dry_run and self.does("rewind dry run") != "yes":
            return (
                f"Claude Code {self.version or 'of unknown version'} may ignore dry_run and "
                "rewind for real; use 2.1.12 or newer"
            )
        return None

    def learn(self, version: str | None) -> Capabilities:
        """A version that the CLI told. Where it has told two, the older one counts."""
        known, told = parse_version(self.version), parse_version(version)
        if not version or (known and (told is None or told >= known)):
            return self
        return msgspec.structs.replace(self, version=version)

    def with_initialized(self, initialized: Initialized) -> Capabilities:
        known = self.learn(initialized.claude_code_version)
        announced = known.announced.union(initialized.capabilities)
        return msgspec.structs.replace(known, initialized=initialized, announced=announced)

    def with_init(self, init: Init) -> Capabilities:
        known = self.learn(init.claude_code_version)
        if known.announced.issuperset(init.capabilities):
            return known
        return msgspec.structs.replace(known, announced=known.announced.union(init.capabilities))

    def _since(self, since: Version | None) -> Support:
        version = parse_version(self.version)
        if version is None or since is None:
            return "unknown"
        if version >= since:
            return "yes"
        # Between the newest version that was seen without it and the oldest seen with it.
        without = [tested for tested in _TESTED if tested < since]
        return "unknown" if not without or version > without[-1] else "no"
