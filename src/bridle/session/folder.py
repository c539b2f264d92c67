"""What a folder would bring to an agent by its own settings, found before anything is started.

Settings of a cloned repo may hold commands to run, rights, an environment with another server for
the key, MCP servers. Until somebody has said that they trust it, all of that is kept out and only
the text of its CLAUDE.md is passed along.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ..errors import InvalidLaunch, InvalidPolicy
from ..policy.files import parse_settings
from ..policy.rules import Rule
from ..process.spec import LaunchSpec

#: Settings that give nothing: all others are told. (Of permissions, what only takes rights away.)
HARMLESS = frozenset(("$schema", "includeCoAuthoredBy", "attribution", "spinnerTipsEnabled"))
HARMLESS_PERMISSIONS = frozenset(("deny", "ask"))

_SETTINGS = (".claude/settings.json", ".claude/settings.local.json")
_FOLDERS = ("agents", "commands", "hooks", "skills", "plugins", "output-styles", "workflows")
_INSTRUCTIONS = ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md")
MAX_INSTRUCTIONS = 100_000
MAX_FILES = 1_000
MAX_DEPTH = 60
TOO_MUCH = "more than can be looked at"

_log = logging.getLogger("bridle.session")


class Brought(Struct, frozen=True):
    """Something that a folder brings: what it is, in which file, and its words."""

    what: str
    file: str
    words: str = ""

    def __str__(self) -> str:
        return f"{self.what} ({self.file}){f': {self.words}' if self.words else ''}"


class Survey(Struct, frozen=True):
    """What was found. `digest` changes with every file that is in it: who trusts it trusts that."""

    folder: str
    brings: tuple[Brought, ...]
    digest: str
    #: The text of its CLAUDE.md files.
    instructions: str = ""
    #: What its settings deny, or want asked: that holds, trusted or not.
    rules: tuple[Rule, ...] = ()

    def is_same(self, other: Survey) -> bool:
        """Whether nothing has changed since."""
        return (self.folder, self.digest) == (other.folder, other.digest) and self.digest != ""


def survey(folder: str | os.PathLike[str] = ".") -> Survey:
    """Look at what this folder, and those above it, would bring. Nothing of it is run."""
    if not Path(folder).is_dir():
        raise InvalidLaunch(f"{folder} is no folder")
    return survey_of(folder)


def survey_of(folder: str | os.PathLike[str]) -> Survey:
    """The same; a folder that is not there brings nothing, and its launch will say so."""
    real = Path(folder).resolve()
    digest = hashlib.sha256()
    brings: list[Brought] = []
    rules: list[Rule] = []
    for above in (real, *real.parents):
        if above == Path.home().resolve():
            break  # from here on it is the user's own
        for file, found in _of_folder(above):
            brings += found
            rules += _rules(file) if file.parent.name == ".claude" else []
            name = os.path.relpath(file, real)
            digest.update(f"{name}\0{_hash(file)}\0".encode("utf-8", "surrogateescape"))
    # What can't be looked at to its end can't be trusted either.
    is_whole = not any(brought.what == TOO_MUCH for brought in brings)
    seen = digest.hexdigest() if is_whole else ""
    return Survey(str(real), tuple(brings), seen, _instructions(real), tuple(rules))


def kept_out(spec: LaunchSpec, found: Survey) -> LaunchSpec:
    """The launch without what the folder brings: the user's settings alone."""
    given = spec.append_system_prompt
    texts = [text for text in (given, found.instructions) if text]
    return msgspec.structs.replace(
        spec,
        setting_sources=("user",),
        append_system_prompt="\n\n".join(texts) if texts else None,
    )


def _of_folder(folder: Path) -> Iterator[tuple[Path, list[Brought]]]:
    for name in _SETTINGS:
        if _is_there(file := folder / name):
            yield file, _of_settings(file)
    if _is_there(file := folder / ".mcp.json"):
        yield file, [Brought("MCP servers", str(file), ", ".join(_servers(file)))]
    for name in _FOLDERS:
        files = _files(folder / ".claude" / name)
        for file in files[:MAX_FILES]:
            yield file, [Brought(name, str(file))]
        if len(files) > MAX_FILES:
            yield folder, [Brought(TOO_MUCH, str(folder / ".claude" / name))]


def _is_there(path: Path) -> bool:
    """What we may not look at, the CLI may not either: it is the same user."""
    try:
        return path.exists()
    except OSError:
        return False


def _files(folder: Path) -> list[Path]:
    """Also those behind links: the CLI follows them."""
    found: list[Path] = []
    for above, folders, names in os.walk(folder, followlinks=True):
        folders.sort()
        found += [Path(above) / name for name in sorted(names)]
        if above.count("/") > MAX_DEPTH:
            found += [folder] * MAX_FILES  # links in a circle, perhaps
        if len(found) > MAX_FILES:
            break
    return found


def _rules(file: Path) -> list[Rule]:
    """What its settings deny or want asked; what can't be read is told elsewhere."""
    try:
        rules = parse_settings(file.read_text(), str(file)) if file.suffix == ".json" else []
    except (OSError, UnicodeDecodeError, InvalidPolicy) as error:
        _log.warning("the rules of %s are not used: %s", file, error)
        return []
    return [rule for rule in rules if rule.behavior != "allow"]


def _of_settings(file: Path) -> list[Brought]:
    settings = _json(file)
    if not isinstance(settings, dict):
        return [Brought("settings that can't be read", str(file))]
    found = [
        Brought(key, str(file), _words(value))
        for key, value in settings.items()
        if key not in HARMLESS and key != "permissions"
    ]
    permissions = settings.get("permissions", {})
    if not isinstance(permissions, dict):
        return [*found, Brought("permissions that can't be read", str(file))]
    found += [
        Brought(f"permissions.{key}", str(file), _words(value))
        for key, value in permissions.items()
        if key not in HARMLESS_PERMISSIONS
    ]
    return found


def _servers(file: Path) -> list[str]:
    config = _json(file)
    servers = config.get("mcpServers") if isinstance(config, dict) else None
    if not isinstance(servers, dict):
        return ["can't be read"]
    return [f"{name} {_words(server)}" for name, server in servers.items()]


def _json(file: Path) -> Any:
    try:
        return msgspec.json.decode(file.read_bytes())
    except (OSError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def _words(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 200 else f"{text[:199]}…"


def _hash(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        return f"can't be read: {error.errno}"


def _instructions(folder: Path) -> str:
    """CLAUDE.md of the folder and of those above it in its repository, the outermost first."""
    texts: list[str] = []
    for above in reversed(_in_repository(folder)):
        for name in _INSTRUCTIONS:
            file = above / name
            try:
                text = file.read_text(errors="replace").strip()
            except OSError:
                continue
            if text:
                texts.append(f"Contents of {file} (instructions of the project):\n\n{text}")
    return "\n\n".join(texts)[:MAX_INSTRUCTIONS]


def _in_repository(folder: Path) -> Sequence[Path]:
    folders = [folder]
    for above in (folder, *folder.parents):
        if above not in folders:
            folders.append(above)
        if _is_there(above / ".git"):
            return folders
    return [folder]
