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
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from ..policy.git_settings import is_harmless

MAX_CONFIG = 1_000_000
MAX_INDEX = 200_000_000
MAX_HOOKS = 200
MAX_KEPT = 500

UNREADABLE = "settings that can't be read"
SUBMODULES = "submodules, each with settings of its own"
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
    found: list[GitRuns] = []
    try:
        repository = _repository_of(os.path.realpath(folder))
        if repository:
            found = list(_runs_of(repository))
    except (OSError, ValueError) as error:
        found = [GitRuns(UNREADABLE, folder, str(error))]
    return tuple(found)


class _Repository(Struct, frozen=True):
    """Where a repository is: the folder with its files, its own git folder, and the shared one."""

    top: str
    git: str
    common: str
    is_bare: bool = False


def _repository_of(folder: str) -> _Repository | None:
    """As git looks for it: here, and in each folder above."""
    while True:
        at = f"{folder.rstrip('/')}/.git"
        if os.path.lexists(at):
            git = at if Path(at).is_dir() else _linked(at)
            return _Repository(folder, git, _common(git))
        if all(os.path.lexists(f"{folder}/{name}") for name in ("HEAD", "objects", "refs")):
            return _Repository(folder, folder, _common(folder), is_bare=True)
        if folder == "/":
            return None
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
    except FileNotFoundError:
        return git
    return _from(git, text.rstrip("\r\n"))


def _from(folder: str, path: str) -> str:
    return path if path.startswith("/") else f"{folder}/{path}"


def _runs_of(repository: _Repository) -> Iterator[GitRuns]:
    if repository.is_bare:
        yield GitRuns(BARE, repository.git)
    settings = [f"{repository.common}/config", f"{repository.git}/config.worktree"]
    hooks = [f"{repository.common}/hooks"]
    for file in settings:
        for runs in _kept(_of_settings, file):
            yield runs
            if runs.what == "core.hookspath" and runs.words:
                hooks.append(_from(repository.top, os.path.expanduser(runs.words.strip('"'))))  # noqa: PTH111
    for at in hooks:
        yield from _hooks(at)
    if any(_kept(_has_submodules, file) for file in _indexes(repository.git)):
        yield GitRuns(SUBMODULES, repository.top)


# --- what is read is kept, as long as the file stays the same

_KEPT: dict[object, tuple[object, tuple[GitRuns, ...]]] = {}


def _kept(read: object, file: str) -> tuple[GitRuns, ...]:
    try:
        now = os.stat(file)  # noqa: PTH116
    except FileNotFoundError:
        return ()
    seal = (now.st_mtime_ns, now.st_ctime_ns, now.st_size, now.st_ino, now.st_mode)
    key = (read, file)
    if (kept := _KEPT.get(key)) is None or kept[0] != seal:
        assert callable(read)
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

#: The mode of a submodule in an index.
_GITLINK = b"\x00\x00\xe0\x00"
_ENTRY_BEGINS, _MODE_AT, _ALIGNED = 12, 24, 8


def _indexes(git: str) -> Iterator[str]:
    yield f"{git}/index"
    for name in os.listdir(git):  # noqa: PTH208
        if name.startswith("sharedindex."):
            yield f"{git}/{name}"


def _has_submodules(file: str) -> Iterator[GitRuns]:
    """git looks into each with what that one's own settings say."""
    data = _bytes(file, MAX_INDEX)
    is_aligned = data[4:8] in (b"\0\0\0\2", b"\0\0\0\3")
    at = data.find(_GITLINK)
    while at >= 0:
        if not is_aligned or (at - _MODE_AT - _ENTRY_BEGINS) % _ALIGNED == 0:
            yield GitRuns(SUBMODULES, file)
            return
        at = data.find(_GITLINK, at + 1)


# --- settings

_SECTION = re.compile(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\.)*)")?\][ \t\r]*')
_SETTING = re.compile(r"[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*?))?[ \t\r]*", re.DOTALL)
#: What runs only where git is to change something, or to speak to another one.
_ASKED = frozenset(("alias", "credential", "difftool", "gpg", "mergetool", "sendemail", "sequence"))
_ASKED_KEYS = frozenset((("core", "hookspath"), ("core", "editor"), ("merge", "driver")))


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
        key, value = setting[1].lower(), setting[2] or ""
        if not is_harmless(section, key, value):
            is_asked = section in _ASKED or (section, key) in _ASKED_KEYS
            yield GitRuns(f"{section}.{key}", file, value, is_unasked=not is_asked)
