"""Rules in Claude Code's own syntax: `Bash(npm test:*)`, `Read(./secrets/**)`, `mcp__server`.

Owns the syntax: what is no rule is refused, with the reason. Matching is the patterns' work.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from msgspec import Struct

from ..errors import InvalidRule
from .commands import CommandPattern
from .paths import PathPattern
from .tools import ALIASES, EDITS, FETCH, KNOWN, NAMED, READS, SHELL
from .verdicts import Behavior

_RULE = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_.-]*\*?)\s*(?:\((.*)\))?\s*", re.DOTALL)
_ESCAPED = re.compile(r"\\([()\\])")
_HOST = re.compile(r"(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_URL = re.compile(r"(?:(?i:https?)://)?([A-Za-z0-9.-]+)(?::[0-9]{1,5})?(?:[/?#].*)?", re.DOTALL)
_MCP = re.compile(r"mcp__[A-Za-z0-9_.-]+?(?:__(?:[A-Za-z0-9_.-]*\*?))?")


class DomainPattern:
    """`domain:example.com`, or `domain:*.example.com` for what is below it."""

    def __init__(self, text: str) -> None:
        scheme, _, host = text.partition(":")
        host = host.strip().lower().rstrip(".")
        if scheme.strip() != "domain" or not _HOST.fullmatch(host):
            raise InvalidRule(text, "write WebFetch(domain:example.com)")
        self._host = host

    def matches(self, host: str) -> bool:
        if self._host.startswith("*."):
            return host.endswith(self._host[1:])
        return host == self._host


class NamePattern:
    """A name; the beginning of one (`pr-*`); or a name and whatever follows it (`/review:*`)."""

    def __init__(self, text: str) -> None:
        self._name = text.strip()
        self._has_words = self._name.endswith(":*")
        self._start = self._name.removesuffix(":*").removesuffix("*").rstrip()
        if not self._name or "*" in self._start:
            raise InvalidRule(text, "a name may have one `*`, at its end")

    def matches(self, name: str) -> bool:
        if name == self._name:
            return True
        if self._name == self._start or not name.startswith(self._start):
            return False
        ends_there = name[len(self._start) :][:1] in ("", " ", ":")
        return ends_there or not (self._has_words and self._start[-1:].isalnum())


Pattern: TypeAlias = CommandPattern | PathPattern | DomainPattern | NamePattern | None


class Rule(Struct, frozen=True, eq=False):
    """A rule that was read. Without a pattern it is for the whole tool."""

    behavior: Behavior
    text: str
    tool: str
    pattern: Pattern = None
    source: str = ""

    def is_for(self, tool: str) -> bool:
        """Whether it speaks of this tool; `Read` and `Edit` speak of all that read and edit."""
        mine = self.tool
        if tool == mine or tool in ALIASES.get(mine, ()):
            return True
        if mine == "Read" or mine == "Edit":
            return tool in (READS if mine == "Read" else EDITS)
        if not mine.startswith("mcp__"):
            return False
        if mine.endswith("*"):
            return tool.startswith(mine[:-1])
        # A server's name; with a tool's behind it, it is that tool alone.
        return "__" not in mine[5:] and tool.startswith(f"{mine}__")


def parse_rule(text: str, behavior: Behavior, source: str = "") -> Rule:
    """Read a rule; InvalidRule says what is wrong with it."""
    if not isinstance(text, str):
        raise InvalidRule(repr(text), "a rule is text")
    if behavior not in ("allow", "ask", "deny"):
        raise InvalidRule(text, f"it can allow, ask or deny, not {behavior!r}")
    found = _RULE.fullmatch(text)
    if not found:
        raise InvalidRule(text, "write Tool or Tool(what)")
    tool, content = found.groups()
    _check_tool(text, tool, content)
    pattern: Pattern = None
    if content is not None and content.strip() != "*":
        pattern = _pattern(text, tool, _ESCAPED.sub(r"\1", content))
    return Rule(behavior, text.strip(), tool, pattern, source)


def _check_tool(text: str, tool: str, content: str | None) -> None:
    if tool.startswith("mcp__"):
        if not _MCP.fullmatch(tool):
            raise InvalidRule(text, "write mcp__server or mcp__server__tool")
        if content is not None and content.strip() != "*":
            raise InvalidRule(text, "rules for MCP tools have nothing in parentheses")
        return
    if tool.endswith("*"):
        raise InvalidRule(text, "only the names of MCP tools may end with `*`")
    near = {known.lower(): known for known in KNOWN}.get(tool.lower()) or _mistyped(tool)
    if near and near != tool:
        raise InvalidRule(text, f"the tool is called {near}")
    if content is not None and not content.strip():
        raise InvalidRule(text, f"nothing is in the parentheses; write {tool} for the whole tool")


def _mistyped(tool: str) -> str | None:
    """The known tool that this one is but for a letter too few or two that changed places."""
    if tool in KNOWN:
        return None
    for known in KNOWN:
        cut = {known[:at] + known[at + 1 :] for at in range(len(known))}
        if len(tool) > 2 and (tool in cut or sorted(tool) == sorted(known)):
            return known
    return None


def _pattern(text: str, tool: str, content: str) -> Pattern:
    try:
        if tool == SHELL:
            return CommandPattern(content)
        if tool in READS or tool in EDITS:
            return PathPattern(content)
        if tool == FETCH:
            return DomainPattern(content)
        if tool in NAMED:
            return NamePattern(content)
    except InvalidRule as error:
        raise InvalidRule(text, error.reason) from None
    raise InvalidRule(text, f"rules for {tool} have nothing in parentheses")


def host_of(url: object) -> str | None:
    """The host that a URL surely names, in lower case; None for anything unusual."""
    found = _URL.fullmatch(url) if isinstance(url, str) and url.isprintable() else None
    return found[1].lower().rstrip(".") if found and " " not in str(url) else None
