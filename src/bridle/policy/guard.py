"""The laundering guard: what would give an agent more rights than it has, by another way.

A nested agent that asks nobody, Bridle's own door, and files from which rights or commands are
taken later. What it sees is asked of a person, whatever the rules allow. Owns where it looks;
`nested` knows agents and settings of git, `judge` decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .nested import SETTINGS, nested
from .paths import Place, clean, is_inside, part_may_meet
from .shell.programs import Program
from .verdicts import Ground

#: Files and folders that say what is run or allowed later, by the end of their path.
_GUARDED = re.compile(
    r"""(?:/(?:
      \.claude/(?!worktrees/).* | \.claude | \.claude\.json | \.mcp\.json
    | \.bridle(?:/.*)? | bridle\.toml
    | \.git(?:/.*)?
    | \.(?:husky|githooks)(?:/.*)? | \.gitconfig
    | \.config/(?:git|fish|direnv|systemd|autostart)(?:/.*)? | \.local/share/systemd(?:/.*)?
    | \.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|envrc|inputrc|kshrc)
    | \.(?:bashrc\.d/.* | t?cshrc) | \.z(?:shrc|shenv|profile|login|logout)
    | \.ssh/(?:authorized_keys2?|config|rc)
    ) | /etc/(?:
      profile | bash\.bashrc | bashrc | environment | zshrc | zshenv | zprofile | sudoers | crontab
    | profile\.d/.* | zsh/.* | sudoers\.d/.* | cron[^/]*/.* | systemd/.*
    ))\Z""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
#: The same in short, for names that are known only in part.
_NAMES = (
    *((".claude",), (".claude.json",), (".mcp.json",), (".bridle",), ("bridle.toml",)),
    *((".git",), (".husky",), (".githooks",), (".gitconfig",)),
    *((".bashrc",), (".bash_profile",), (".profile",), (".zshrc",), (".zshenv",), (".envrc",)),
    *((".ssh", "authorized_keys"), (".ssh", "config")),
)
#: What the CLI itself has its model write there.
_OWN_NOTES = re.compile(r"/(?:plans/[^/]+\.md|projects/[^/]+/memory/.*\.md|todos/.*)", re.DOTALL)
#: What takes all that is in a folder; and what moves it, or takes it away.
_TAKERS = frozenset(
    (
        *("grep", "egrep", "fgrep", "rg", "ag", "ack", "tar", "cp", "mv", "rsync", "zip", "7z"),
        *("scp", "sftp", "rm", "chmod", "chown", "ln"),
    )
)
_MOVERS = frozenset(("mv", "rm", "rmdir", "ln", "rsync", "rename"))

BRIDLE = "it reaches Bridle itself"
UNBOXED = "it asks to run outside of the CLI's sandbox"


