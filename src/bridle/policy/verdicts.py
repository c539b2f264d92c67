"""What is asked of a policy, and what it says. Owns the words; judging is `judge`'s work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

Behavior: TypeAlias = Literal["allow", "ask", "deny"]


class Call(Struct, frozen=True):
    """A tool call that is about to be made.

    `mode` is the CLI's permission mode and `cwd` the folder in which its shell is now, where it
    tells them.
    """

    tool: str
    input: Mapping[str, Any]
    mode: str | None = None
    cwd: str = ""


def _as_written(path: str) -> str:
    return path


class Ground(Struct, frozen=True, kw_only=True):
    """Where an agent stands: what its paths mean, and what it must not touch unseen.

    `resolve` gives a path without its symbolic links, and must not fail for one that does not
    exist. It is given, because a policy does no I/O of its own.
    """

    folder: str
    home: str = "/"
    resolve: Callable[[str], str] = _as_written
    #: Folders that the agent may edit beside its own.
    also: tuple[str, ...] = ()
    #: Where the CLI keeps its own settings and plans; `home`/.claude where it is not told.
    claude_home: str = ""
    #: Bridle's own home, and the addresses ("127.0.0.1:8123", a socket's path) of its server.
    bridle_home: str = ""
    #: Where another home of Bridle's usually is.
    usual_home: str = ""
    addresses: tuple[str, ...] = ()
    #: Files that only a person may change, such as the policy that is in force.
    guarded: tuple[str, ...] = ()
    #: The files of the CLI itself: what is written there runs with the agent's next start.
    programs: tuple[str, ...] = ()
    #: MCP servers that are our own: what their tools do is asked where they do it.
    servers: tuple[str, ...] = ()
    #: Whether file names that differ only in case are the same file.
    ignores_case: bool = False
    #: Whether a path is a folder, where that is looked up.
    is_folder: Callable[[str], bool] | None = None
    #: The files that a glob stands for, or some of them, where that is looked up.
    expand: Callable[[str], Sequence[str]] | None = None
    #: The commands that a skill or slash command runs by itself, by its name and its arguments;
    #: None where they can't be known. And those of the skills that a subagent begins with.
    inline_commands: Callable[[str, str], Sequence[str] | None] | None = None
    agent_commands: Callable[[str], Sequence[str] | None] | None = None
    #: What git would run in a folder because the repository there says so, where that is looked
    #: up; and what of it a person has trusted.
    git_runs: Callable[[str], Sequence[str]] | None = None
    trusted: frozenset[str] = frozenset()


class Allowed(Struct, frozen=True, tag="allow"):
    """It may run. `rule` allows it (a rule, or a preset), `source` is where that is written."""

    rule: str
    source: str = ""
    because: str = ""


class Denied(Struct, frozen=True, tag="deny"):
    """It must not run; `because` is what the model is told."""

    rule: str
    source: str = ""
    because: str = ""


class Asked(Struct, frozen=True, tag="ask"):
    """Somebody must say. `guard` names what the laundering guard has seen: then only a person may.

    `notes` are what whoever is asked should know; `cwd` is where the call would be made, for those
    who judge it from elsewhere.
    """

    because: str
    rule: str = ""
    source: str = ""
    guard: str = ""
    notes: tuple[str, ...] = ()
    cwd: str = ""


Verdict: TypeAlias = Allowed | Denied | Asked
