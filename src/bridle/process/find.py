"""Which program is the CLI, and of which version.

Owns the search (explicit, BRIDLE_CLAUDE, PATH, npx) and what the disk tells of a version; does not
start anything. Only where the disk tells nothing is the program asked (`version`).
"""

from __future__ import annotations

import logging
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from ..errors import CliNotFound, CliTooOld, InvalidLaunch
from ..protocol.capabilities import TESTED_VERSIONS, parse_version
from .spec import LaunchSpec

Source: TypeAlias = Literal["explicit", "BRIDLE_CLAUDE", "PATH", "router", "npx"]

_log = logging.getLogger("bridle.process")

VARIABLE = "BRIDLE_CLAUDE"
PACKAGE = "@anthropic-ai/claude-code"
ROUTER = "@musistudio/claude-code-router"
PINNED = TESTED_VERSIONS[-1]
OLDEST = (2, 0, 0)
INSTALL = (
    f"Install it with: npm install -g {PACKAGE}   (or see https://claude.com/claude-code), "
    f"or name the program in {VARIABLE} or in `command`."
)


class FoundCli(Struct, frozen=True):
    """The program that will be run: its words, how it was found, and its version where known."""

    command: tuple[str, ...]
    source: Source
    version: str | None = None

    @property
    def path(self) -> str:
        return self.command[0]


def find_cli(spec: LaunchSpec, env: Mapping[str, str]) -> FoundCli:
    """Look for the CLI as `spec` and the child's own environment say."""
    if spec.command is not None:
        return _given(spec.command, "explicit", env)
    if spec.router is not None:
        npx = _npx(env, "to run claude-code-router")
        return FoundCli((*npx, f"{ROUTER}@{spec.router}", "code"), "router")
    if env.get(VARIABLE):
        return _given(env[VARIABLE], "BRIDLE_CLAUDE", env)
    found = which("claude", env)
    if found:
        return FoundCli((found,), "PATH", version_on_disk(found))
    npx = _npx(env, "to run Claude Code without installing it")
    _log.warning(
        "no claude on the PATH: npx runs %s@%s, which it may have to fetch", PACKAGE, PINNED
    )
    return FoundCli((*npx, f"{PACKAGE}@{PINNED}"), "npx", PINNED)


def check_age(found: FoundCli) -> FoundCli:
    """Refuse a CLI that is too old to be controlled."""
    version = parse_version(found.version)
    if version and version < OLDEST:
        least = ".".join(map(str, OLDEST))
        raise CliTooOld(
            f"{shlex.join(found.command)} is Claude Code {found.version}; Bridle needs {least} "
            f"or newer. {INSTALL}"
        )
    return found


def version_on_disk(program: str) -> str | None:
    """The version that the program's place tells: its npm package, or a folder of versions."""
    path = Path(program).resolve()
    if parse_version(path.name):
        return path.name
    for folder in (path.parent, path.parent.parent):
        try:
            package = msgspec.json.decode((folder / "package.json").read_bytes(), type=_Package)
        except (OSError, msgspec.DecodeError):
            continue
        if package.name.startswith(PACKAGE):
            return package.version
    return None


def which(program: str, env: Mapping[str, str]) -> str | None:
    """Where a program is, for whoever has this environment. Never in the current folder, which an
    agent may write to, though the PATH may name it."""
    import shutil  # here, because it brings half of the standard library with it

    folders = env.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(folder for folder in folders if os.path.isabs(folder))  # noqa: PTH117
    return shutil.which(program, path=path)


def version_in(output: str) -> str | None:
    """The version in what `--version` printed."""
    found = re.search(r"\d+\.\d+\.\d+\S*", output)
    return found[0] if found else None


class _Package(Struct):
    name: str
    version: str


def _given(command: str | Sequence[str], source: Source, env: Mapping[str, str]) -> FoundCli:
    try:
        words = shlex.split(command) if isinstance(command, str) else [str(w) for w in command]
    except ValueError as error:
        raise InvalidLaunch(f"the command {command!r} can't be split: {error}") from error
    if not words or not words[0]:
        raise InvalidLaunch("the command is empty: give a program, such as 'claude'")
    program = which(words[0], env)
    if program is None:
        raise CliNotFound(f"there is no program {words[0]!r} ({source}). {INSTALL}")
    # `node …/cli.js` has its package beside the script.
    places = [program, *(word for word in words[1:] if Path(word).is_absolute())]
    version = next(filter(None, map(version_on_disk, places)), None)
    return FoundCli((program, *words[1:]), source, version)


def _npx(env: Mapping[str, str], why: str) -> tuple[str, ...]:
    npx = which("npx", env)
    if npx is None:
        raise CliNotFound(f"there is no `claude` on the PATH, and no npx {why}. {INSTALL}")
    # Else it would take a package or settings of the agent's folder, which the agent can write.
    return (npx, "--prefix=/", "-y")
