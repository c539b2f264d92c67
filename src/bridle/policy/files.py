"""Policies as text: Bridle's own files (TOML) and the `permissions` of Claude's settings (JSON).

    preset = "edits"
    include = ["team.toml"]       # beside this file; also one of Claude's settings files
    allow = ["Bash(npm test:*)"]
    deny = ["Read(./secrets/**)"]
    human_only = ["Bash(git push:*)"]

    [[delegate]]
    rules = ["Bash(npm test:*)"]

Owns the format; reading files is whoever's work that gives `read`. A mistake is refused with its
file and line, and nothing of the policy is then in force.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from ..errors import InvalidPolicy, InvalidRule
from .delegable import Delegable, delegable
from .policy import Policy
from .presets import NAMES, Preset
from .rules import Rule, parse_rule
from .verdicts import Behavior

BEHAVIORS: tuple[Behavior, ...] = ("deny", "ask", "allow")
KEYS = frozenset(("preset", "include", "guard", "human_only", "delegate", *BEHAVIORS))
#: Of an entry of `delegate`.
ENTRY_KEYS = ("rules", "count", "seconds", "paths")
MAX_INCLUDES = 50

_TOML_LINE = re.compile(r"\(at line (\d+)")
_AT_END = "at end of document"


def parse_policy(text: str, source: str, read: Callable[[str], str] | None = None) -> Policy:
    """A policy from the text of a TOML file. `read` gives the text of files that it includes."""
    preset: Preset | None = None
    has_guard: bool | None = None
    delegate: list[Delegable] | None = None
    rules: list[Rule] = []
    people: list[Rule] = []
    waiting, seen = [(source, text)], {source}
    while waiting:
        file, body = waiting.pop(0)
        if file.endswith(".json"):
            rules += parse_settings(body, file)
            continue
        table = _table(body, file)
        preset = preset or _preset(table, body, file)
        has_guard = _guard(table, body, file) if has_guard is None else has_guard
        delegate = _delegate(table, body, file) if delegate is None else delegate
        rules += _rules(table, body, file)
        people += _listed(table, "human_only", "ask", body, file)
        for included in _includes(table, body, file):
            if included in seen:
                continue
            if read is None or len(seen) > MAX_INCLUDES:
                why = f"more than {MAX_INCLUDES} files" if read else "files can't be read here"
                reason = f"can't include {included}: {why}"
                raise InvalidPolicy(file, _line(body, "include"), reason)
            seen.add(included)
            waiting.append((included, _included(read, included, file, body)))
    return Policy(
        preset or "ask",
        has_guard=has_guard is not False,
        rules=rules,
        files=seen,
        human_only=people,
        delegate=delegate,
    )


def parse_settings(text: str, source: str) -> list[Rule]:
    """The rules in one of Claude's settings files."""
    try:
        settings = msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        raise InvalidPolicy(source, None, f"it is no JSON: {error}") from error
    permissions = settings.get("permissions", {}) if isinstance(settings, dict) else None
    if not isinstance(permissions, dict):
        raise InvalidPolicy(source, None, "its permissions are no table")
    return _rules(permissions, text, source)


def _table(text: str, source: str) -> Mapping[str, Any]:
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        found = _TOML_LINE.search(str(error))
        line = int(found[1]) if found else None
        if _AT_END in str(error):
            line = text.rstrip().count("\n") + 1
        raise InvalidPolicy(source, line, f"it is no TOML: {error}") from error
    for key in table:
        if key not in KEYS:
            known = ", ".join(sorted(KEYS))
            raise InvalidPolicy(source, _line(text, key), f"no such key {key!r}: use {known}")
    return table


def _preset(table: Mapping[str, Any], text: str, source: str) -> Preset | None:
    given = table.get("preset")
    if given is not None and given not in NAMES:
        reason = f"no preset {given!r}: use {', '.join(NAMES)}"
        raise InvalidPolicy(source, _line(text, "preset"), reason)
    return given


def _guard(table: Mapping[str, Any], text: str, source: str) -> bool | None:
    given = table.get("guard")
    if not isinstance(given, bool | None):
        raise InvalidPolicy(source, _line(text, "guard"), "guard is true or false")
    return given


def _includes(table: Mapping[str, Any], text: str, source: str) -> list[str]:
    given = table.get("include", [])
    if not isinstance(given, list) or not all(isinstance(one, str) and one for one in given):
        raise InvalidPolicy(source, _line(text, "include"), "include is a list of files")
    folder = posixpath.dirname(source)
    return [posixpath.normpath(posixpath.join(folder, one)) for one in given]


