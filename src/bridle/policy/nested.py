"""Programs that would act for an agent with more rights: other agents, Bridle, git's settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from .git_settings import is_harmless_name, is_harmless_section
from .shell.programs import Program, base_name
from .shell.script import Word
from .shell.tables import GIT_VALUED
from .within import MAX_WORDS, perhaps_within, runs_unknown, surely_within

NESTED = "it starts an agent that asks nobody"
BRIDLE = "it reaches Bridle itself"
SETTINGS = "it changes what is run or allowed later"
UNKNOWN = "it runs a program that is not known"

_Words = tuple[str | None, ...]

_UNASKED = re.compile(
    r"--(?:allow-)?dangerously-.*|--permission-mode=bypassPermissions"
    r"|--permission-prompt-tool.*|--yolo(?:=.*)?|--full-auto|--yes-always",
    re.IGNORECASE | re.DOTALL,
)
#: What runs a program of some package.
_RUNNERS = frozenset(
    (
        *("npx", "bunx", "pnpx", "uvx", "pipx", "npm", "pnpm", "yarn", "bun", "node", "deno"),
        *("uv", "poetry", "pdm", "hatch", "pipenv", "rye", "conda"),
    )
)
_PYTHON = re.compile(r"python[0-9.]*|pypy[0-9.]*")
_MODULE = re.compile(r"-[A-Za-z]*m(.*)", re.DOTALL)


def nested(program: Program) -> str:
    """Why a person must be asked about this program; "" where nothing is to say."""
    if program.name == "bridle":
        return BRIDLE
    if found := _direct(program) or _within(program):
        return found
    return UNKNOWN if runs_unknown(program) else ""


def _direct(program: Program) -> str:
    return _bridle(program) or _agent(program) or _git(program)


def _within(program: Program) -> str:
    for inner in surely_within(program, _is_telling):
        if _BRIDLE.fullmatch(inner.argv[0] or ""):
            return BRIDLE
        if found := _bridle_by_command(inner) or _direct(inner):
            return found
    for maybe in perhaps_within(program, _is_telling):
        if maybe and (found := _bridle_by_command(maybe) or _direct(maybe)):
            return found
    if len(program.argv) > MAX_WORDS:
        return _named(program.argv[MAX_WORDS:])
    return ""


def _is_telling(name: str) -> bool:
    """Whether a program of this name may be one to ask about."""
    return name in _NAMES or _TELLING_NAME.match(name) is not None


def _named(words: _Words) -> str:
    """The same of so many words that not each of them is looked at as a command."""
    names = {base_name(word) for word in words if word}
    return BRIDLE if "bridle" in names else NESTED if names & _AGENTS.keys() else ""


# --- Bridle

_BRIDLE = re.compile(r"(?:.*/bin/)?bridle(?:\[[^\]]*\])?(?:[@=<>~!].*)?", re.DOTALL)
#: Its commands: without one, its name may as well be that of a folder.
COMMANDS = frozenset(
    """approvals approve attach audit config demo deny doctor down fork import interrupt logs mcp
    pause policy ps record release replay resume rm run send set start stop token trust unpause up
    url usage version""".split()  # noqa: SIM905
)


def _bridle(program: Program) -> str:
    name, words = program.name, program.argv[1:]
    if name in _RUNNERS and any(word and _BRIDLE.fullmatch(word) for word in words):
        return BRIDLE
    return BRIDLE if _is_python(name, words) and _is_module(words) else ""


def _bridle_by_command(program: Program) -> str:
    words = program.argv[1:]
    if program.name != "bridle":
        return ""
    return BRIDLE if words[:1] == (None,) or not COMMANDS.isdisjoint(words) else ""


def _is_module(words: _Words) -> bool:
    for word, following in pairwise((*words, "")):
        module = _MODULE.fullmatch(word or "")
        if module and (module[1] or following or "").split(".")[0] == "bridle":
            return True
        if f"/{word}".endswith("/bridle/__main__.py"):
            return True
        if word == "-c" and "bridle.cli" in (following or ""):
            return True
    return False


def _is_python(name: str, words: _Words) -> bool:
    inside = name in _RUNNERS and any(word and _PYTHON.fullmatch(word) for word in words)
    return inside or _PYTHON.fullmatch(name) is not None


# --- other agents


def _telling(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.DOTALL | re.VERBOSE)


#: By agent, what gives it rights beforehand, or changes its settings. An option and the word that
#: follows it are looked at as `option=word`.
_CLAUDE = _telling(
    r"""--allowed-?tools(?:=.*)? | --settings(?:=.*)? | --setting-sources(?:=.*)?
    | --mcp-config(?:=.*)? | --agents(?:=.*)? | --plugin-(?:dir|url)(?:=.*)? | --add-dir(?:=.*)?
    | --permission-mode=(?!default\Z|plan\Z).*
    | mcp | config | plugins? | bypassPermissions"""
)
_GEMINI = _telling(
    r"""-[a-z]*y[a-z]* | --y(?:o(?:lo?)?)?(?:=.*)? | --approval-?mode=(?!default\Z|plan\Z).*
    | --allowed-?tools(?:=.*)? | --policy(?:=.*)? | --include-directories(?:=.*)?
    | mcp | extensions? | hooks? | skills?"""
)
_CODEX = _telling(
    r"""(?>(?-i:-a)=?|--ask-for-approval=)(?!untrusted\Z|on-request\Z).+
    | (?>(?-i:-s)=?|--sandbox=)(?!read-only\Z|workspace-write\Z).+
    | (?>(?-i:-c)=?|--config=)(?!model(?:_\w+)?=).+
    | --add-dir(?:=.*)? | mcp"""
)
_CURSOR = _telling(
    r"-[a-z]*f[a-z]* | --force | --approve-mcps | --trust | --sandbox=disabled | mcp"
)
_AIDER = _telling(r"--ye?s?(?:-.*)? | --(?:test|lint)-cmd(?:=.*)? | --load(?:=.*)?")
_COPILOT = _telling(
    r"--allow-.* | --add-dir(?:=.*)? | --autopilot | --additional-mcp-config(?:=.*)?"
)
_OTHERS = _telling(
    r"""-y | --yes | --auto(?:=.*)? | --force | --trust.* | --allow-.* | --.*-unsafe | --full
    | -a | mcp"""
)
_AGENTS = {
    "aider": _AIDER,
    "aider-chat": _AIDER,
    "amp": _OTHERS,
    "claude": _CLAUDE,
    "claude-code": _CLAUDE,
    "cline": _OTHERS,
    "codex": _CODEX,
    "copilot": _COPILOT,
    "crush": _OTHERS,
    "cursor-agent": _CURSOR,
    "droid": _OTHERS,
    "gemini": _GEMINI,
    "gemini-cli": _GEMINI,
    "goose": _OTHERS,
    "iflow": _GEMINI,
    "kimi": _OTHERS,
    "kiro-cli": _OTHERS,
    "opencode": _OTHERS,
    "qwen": _GEMINI,
    "qwen-code": _GEMINI,
}
_NAMES = _AGENTS.keys() | _RUNNERS | {"git"}
_TELLING_NAME = re.compile(r"python|pypy|bridle|git-|claude-code|[a-z-]+@")
_CLAUDE_FILE = re.compile(
    r"(?:.*/)?(?:@anthropic-ai/)?claude-code(?:@.*|/.*)?|.*/claude/versions/[^/]+", re.DOTALL
)


def _agent(program: Program) -> str:
    words = [word for word in program.argv[1:] if word is not None]
    if any(_UNASKED.fullmatch(word) for word in words):
        return NESTED
    telling = _agent_of(program.argv[0] or "")
    if telling is None and program.name in _RUNNERS:
        telling = next(filter(None, map(_agent_of, words)), None)
    if telling is None:
        return ""
    is_unasked = None in program.argv or any(map(telling.fullmatch, _said(words)))
    return NESTED if is_unasked else ""


def _agent_of(word: str) -> re.Pattern[str] | None:
    if _CLAUDE_FILE.fullmatch(word):
        return _CLAUDE
    return _AGENTS.get(base_name(word).partition("@")[0])


def _said(words: list[str]) -> Iterator[str]:
    """The words, and each option with what may be its value."""
    yield from words
    for option, value in pairwise(words):
        if option.startswith("-") and "=" not in option:
            yield f"{option}={value}"


# --- git

_READS_CONFIG = frozenset(
    (
        *("--get", "--get-all", "--get-regexp", "--get-urlmatch", "--get-color", "--list", "-l"),
        *("--get-colorbool", "get", "list"),
    )
)
_CONFIG_VALUED = frozenset(
    ("-f", "--file", "--blob", "-t", "--type", "--default", "--comment", "--value", "--url")
)
_EDITS = frozenset(("-e", "--edit", "edit"))
_SECTIONS = frozenset(("--rename-section", "rename-section", "--remove-section", "remove-section"))
#: Files that git, or an include of them, takes for its own; others are no settings yet.
_OWN_FILES = frozenset(("config", "config.worktree", ".gitconfig", "gitconfig", ".gitmodules"))
_GIT_VALUED = GIT_VALUED | {"--attr-source", "--shallow-file", "--super-prefix"}
#: `git clone -qc key=value`
_BUNCH = re.compile(r"-[vqnls46]*c(.*)", re.DOTALL)
_NOT_KNOWN = "\0"
_PROGRAMS_OF_GIT = ("--exec-path=", "--template", "--upload-pack", "--receive-pack")


def _git(program: Program) -> str:
    """What makes git run something: in its settings, or given with one command."""
    if program.name != "git" and not program.name.startswith("git-"):
        return ""
    words = _with_names(program)
    if program.name != "git":
        words = (program.name[4:], *words)
    at, risky = _before_command(words)
    if risky or any((word or "").startswith(_PROGRAMS_OF_GIT) for word in words):
        return SETTINGS
    rest = words[at + 1 :]
    match words[at : at + 1]:
        case ("config",):
            return SETTINGS if _changes_settings(rest) else ""
        case ("clone" | "init",):
            return SETTINGS if any(map(_is_risky_option, rest, (*rest[1:], None))) else ""
    return ""


def _with_names(program: Program) -> _Words:
    """Its words; and of `user.name="$x"` the name, with a value that is not known."""
    argv = program.argv[1:]
    if None not in argv or len(program.words) != len(argv) + 1:
        return argv
    return tuple(map(_with_name, program.words[1:]))


def _with_name(word: Word) -> str | None:
    name, equals, _ = (word.pattern or "").partition("=")
    is_known = word.value is None and word.is_one and equals and not set("*?[") & set(name)
    return f"{name}={_NOT_KNOWN}" if is_known else word.value


def _before_command(words: _Words) -> tuple[int, bool]:
    """Where git's command stands, and whether a setting before it may run something."""
    at, risky = 0, False
    while at < len(words) and (words[at] is None or (words[at] or "").startswith("-")):
        word = words[at] or ""
        following = words[at + 1] if at + 1 < len(words) else None
        if word == "-c":
            risky = risky or not _is_harmless_pair(following)
        elif word.startswith("-c"):
            risky = risky or not _is_harmless_pair(word[2:])
        elif word == "--config-env":
            risky = risky or not _is_harmless_variable(following)
        elif word.startswith("--config-env="):
            risky = risky or not _is_harmless_variable(word.partition("=")[2])
        at += 2 if word in _GIT_VALUED else 1
    return at, risky


