"""What git would run in a folder because the repository there says so: filters, hooks, a monitor.

The settings of a repository are read strictly: a key that is not known to be harmless counts as one
that runs something, and so does a file that can't be read to its end. `git status` alone runs much
of it. Nothing is run here, git neither. Owns what a repository brings; who trusts it is not known.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ..policy.git_settings import is_harmless
from .git_index import looks_into

MAX_CONFIG = 1_000_000
MAX_INDEX = 200_000_000
MAX_HOOKS = 200
MAX_KEPT = 2_000
MAX_SUBMODULES = 200
MAX_DEPTH = 5
#: So many words of a setting may be names of files.
MAX_WORDS = 20

UNREADABLE = "settings that can't be read"
SUBMODULES = "submodules in submodules"
SPARSE = "an index that leaves out folders"
BARE = "a bare repository"


class GitRuns(Struct, frozen=True):
    """Something that git would run. `is_unasked`: also when it is only asked to look."""

    what: str
    file: str
    words: str = ""
    is_unasked: bool = True

    def __str__(self) -> str:
        return f"{self.what} ({self.file}){f': {self.words}' if self.words else ''}"


def git_runs(folder: str) -> tuple[GitRuns, ...]:
    """What git would run in this folder, beside what the user's own settings say."""
    try:
        return tuple(_runs_in(os.path.realpath(folder), 0))
    except (OSError, ValueError) as error:
        return (GitRuns(UNREADABLE, folder, str(error)),)


class _Repository(Struct, frozen=True):
    """Where a repository is: the folder with its files, its own git folder, and the shared one."""

    top: str
    git: str
    common: str
    is_bare: bool = False

    @property
    def is_surely(self) -> bool:
        """Whether git takes it for one, too; else it looks on in the folders above."""
        try:
            head = _bytes(f"{self.git}/HEAD", MAX_CONFIG)
        except (OSError, ValueError):
            return False
        folders = (f"{self.common}/objects", f"{self.common}/refs")
        return _HEAD.match(head) is not None and all(map(os.path.isdir, folders))


_HEAD = re.compile(rb"ref: refs/|[0-9a-f]{40}(?:[0-9a-f]{24})?\n")


def _runs_in(folder: str, depth: int) -> Iterator[GitRuns]:
    if depth > MAX_DEPTH:
        yield GitRuns(SUBMODULES, folder)
        return
    for repository in _repositories_of(folder):
        yield from _runs_of(repository, depth)


def _repositories_of(folder: str) -> Iterator[_Repository]:
    """As git looks for them: here, and in each folder above, up to the first that is one."""
    while True:
        found: list[_Repository] = []
        at = f"{folder.rstrip('/')}/.git"
        if os.path.lexists(at):
            git = at if Path(at).is_dir() else _linked(at)
            found.append(_Repository(folder, git, _common(git)))
        parts = ("HEAD", "objects", "refs"), ("HEAD", "commondir")
        if any(all(os.path.lexists(f"{folder}/{name}") for name in names) for names in parts):
            found.append(_Repository(folder, folder, _common(folder), is_bare=True))
        yield from found
        if folder == "/" or any(repository.is_surely for repository in found):
            return
        folder = os.path.dirname(folder)  # noqa: PTH120 - a hot path


def _linked(file: str) -> str:
    """Of a worktree or a submodule `.git` is a file that says where."""
    text = _bytes(file, MAX_CONFIG).decode("utf-8", "surrogateescape")
    if not text.startswith("gitdir: "):
        raise ValueError(f"{file} names no repository")
    return _from(file.rpartition("/")[0], text[8:].rstrip("\r\n"))


def _common(git: str) -> str:
    try:
        text = _bytes(f"{git}/commondir", MAX_CONFIG).decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return git
    return _from(git, text.rstrip("\r\n"))


def _from(folder: str, path: str) -> str:
    return path if path.startswith("/") else f"{folder}/{path}"


def _runs_of(repository: _Repository, depth: int) -> Iterator[GitRuns]:
    if repository.is_bare:
        yield GitRuns(BARE, repository.git)
    hooks = [f"{repository.common}/hooks"]
    for file in (f"{repository.common}/config", f"{repository.git}/config.worktree"):
        for runs in _settings(file, 0):
            if runs.what == "core.worktree" and _is_own(runs.words, repository):
                continue
            if runs.what == "core.hookspath" and runs.words:
                hooks.append(_from(repository.top, os.path.expanduser(runs.words)))  # noqa: PTH111
            yield _with_programs(runs, repository.top)
    for at in hooks:
        yield from _hooks(at)
    yield from _runs_of_submodules(repository, depth)


def _is_own(worktree: str, repository: _Repository) -> bool:
    """Whether this is where its files are: so it is written down for each submodule."""
    return os.path.realpath(_from(repository.git, worktree)) == os.path.realpath(repository.top)


def _with_programs(runs: GitRuns, top: str) -> GitRuns:
    """With the contents of the files that it names below the top: who trusts it trusts those."""
    words = [runs.words]
    for word in re.split(r"[\s'\"]+", runs.words)[:MAX_WORDS]:
        file = os.path.realpath(_from(top, word)) if word else ""
        if file.startswith(f"{os.path.realpath(top)}/") and os.path.isfile(file):  # noqa: PTH113
            words += _kept(_digest, file)
    return runs if len(words) == 1 else replace(runs, words=" ".join(words))


def _digest(file: str) -> Iterator[str]:
    digest = hashlib.sha256(_bytes(file, MAX_CONFIG)).hexdigest()
    yield f"[{file.rpartition('/')[2]} sha256 {digest}]"


# --- what is read is kept, as long as the file stays the same

