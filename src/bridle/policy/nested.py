"""Programs that would act for an agent with more rights: other agents, Bridle, git's settings."""

from __future__ import annotations

import re
from itertools import pairwise

from .shell.programs import Program

NESTED = "it starts an agent that asks nobody"
BRIDLE = "it reaches Bridle itself"
SETTINGS = "it changes what is run or allowed later"

_UNASKED = re.compile(
    r"--(?:allow-)?dangerously-.*|--permission-mode=bypassPermissions"
    r"|--permission-prompt-tool.*|--yolo|--full-auto|--yes-always",
    re.IGNORECASE | re.DOTALL,
)
_AGENTS = frozenset(
    ("claude", "claude-code", "codex", "gemini", "aider", "opencode", "cursor-agent")
)
#: What gives a nested agent rights beforehand, or changes its settings.
_AGENT_WORDS = re.compile(
    r"--allowed-?tools(?:=.*)?|--settings(?:=.*)?|--mcp-config(?:=.*)?|mcp|config|plugin|plugins"
    r"|bypassPermissions",
    re.IGNORECASE | re.DOTALL,
)
_RUNNERS = frozenset(
    (
        *("npx", "bunx", "pnpx", "uvx", "pipx", "npm", "pnpm", "yarn", "bun", "node", "deno"),
        *("uv", "poetry", "pdm", "hatch", "pipenv", "rye", "conda"),
    )
)
_PACKAGE = re.compile(r"(?:.*/)?(?:@anthropic-ai/)?claude-code(?:@.*|/.*)?")
_PYTHON = re.compile(r"python[0-9.]*|pypy[0-9.]*")
_MODULE = re.compile(r"-[A-Za-z]*m(.*)", re.DOTALL)
_GIT_KEYS = re.compile(
    r"(?:core\.(?:hookspath|fsmonitor|sshcommand|pager|editor|askpass|gitproxy|attributesfile)"
    r"|alias\..*|include.*|url\..*|init\.templatedir"
    r"|.*\.(?:textconv|command|cmd|driver|program|helper|clean|smudge))(?:=.*)?",
    re.IGNORECASE | re.DOTALL,
)
_READS_CONFIG = frozenset(("--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"))


def nested(program: Program) -> str:
    """Why a person must be asked about this program; "" where nothing is to say."""
    return _bridle(program) or _agent(program) or (_git(program) if program.name == "git" else "")


def _bridle(program: Program) -> str:
    name, words = program.name, program.argv[1:]
    if name == "bridle" or (name in _RUNNERS and "bridle" in words):
        return BRIDLE
    if not _is_python(name, words):
        return ""
    for word, following in pairwise((*words, "")):
        module = _MODULE.fullmatch(word or "")
        if module and (module[1] or following or "").split(".")[0] == "bridle":
            return BRIDLE
    return ""


def _is_python(name: str, words: tuple[str | None, ...]) -> bool:
    inside = name in _RUNNERS and any(word and _PYTHON.fullmatch(word) for word in words)
    return inside or _PYTHON.fullmatch(name) is not None


def _agent(program: Program) -> str:
    words = [word for word in program.argv[1:] if word is not None]
    is_agent = program.name in _AGENTS or (
        program.name in _RUNNERS
        and any(_PACKAGE.fullmatch(word) or word in _AGENTS for word in words)
    )
    if any(_UNASKED.fullmatch(word) for word in words):
        return NESTED
    if is_agent and (None in program.argv or any(_AGENT_WORDS.fullmatch(word) for word in words)):
        return NESTED
    return ""


def _git(program: Program) -> str:
    """What makes git run something: in its settings, or given with one command."""
    words = program.argv[1:]
    for word, following in pairwise((*words, "")):
        given = word or ""
        if given in ("-c", "--config-env", "--config"):
            given = following or "alias.?"  # what is not known may be anything
        elif given.startswith("-c"):
            given = given[2:]
        elif not given.startswith(("--config-env=", "--config=")):
            if given.startswith(("--exec-path=", "--template", "--upload-pack", "--receive-pack")):
                return SETTINGS
            continue
        if _GIT_KEYS.fullmatch(given.removeprefix("--config-env=").removeprefix("--config=")):
            return SETTINGS
    if words[:1] != ("config",):
        return ""
    at = 1
    while at < len(words) and (words[at] or "").startswith("-") and words[at] not in _READS_CONFIG:
        at += 1
    if at < len(words) and words[at] in _READS_CONFIG:
        return ""
    risky = any(word is None or _GIT_KEYS.fullmatch(word) for word in words[at:])
    return SETTINGS if risky else ""
