"""What a folder would bring to an agent by its own settings, found before anything is started.

Settings of a cloned repo may hold commands to run, rights, an environment with another server for
the key, MCP servers. Until somebody has said that they trust it, all of that is kept out and only
the text of its CLAUDE.md is passed along.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from ..errors import InvalidLaunch, InvalidPolicy
from ..policy.files import parse_settings
from ..policy.rules import Rule
from ..process.spec import LaunchSpec
from .repository import GitRuns, git_runs

#: Settings that give nothing: all others are told. (Of permissions, what only takes rights away.)
HARMLESS = frozenset(("$schema", "includeCoAuthoredBy", "attribution", "spinnerTipsEnabled"))
HARMLESS_PERMISSIONS = frozenset(("deny", "ask"))

_SETTINGS = (".claude/settings.json", ".claude/settings.local.json")
_FOLDERS = ("agents", "commands", "hooks", "skills", "plugins", "output-styles", "workflows")
_INSTRUCTIONS = ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md")
MAX_INSTRUCTIONS = 100_000
#: Of settings, and of any other file that it brings.
MAX_SETTINGS = 1_000_000
MAX_SIZE = 16_000_000
MAX_FILES = 1_000
MAX_DEPTH = 60
#: Where no repository can be; git tells of it.
NO_GIT = "/dev/null/Bridle has switched git off here: see `bridle trust`"
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
    #: What git would run there by the repository's own settings; in `brings` as well.
    git: tuple[GitRuns, ...] = ()

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
            try:
                hashed = _hash(file)
            except _NotToRead:
                brings.append(Brought(TOO_MUCH, str(file)))
                continue
            digest.update(f"{name}\0{hashed}\0".encode("utf-8", "surrogateescape"))
    git = git_runs(str(real))
    for runs in git:
        brings.append(Brought(runs.what, runs.file, runs.words))
        digest.update(f"{runs}\0".encode("utf-8", "surrogateescape"))
    # What can't be looked at to its end can't be trusted either.
    is_whole = not any(brought.what == TOO_MUCH for brought in brings)
    seen = digest.hexdigest() if is_whole else ""
    return Survey(str(real), tuple(brings), seen, _instructions(real), tuple(rules), git)


def without_git(spec: LaunchSpec, found: Survey) -> LaunchSpec:
    """The launch with git switched off, if it would run what the folder brings. Some CLIs run
    `git status` by themselves, and no gate sees that."""
    if not any(runs.is_unasked for runs in found.git):
        return spec
    return msgspec.structs.replace(spec, env={"GIT_DIR": NO_GIT, **spec.env})


def kept_out(spec: LaunchSpec, found: Survey) -> LaunchSpec:
    """The launch without what the folder brings: the user's settings alone."""
    return msgspec.structs.replace(instructed(spec, found), setting_sources=("user",))


def instructed(spec: LaunchSpec, found: Survey) -> LaunchSpec:
    """The launch with the folder's words to agents, which a CLI reads only with its settings."""
    texts = [text for text in (spec.append_system_prompt, found.instructions) if text]
    joined = "\n\n".join(texts) if texts else None
    return msgspec.structs.replace(spec, append_system_prompt=joined)


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
        rules = parse_settings(_text(file), str(file)) if file.suffix == ".json" else []
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
        return msgspec.json.decode(bytes_of(file))
    except (OSError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def _words(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 200 else f"{text[:199]}…"


class _NotToRead(OSError):
    """No file of a bounded size: a pipe, a device, a folder; what it gives nobody can know."""


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    """Without waiting for anybody: a pipe would, until somebody writes to it."""
    # Before it is opened, for that alone may do something with a device.
    _check_is_file(file, file.stat())
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    with os.fdopen(os.open(file, flags), "rb") as opened:
        _check_is_file(file, os.fstat(opened.fileno()))
        yield opened


def _check_is_file(file: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _NotToRead(errno.EINVAL, "no file", str(file))


def bytes_of(file: Path, most: int = MAX_SETTINGS) -> bytes:
    """All of a file, without waiting for anybody; OSError if it is none, or larger."""
    with _opened(file) as opened:
        found = opened.read(most + 1)
    if len(found) > most:
        raise _NotToRead(errno.EFBIG, "larger than can be looked at", str(file))
    return found


def _text(file: Path) -> str:
    return bytes_of(file).decode()


def _hash(file: Path) -> str:
    try:
        return hashlib.sha256(bytes_of(file, MAX_SIZE)).hexdigest()
    except _NotToRead:
        raise
    except OSError as error:
        return f"can't be read: {error.errno}"


def _instructions(folder: Path) -> str:
    """CLAUDE.md of the folder and of those above it in its repository, the outermost first."""
    texts: list[str] = []
    for above in reversed(_in_repository(folder)):
        for name in _INSTRUCTIONS:
            file = above / name
            try:
                with _opened(file) as opened:
                    text = opened.read(4 * MAX_INSTRUCTIONS).decode(errors="replace").strip()
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