_T = TypeVar("_T")
_KEPT: dict[object, tuple[object, tuple[Any, ...]]] = {}


def _kept(read: Callable[[str], Iterator[_T]], file: str) -> tuple[_T, ...]:
    try:
        now = os.stat(file)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return ()
    seal = (now.st_mtime_ns, now.st_ctime_ns, now.st_size, now.st_ino, now.st_mode)
    key = (read, file)
    if (kept := _KEPT.get(key)) is None or kept[0] != seal:
        kept = _KEPT[key] = seal, tuple(read(file))
        if len(_KEPT) > MAX_KEPT:
            del _KEPT[next(iter(_KEPT))]
    return kept[1]


def _bytes(file: str, most: int) -> bytes:
    """All of a regular file; it does not wait for a FIFO."""
    with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:  # noqa: PTH123
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise ValueError(f"{file} is no file")
        found = opened.read(most + 1)
    if len(found) > most:
        raise ValueError(f"{file} is larger than can be looked at")
    return found


# --- hooks

#: git runs it also where it is only asked what has changed.
_UNASKED_HOOKS = frozenset(("post-index-change", "reference-transaction", "fsmonitor-watchman"))


def _hooks(folder: str) -> Iterator[GitRuns]:
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return
    if len(names) > MAX_HOOKS:
        yield GitRuns("more hooks than can be looked at", folder)
        return
    for name in names:
        if not name.endswith(".sample"):
            yield from _kept(_hook, f"{folder}/{name}")


def _hook(file: str) -> Iterator[GitRuns]:
    found = os.stat(file)  # noqa: PTH116
    if stat.S_ISREG(found.st_mode) and found.st_mode & 0o111:
        name = file.rpartition("/")[2]
        words = f"sha256 {hashlib.sha256(_bytes(file, MAX_CONFIG)).hexdigest()}"
        yield GitRuns(f"git hook {name}", file, words, is_unasked=name in _UNASKED_HOOKS)


# --- submodules


def _runs_of_submodules(repository: _Repository, depth: int) -> Iterator[GitRuns]:
    """git looks into each, with what that one's own settings say."""
    for index in _indexes(repository.git):
        for path in _kept(_submodules, index):
            if path is None:
                yield GitRuns(SPARSE, index)
            elif os.path.lexists(f"{repository.top}/{path}/.git"):
                yield from _runs_in(os.path.realpath(f"{repository.top}/{path}"), depth + 1)


def _indexes(git: str) -> Iterator[str]:
    yield f"{git}/index"
    try:
        names = os.listdir(git)  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return
    yield from (f"{git}/{name}" for name in names if name.startswith("sharedindex."))


def _submodules(file: str) -> Iterator[str | None]:
    """Their paths; None for what it does not name."""
    links, is_sparse = looks_into(_bytes(file, MAX_INDEX))
    if is_sparse or len(links) > MAX_SUBMODULES:
        yield None
    yield from links[:MAX_SUBMODULES]


# --- settings

_SECTION = re.compile(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\.)*)")?\][ \t\r]*')
_SETTING = re.compile(r"[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*?))?[ \t\r]*", re.DOTALL)
#: What runs only where git is to change something, or to speak to another one.
_ASKED = frozenset(("alias", "difftool", "gpg", "mergetool", "sendemail", "sequence"))
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", '"': '"', "\\": "\\"}
_ASKED_KEYS = frozenset((("core", "hookspath"), ("core", "editor"), ("merge", "driver")))


def _settings(file: str, depth: int) -> Iterator[GitRuns]:
    """With those of the files that it includes."""
    if depth > MAX_DEPTH:
        yield GitRuns(UNREADABLE, file, "it includes too many others")
        return
    for runs in _kept(_of_settings, file):
        yield runs
        if runs.what in ("include.path", "includeif.path"):
            path = os.path.expanduser(runs.words)  # noqa: PTH111
            yield from _settings(_from(file.rpartition("/")[0], path), depth + 1)


def _value(written: str) -> str | None:
    """A value as git takes it, without quotes and comments; None where it is odd."""
    found, at, is_quoted, end = "", 0, False, 0
    while at < len(written):
        char, at = written[at], at + 1
        if char == '"':
            is_quoted = not is_quoted
        elif char in "#;" and not is_quoted:
            break
        elif char == "\\":
            if at >= len(written) or written[at] not in _ESCAPES:
                return None
            found, at = found + _ESCAPES[written[at]], at + 1
        else:
            found += char
        end = len(found) if is_quoted or not char.isspace() else end
    return None if is_quoted else found[:end]


def _of_settings(file: str) -> Iterator[GitRuns]:
    try:
        text = _bytes(file, MAX_CONFIG).decode()
    except UnicodeDecodeError:
        yield GitRuns(UNREADABLE, file)
        return
    section = ""
    for number, line in enumerate(text.split("\n"), 1):
        said = line.lstrip(" \t")
        if said.rstrip(" \t\r") == "" or said[0] in "#;":
            continue
        if begins := _SECTION.fullmatch(said):
            section = begins[1].lower()
            continue
        setting = _SETTING.fullmatch(line)
        if not setting or line.rstrip("\r").endswith("\\"):
            yield GitRuns(UNREADABLE, f"{file}, line {number}")
            return
        key, value = setting[1].lower(), _value(setting[2] or "")
        if value is None:
            yield GitRuns(UNREADABLE, f"{file}, line {number}")
            return
        if not is_harmless(section, key, value):
            is_asked = section in _ASKED or (section, key) in _ASKED_KEYS
            yield GitRuns(f"{section}.{key}", file, value, is_unasked=not is_asked)