def _included(read: Callable[[str], str], file: str, source: str, text: str) -> str:
    try:
        return read(file)
    except (OSError, UnicodeDecodeError) as error:
        line = _line(text, posixpath.basename(file))
        raise InvalidPolicy(source, line, f"can't read {file}: {error}") from error


def _rules(table: Mapping[str, Any], text: str, source: str) -> list[Rule]:
    rules: list[Rule] = []
    for behavior in BEHAVIORS:
        rules += _listed(table, behavior, behavior, text, source)
    return rules


def _listed(
    table: Mapping[str, Any], key: str, behavior: Behavior, text: str, source: str, first: int = 1
) -> list[Rule]:
    """The rules that stand under a key, in a text that begins with this line of the file."""
    given = table.get(key, [])
    if not isinstance(given, list):
        raise InvalidPolicy(source, _from(first, _line(text, key)), f"{key} is a list of rules")
    rules: list[Rule] = []
    for index, rule in enumerate(given):
        line = _from(first, _line_of_rule(text, rule, given[:index].count(rule)))
        try:
            where = f"{source}:{line}" if line else source
            rules.append(parse_rule(rule, behavior, where))
        except InvalidRule as error:
            raise InvalidPolicy(source, line, str(error)) from error
    return rules


def _delegate(table: Mapping[str, Any], text: str, source: str) -> list[Delegable] | None:
    given = table.get("delegate")
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        reason = "delegate is a list of tables, [[delegate]] each; [] is nothing"
        raise InvalidPolicy(source, _line(text, "delegate"), reason)
    parts = _parts(text)
    # In another form than under [[delegate]] it can stand anywhere.
    places = parts if len(parts) == len(given) else [(1, text)] * len(given)
    return [
        _entry(one, part, source, first) for one, (first, part) in zip(given, places, strict=True)
    ]


def _entry(table: Mapping[str, Any], text: str, source: str, first: int) -> Delegable:
    for key in table:
        if key not in ENTRY_KEYS:
            known = ", ".join(ENTRY_KEYS)
            hint = "write it above the first [[delegate]]" if key in KEYS else f"use {known}"
            reason = f"no such key {key!r} in delegate: {hint}"
            raise InvalidPolicy(source, _from(first, _line(text, key)), reason)
    rules = _listed(table, "rules", "allow", text, source, first)
    head = _from(first, _line(text, "rules")) or _from(first, _line(text, "delegate"))
    if not rules:
        raise InvalidPolicy(source, head, "an entry of delegate has rules")
    paths = table.get("paths", [])
    if not isinstance(paths, list):
        reason = "paths is a list: ./packages/**"
        raise InvalidPolicy(source, _from(first, _line(text, "paths")), reason)
    for name in ("count", "seconds", "paths"):
        try:
            given = {"paths": paths} if name == "paths" else {name: table.get(name)}
            delegable(["Read"], **given)
        except (InvalidPolicy, InvalidRule) as error:
            reason = getattr(error, "reason", str(error))
            raise InvalidPolicy(source, _from(first, _line(text, name)), reason) from error
    return Delegable(tuple(rules), table.get("count"), table.get("seconds"), tuple(paths))


def _parts(text: str) -> list[tuple[int, str]]:
    """The entries of `delegate`: the line with which each begins, and its text."""
    heads = [n for n, line in _lines(text) if line.replace(" ", "").startswith("[[delegate]]")]
    lines = text.split("\n")
    ends = [*(head - 1 for head in heads[1:]), len(lines)][: len(heads)]
    return [(head, "\n".join(lines[head - 1 : end])) for head, end in zip(heads, ends, strict=True)]


def _from(first: int, line: int | None) -> int | None:
    return None if line is None else line + first - 1


def _line(text: str, word: str) -> int | None:
    """The line on which a key stands, or else the first with this word; comments do not count."""
    lines = list(_lines(text))
    key = re.compile(rf"\s*\"?{re.escape(word)}\"?\s*[=:]")
    any_place = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
    for found in (key.match, any_place.search):
        for number, line in lines:
            if found(line):
                return number
    return None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.lstrip().startswith("#"):
            yield number, line


def _line_of_rule(text: str, rule: object, skip: int) -> int | None:
    """The line of a rule: parsers of TOML and JSON do not tell it."""
    if not isinstance(rule, str):
        return None
    escaped = rule.replace("\\", "\\\\").replace('"', '\\"')
    forms = {f'"{rule}"', f"'{rule}'", f'"{escaped}"'}
    found = [number for number, line in _lines(text) if any(form in line for form in forms)]
    return found[min(skip, len(found) - 1)] if found else None