def _is_harmless_pair(given: str | None) -> bool:
    name, _, value = (given or "").partition("=")
    return is_harmless_name(name, None if value == _NOT_KNOWN else value)


def _is_harmless_variable(given: str | None) -> bool:
    """The same where the value is that of a variable."""
    return is_harmless_name((given or "").partition("=")[0], None)


def _is_risky_option(word: str | None, following: str | None) -> bool:
    """A setting that a new repository is given, or a folder with hooks for it."""
    option, equals, value = (word or "").partition("=")
    if len(option) > 3 and "--template".startswith(option):
        return True
    if len(option) > 3 and "--config".startswith(option):
        return not _is_harmless_pair(value if equals else following)
    bunch = _BUNCH.fullmatch(word or "")
    return bunch is not None and not _is_harmless_pair(bunch[1] or following)


def _changes_settings(words: _Words) -> bool:
    """Whether `git config` may be told something that is not harmless."""
    at, file, writes = 0, "config", False
    while at < len(words) and (word := words[at] or "").startswith("-"):
        name, _, value = word.partition("=")
        if name in _READS_CONFIG:
            return False
        if name in _EDITS:
            return True
        if name in _SECTIONS:
            return not _is_harmless_edit(name, words[at + 1 :])
        writes = writes or name.startswith(("--add", "--replace", "--unset"))
        if "=" not in word and any(one.startswith(name) for one in _CONFIG_VALUED):
            at += 1
            value = words[at] or "" if at < len(words) else ""
        if name in ("-f", "--file"):
            file = value if value != _NOT_KNOWN else ""
        elif word.startswith("-f"):
            file = word[2:]
        at += 1
    if file and base_name(file) not in _OWN_FILES:
        return False
    return _changes_setting(words[at:], writes=writes)


def _changes_setting(words: _Words, *, writes: bool) -> bool:
    """The same behind the options: a name and a value, or a command of newer versions."""
    command = words[0] if words else ""
    if command in _READS_CONFIG or not words:
        return False
    if command in _EDITS:
        return True
    if command in _SECTIONS:
        return not _is_harmless_edit(command or "", words[1:])
    if command in ("set", "unset"):
        return _changes_settings(("--add", *words[1:]))
    if len(words) == 1 and words[0] is not None and not writes:
        return False
    name, value = words[0], words[1] if len(words) > 1 else ""
    return name is None or not is_harmless_name(name, value)


def _is_harmless_edit(command: str, names: _Words) -> bool:
    """Whether a section that is renamed or removed can bring nothing about."""
    if None in names or not names:
        return False
    if "remove" in command:
        name = names[0] or ""
        return is_harmless_section(name) or name.partition(".")[0].lower() in _REMOVABLE
    return all(is_harmless_section(name or "") for name in names)


_REMOVABLE = frozenset(("branch", "remote", "submodule", "user"))