class Guard:
    """The guard for one agent."""

    def __init__(self, ground: Ground) -> None:
        home = ground.claude_home or f"{ground.home.rstrip('/')}/.claude"
        self._folds = ground.ignores_case
        self._claude = self._both(ground, home)
        self._bridle = self._both(ground, ground.bridle_home) if ground.bridle_home else set()
        self._files = {path for file in ground.guarded for path in self._both(ground, file)}
        names = sorted({_telling_end(path) for path in self._bridle} - {""})
        words = [rf"(?i:(?<![\w.-]){re.escape(name)}(?![\w-]))" for name in names]
        self._names = re.compile("|".join([*words, r"\bBRIDLE_(?:HOME|TOKEN|URL)\b"]))
        ports = [address.rpartition(":")[2] for address in ground.addresses if ":" in address]
        doors = [rf"(?<![0-9])0*{port}(?![0-9])" for port in ports if port.isdigit()]
        doors += [re.escape(address) for address in ground.addresses if "/" in address]
        self._doors = re.compile("|".join(doors), re.IGNORECASE) if doors else None
        hosts = [rf":0*{port}(?![0-9])" for port in ports if port.isdigit()]
        self._hosts = re.compile("|".join(hosts)) if hosts else None

    def _both(self, ground: Ground, path: str) -> set[str]:
        return {self._folded(clean(path)), self._folded(clean(ground.resolve(path)))}

    def _folded(self, path: str) -> str:
        return path.casefold() if self._folds else path

    # --- files

    def path(self, place: Place, *, writes: bool) -> str:
        """Why a person must be asked about this file; "" where nothing is to say."""
        for path in {place.written, place.real}:
            folded = self._folded(path)
            if any(is_inside(folded, home) for home in self._bridle):
                return BRIDLE
            if writes and (folded in self._files or self._is_guarded(path)):
                return SETTINGS
        return ""

    def pattern(self, glob: str, *, writes: bool) -> str:
        """The same for a path that is known only in part."""
        parts = [part for part in self._folded(glob).split("/") if part]
        for home in self._bridle:
            if _may_be_inside(parts, [part for part in home.split("/") if part]):
                return BRIDLE
        if writes and any(_may_hold(parts, names) for names in _NAMES):
            return SETTINGS
        return ""

    def whole(self, place: Place) -> str:
        """The same for all that is in a folder."""
        for path in {place.written, place.real}:
            if any(is_inside(home, self._folded(path)) for home in self._bridle):
                return BRIDLE
        return ""

    def _is_guarded(self, path: str) -> bool:
        for home in self._claude:
            if is_inside(self._folded(path), home):
                return not _OWN_NOTES.fullmatch(path[len(home) :])
        return _GUARDED.search(path) is not None

    def text(self, text: str) -> str:
        """Why a person must be asked about an address in this text."""
        return BRIDLE if self._doors and self._doors.search(text) else ""

    def named(self, script: str) -> str:
        """The same for a script in which Bridle's home is named in whatever way: by a variable, in
        braces, in a list that is gone through."""
        return BRIDLE if self._names.search(script) else ""

    def url(self, url: str) -> str:
        """The same for a URL, of which the port is what counts."""
        return BRIDLE if self._hosts and self._hosts.search(url) else ""

    # --- programs

    def program(
        self, program: Program, places: Iterable[Place], globs: Iterable[str], *, reads: bool
    ) -> str:
        """Why a person must be asked about this program, whose words may be these."""
        if not reads and (found := nested(program)):
            return found
        takes_all = program.name in _TAKERS
        for place in places:
            found = self.path(place, writes=not reads) or (self.whole(place) if takes_all else "")
            if found:
                return found
            if program.name in _MOVERS and self._holds_a_file(place):
                return SETTINGS
        for glob in globs:
            if found := self.pattern(glob, writes=not reads):
                return found
        return ""

    def _holds_a_file(self, place: Place) -> bool:
        paths = {self._folded(place.written), self._folded(place.real)}
        return any(is_inside(file, path) for file in self._files for path in paths)


def _telling_end(path: str) -> str:
    """As much of a path's end as names it: a hidden folder by itself, another one with the folder
    that it is in, for a name like `home` stands in many commands."""
    name = path.rpartition("/")[2]
    return name if name.startswith(".") else "/".join(path.split("/")[-2:]).strip("/")


def _is_telling(part: str) -> bool:
    """Whether a pattern says anything at all."""
    return part.strip("*?") != ""


def _may_be_inside(parts: list[str], home: list[str]) -> bool:
    if len(parts) < len(home):
        return False
    pairs = list(zip(parts, home, strict=False))
    # A shell's `*` does not stand for a name that begins with a dot.
    return all(
        (_is_telling(part) or not name.startswith(".")) and part_may_meet(part, name, 0)
        for part, name in pairs
    )


def _may_hold(parts: list[str], names: tuple[str, ...]) -> bool:
    """Whether the path may have these names in it in a row; the first known at least in part."""
    for at, part in enumerate(parts):
        following = parts[at + 1 : at + len(names)]
        if (
            _is_telling(part)
            and len(following) == len(names) - 1
            and part_may_meet(part, names[0], re.IGNORECASE)
            and all(part_may_meet(p, n, 0) for p, n in zip(following, names[1:], strict=True))
        ):
            return True
    return False
