"""The laundering guard: what would give an agent more rights than it has, by another way.

A nested agent that asks nobody, Bridle's own door, and files from which rights or commands are
taken later. What it sees is asked of a person, whatever the rules allow. Owns the list; deciding is
`judge`'s work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from .paths import Place, is_inside
from .reading import is_reading
from .shell.programs import Argv, Program
from .verdicts import Ground

#: Files and folders that say what is run or allowed later, by the end of their path.
_GUARDED = re.compile(
    r"""(?:/(?:
      \.claude/(?!worktrees/).* | \.claude | \.claude\.json | \.mcp\.json
    | \.bridle(?:/.*)? | bridle\.toml
    | \.git/(?:hooks(?:/.*)? | config(?:\.worktree)? | info/attributes)
    | \.git/modules/.*/(?:hooks(?:/.*)? | config)
    | \.(?:husky|githooks)(?:/.*)? | \.gitconfig
    | \.config/(?:git|fish|direnv|systemd|autostart)(?:/.*)?
    | \.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|envrc|inputrc|kshrc)
    | \.z(?:shrc|shenv|profile|login|logout) | \.ssh/(?:authorized_keys|config|rc)
    ) | /etc/(?:
      profile | bash\.bashrc | bashrc | environment | zshrc | zshenv | zprofile | sudoers | crontab
    | profile\.d/.* | zsh/.* | sudoers\.d/.* | cron[^/]*/.*
    ))\Z""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
#: What the CLI itself has its model write there.
_OWN_NOTES = re.compile(r"/(?:plans/[^/]+\.md|projects/[^/]+/memory/.*\.md|todos/.*)", re.DOTALL)

_UNASKED = re.compile(
    r"--(?:allow-)?dangerously-.*|.*bypassPermissions.*|--permission-prompt-tool.*|--yolo|--full-auto"
    r"|--yes-always",
    re.IGNORECASE | re.DOTALL,
)
_AGENTS = frozenset(
    ("claude", "claude-code", "codex", "gemini", "aider", "opencode", "cursor-agent")
)
_RUNNERS = frozenset(
    ("npx", "bunx", "pnpx", "uvx", "pipx", "npm", "pnpm", "yarn", "bun", "node", "deno")
)
_CLAUDE_PACKAGE = re.compile(r"(?:.*/)?(?:@anthropic-ai/)?claude-code(?:@.*|/.*)?")
_PYTHON = re.compile(r"python[0-9.]*")
_GIT_KEYS = re.compile(
    r"(?:core\.(?:hookspath|fsmonitor|sshcommand|pager|editor|askpass|gitproxy|attributesfile)"
    r"|alias\..*|include.*|url\..*|.*\.(?:textconv|command|cmd|driver|program|helper|clean|smudge))",
    re.IGNORECASE | re.DOTALL,
)
_READS_CONFIG = frozenset(("--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"))
_LOOPBACK = r"(?:localhost|127(?:\.[0-9]+){0,3}|0(?:\.0\.0\.0)?|\[::1?\]|\[::ffff:127[^\]]*\])"

SETTINGS = "it changes what is run or allowed later"
BRIDLE = "it reaches Bridle itself"
NESTED = "it starts an agent that asks nobody"
UNBOXED = "it asks to run outside of the CLI's sandbox"


class Guard:
    """The guard for one agent."""

    def __init__(self, ground: Ground) -> None:
        home = ground.claude_home or f"{ground.home.rstrip('/')}/.claude"
        self._claude = {home, ground.resolve(home)}
        self._bridle = {ground.bridle_home, ground.resolve(ground.bridle_home)} - {""}
        if not ground.bridle_home:
            self._bridle = set()
        self._files = {*ground.guarded, *(ground.resolve(file) for file in ground.guarded)}
        ports = [address.rpartition(":")[2] for address in ground.addresses if ":" in address]
        sockets = [re.escape(address) for address in ground.addresses if "/" in address]
        doors = [rf"{_LOOPBACK}:{port}(?![0-9])" for port in ports if port.isdigit()] + sockets
        self._doors = re.compile("|".join(doors), re.IGNORECASE) if doors else None

    def path(self, place: Place, *, writes: bool) -> str:
        """Why a person must be asked about this file; "" where nothing is to say."""
        for path in (place.written, place.real):
            if any(is_inside(path, home) for home in self._bridle):
                return BRIDLE
            if writes and (path in self._files or self._is_guarded(path)):
                return SETTINGS
        return ""

    def _is_guarded(self, path: str) -> bool:
        for home in self._claude:
            if is_inside(path, home):
                return not _OWN_NOTES.fullmatch(path[len(home) :])
        return _GUARDED.search(path) is not None

    def text(self, text: str) -> str:
        """Why a person must be asked about an address in this text."""
        return BRIDLE if self._doors and self._doors.search(text) else ""

    def program(self, program: Program, places: Iterable[Place]) -> str:
        """Why a person must be asked about this program, whose words may be these places."""
        if any(word and self.text(word) for word in program.argv):
            return BRIDLE
        reads = is_reading(program)
        if not reads and (found := _nested(program) or _configures(program)):
            return found
        for place in places:
            if found := self.path(place, writes=not reads):
                return found
        return ""


def _nested(program: Program) -> str:
    argv, name = program.argv, program.name
    words = [word for word in argv[1:] if word is not None]
    if name == "bridle" or (_PYTHON.fullmatch(name) and _follows(argv, "-m", "bridle")):
        return BRIDLE
    if name in _RUNNERS and "bridle" in words:
        return BRIDLE
    is_agent = name in _AGENTS or (
        name in _RUNNERS and any(_CLAUDE_PACKAGE.fullmatch(word) for word in words)
    )
    if any(_UNASKED.fullmatch(word) for word in words) or (is_agent and None in argv):
        return NESTED
    return ""


def _follows(argv: Argv, option: str, start: str) -> bool:
    return any(a == option and (b or "").split(".")[0] == start for a, b in pairwise(argv))


def _configures(program: Program) -> str:
    """`git config` of what makes git run something."""
    argv = program.argv
    if program.name != "git" or argv[1:2] != ("config",) or _READS_CONFIG.intersection(argv):
        return ""
    risky = any(word is None or _GIT_KEYS.fullmatch(word) for word in argv[2:])
    return SETTINGS if risky else ""
