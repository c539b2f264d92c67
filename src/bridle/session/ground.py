"""Where an agent stands, as a policy needs to know it. Owns the looking at the disk for it."""

from __future__ import annotations

import os
import stat
import sys
from glob import has_magic, iglob
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from ..policy.paths import is_own
from ..policy.verdicts import Ground
from .inline_commands import InlineCommands
from .repository import git_runs

#: So many files of one glob are looked at.
MAX_EXPANDED = 200
#: A longer pattern is of no file that is there.
MAX_PATTERN = 500
#: So many of its components may be globs.
MAX_LEVELS = 2
#: Links to whoever asks.
_WHO_ASKS = frozenset(("/proc/self", "/proc/thread-self"))


def ground_of(
    folder: str | os.PathLike[str],
    *,
    home: str = "",
    also: tuple[str, ...] = (),
    claude_home: str = "",
    bridle_home: str = "",
    addresses: tuple[str, ...] = (),
    guarded: tuple[str, ...] = (),
    programs: tuple[str, ...] = (),
    plugins: tuple[str, ...] = (),
) -> Ground:
    """The ground of an agent that works in this folder."""
    path = str(Path(folder).absolute())
    inline = InlineCommands(path, claude_home or f"{home or Path.home()}/.claude", also, plugins)
    return Ground(
        folder=path,
        home=home or str(Path.home()),
        resolve=_Resolver(path),
        also=tuple(str(Path(one).absolute()) for one in also),
        claude_home=claude_home,
        bridle_home=bridle_home,
        usual_home=f"{home or Path.home()}/.bridle",
        addresses=addresses,
        guarded=guarded,
        programs=programs,
        is_folder=os.path.isdir,
        expand=_expanded,
        inline_commands=inline,
        agent_commands=inline.of_agent,
        ignores_case=sys.platform in ("darwin", "win32"),
    )


def with_repositories(ground: Ground) -> Ground:
    """The same, where what git would run by a repository's own settings is looked up."""
    return replace(ground, git_runs=lambda folder: tuple(map(str, git_runs(folder))))


def _expanded(pattern: str) -> list[str]:
    # The loop waits for this: no whole tree is gone through.
    is_deep = sum(has_magic(part) for part in pattern.split("/")) > MAX_LEVELS
    if is_deep or len(pattern) > MAX_PATTERN:
        return []
    return list(islice(iglob(pattern), MAX_EXPANDED))  # noqa: PTH207 - a whole path


class _Resolver:
    """Follows symbolic links; quick where there are none, which is nearly always.

    Of the agent's own folder it is known where it really is: only what is below is looked at.
    """

    def __init__(self, folder: str) -> None:
        self._is_real = _real(folder) == folder
        self._below = folder.rstrip("/") + "/"

    def __call__(self, path: str) -> str:
        if not self._is_real or not path.startswith(self._below) or "/." in path or "//" in path:
            return _real(path)
        at = len(self._below) - 1
        while at > 0:
            at = path.find("/", at + 1)
            part = path if at < 0 else path[:at]
            try:
                if stat.S_ISLNK(os.lstat(part).st_mode):
                    return _real(path)
            except OSError:
                return path  # it is not there, so nothing below it is a link
            except ValueError:
                return path  # no path at all: it holds a NUL
        return path


#: As many links as the kernel follows.
MAX_LINKS = 40


def _real(path: str) -> str:
    """Without links, but for those that lead elsewhere for each process: we are another one than
    that whose path it is."""
    if "\0" in path:
        return path  # no path at all
    rest, found, links = path.split("/")[::-1], "", 0
    while rest:
        part = rest.pop()
        if part in ("", "."):
            continue
        if part == "..":
            found = found.rpartition("/")[0]
            continue
        at = f"{found}/{part}"
        if is_own(at) or links > MAX_LINKS:
            return "/".join((at, *reversed(rest)))
        try:
            target = "" if at in _WHO_ASKS else os.readlink(at)  # noqa: PTH115 - ten times faster
        except (FileNotFoundError, NotADirectoryError):
            if ".." not in rest:
                # Nothing below is there, so nothing there is a link.
                return os.path.normpath("/".join((at, *reversed(rest))))
            target = ""
        except (OSError, ValueError):
            target = ""  # no link
        if target:
            links += 1
            found = "" if target.startswith("/") else found
            rest += target.split("/")[::-1]
        else:
            found = at
    return found or "/"
