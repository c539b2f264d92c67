"""The laundering guard: what would give an agent more rights than it has, by another way.

A nested agent that asks nobody, Bridle's own door, and files from which rights or commands are
taken later. What it sees is asked of a person, whatever the rules allow. Owns where it looks;
`nested` knows agents and settings of git, `judge` decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .nested import SETTINGS, nested
from .partial_paths import is_unknown, may_be, may_be_inside, may_contain, may_hold
from .paths import Place, clean, is_inside
from .shell.programs import Program
from .verdicts import Ground

#: Files and folders that say what is run or allowed later, by the end of their path.
_GUARDED = re.compile(
    r"""(?:/(?:
      node_modules/(?:@anthropic-ai(?:/.*)? | \.bin/claude)
    | \.local/(?:bin/claude | share/claude(?:/.*)?)
    | \.claude/(?!worktrees/).* | \.claude | \.claude\.json | \.mcp\.json
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
    *((".git",), (".husky",), (".githooks",), (".gitconfig",), (".envrc",), (".inputrc",)),
    *((".config", name) for name in ("git", "fish", "direnv", "systemd", "autostart")),
    *((".local", "share", "systemd"), (".bashrc.d",), (".bashrc",), (".bash_profile",)),
    *((".bash_login",), (".bash_logout",), (".bash_aliases",), (".profile",), (".kshrc",)),
    *((".cshrc",), (".tcshrc",), (".zshrc",), (".zshenv",), (".zprofile",), (".zlogin",)),
    *((".zlogout",), (".ssh", "authorized_keys"), (".ssh", "authorized_keys2")),
    *(("node_modules", "@anthropic-ai"), ("node_modules", ".bin", "claude")),
    *((".local", "bin", "claude"), (".local", "share", "claude")),
    *((".ssh", "config"), (".ssh", "rc"), ("etc", "profile"), ("etc", "profile.d")),
    *(("etc", "bash.bashrc"), ("etc", "environment"), ("etc", "crontab"), ("etc", "sudoers.d")),
    *(("etc", "cron.d"), ("etc", "systemd"), ("etc", "zsh")),
)
#: What the CLI itself has its model write there.
_OWN_NOTES = re.compile(r"/(?:plans/[^/]+\.md|projects/[^/]+/memory/.*\.md|todos/.*)", re.DOTALL)
#: What takes all that is in a folder; and what moves it, or takes it away.
_TAKERS = frozenset(
    (
        *("grep", "egrep", "fgrep", "rgrep", "rg", "ag", "ack", "tar", "cp", "mv", "rsync"),
        *("zip", "7z", "scp", "sftp", "rm", "chmod", "chown", "ln"),
    )
)
_MOVERS = frozenset(("mv", "rm", "rmdir", "ln", "rsync", "rename"))

BRIDLE = "it reaches Bridle itself"
UNKNOWN_FOLDER = "it reads all files of a folder that is not known, which may be Bridle's"
TOO_MANY = "it names more files than can be looked at"
UNBOXED = "it asks to run outside of the CLI's sandbox"


class Guard:
    """The guard for one agent."""

    def __init__(self, ground: Ground) -> None:
        home = ground.claude_home or f"{ground.home.rstrip('/')}/.claude"
        self._folds = ground.ignores_case
        self._claude = self._both(ground, home)
        homes = (ground.bridle_home, ground.usual_home) if ground.bridle_home else ()
        self._bridle = {path for home in homes if home for path in self._both(ground, home)}
        self._files = {
            path
            for file in (*ground.guarded, *ground.programs)
            for path in self._both(ground, file)
        }
        names = sorted({_telling_end(path) for path in self._bridle} - {""})
        words = [rf"(?i:(?<![\w.-]){re.escape(name)}(?![\w-]))" for name in names]
        self.has_home = bool(self._bridle)
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

    def pattern(self, form: str, *, writes: bool) -> str:
        """The same for a path that is known only in part."""
        form = self._folded(form)
        if any(may_be_inside(form, home) for home in self._bridle):
            return BRIDLE
        if not writes:
            return ""
        if any(may_contain(form, names) for names in _NAMES):
            return SETTINGS
        return SETTINGS if any(may_be(form, file) for file in self._files) else ""

    def whole_pattern(self, form: str) -> str:
        """The same for all that is in a folder which is known only in part."""
        form = self._folded(form)
        if is_unknown(form) and self._bridle:
            return UNKNOWN_FOLDER
        return BRIDLE if any(may_hold(form, home) for home in self._bridle) else ""

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
        self, program: Program, places: Iterable[Place], partial: Iterable[str], *, reads: bool
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
        for form in partial:
            found = self.pattern(form, writes=not reads)
            if not found and takes_all and not is_unknown(form):
                found = self.whole_pattern(form)
            if (
                not found
                and program.name in _MOVERS
                and any(may_hold(form, f) for f in self._files)
            ):
                found = SETTINGS
            if found:
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
