"""A policy's rules, ready for one agent: by what they do and by tool, with their paths bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from .commands import JOINED, CommandPattern
from .partial_paths import Bindings, forms_of, is_known
from .paths import BoundPattern, PathPattern
from .rules import Rule
from .shell.programs import base_name
from .shell.script import VARIABLE, Word
from .tools import SHELL
from .verdicts import Behavior, Ground

#: The names of tools are the model's words: so many are kept.
MAX_NAMES = 500

CommandRule: TypeAlias = tuple[Rule, CommandPattern]


class BoundRules:
    """Finds the rules that may speak of a call without looking at all of them."""

    def __init__(self, rules: Iterable[Rule], ground: Ground) -> None:
        self._rules = tuple(rules)
        self._about: dict[tuple[Behavior, str], tuple[Rule, ...]] = {}
        self._wholes: dict[tuple[Behavior, str], Rule | None] = {}
        self._paths = {
            rule: rule.pattern.bind(ground, covers_below=rule.behavior != "allow")
            for rule in self._rules
            if isinstance(rule.pattern, PathPattern)
        }
        self._hidden: dict[Behavior, list[Rule]] = {"allow": [], "ask": [], "deny": []}
        for rule in self._paths:
            if rule.tool in ("Read", "Edit"):
                self._hidden[rule.behavior].append(rule)
        self._behaviors = {rule.behavior for rule in self._rules}
        self._exact: dict[tuple[Behavior, str], Rule] = {}
        self._named: dict[tuple[Behavior, str], list[CommandRule]] = {}
        self._unnamed: dict[Behavior, list[CommandRule]] = {"allow": [], "ask": [], "deny": []}
        self._first: dict[Behavior, Rule] = {}
        self._base_names: set[tuple[Behavior, str]] = set()
        for rule in self._rules:
            if rule.tool == SHELL and isinstance(rule.pattern, CommandPattern):
                self._add_command(rule, rule.pattern)

    def _add_command(self, rule: Rule, pattern: CommandPattern) -> None:
        self._first.setdefault(rule.behavior, rule)
        if pattern.is_exact:
            self._exact.setdefault((rule.behavior, pattern.text.strip()), rule)
        if pattern.name is None:
            self._unnamed[rule.behavior].append((rule, pattern))
        else:
            self._named.setdefault((rule.behavior, pattern.name), []).append((rule, pattern))
            self._base_names.add((rule.behavior, base_name(pattern.name)))

    def about(self, behavior: Behavior, tool: str) -> tuple[Rule, ...]:
        """The rules of this kind that speak of a tool."""
        found = self._about.get((behavior, tool))
        if found is None:
            mine = (rule for rule in self._rules if rule.behavior == behavior)
            found = tuple(rule for rule in mine if rule.is_for(tool))
            if len(self._about) < MAX_NAMES:
                self._about[behavior, tool] = found
        return found

    def path(self, rule: Rule) -> BoundPattern:
        return self._paths[rule]

    def has(self, behavior: Behavior) -> bool:
        """Whether there is any rule that does this."""
        return behavior in self._behaviors

    def whole(self, behavior: Behavior, tool: str) -> Rule | None:
        """A rule for all calls of a tool."""
        key = (behavior, tool)
        if key not in self._wholes:
            found = (rule for rule in self.about(behavior, tool) if rule.pattern is None)
            if len(self._wholes) >= MAX_NAMES:
                return next(found, None)
            self._wholes[key] = next(found, None)
        return self._wholes[key]

    def hidden(self, behavior: Behavior) -> list[Rule]:
        """The rules for files that all commands have to heed."""
        return self._hidden[behavior]

    def for_commands(self, behavior: Behavior) -> Rule | None:
        """Any rule for commands, the first: one of these speaks of what may be any command."""
        return self._first.get(behavior)

    def may_name(self, behavior: Behavior, name: str) -> bool:
        """Whether any of them may speak of a program of this name, wherever it is."""
        return (
            (behavior, name) in self._base_names
            or any(pattern.may_begin(name) for _, pattern in self._unnamed[behavior])
            or (behavior, name.lower()) in self._base_names
            or name.lower().startswith(JOINED)
        )

    def exact(self, behavior: Behavior, command: str) -> Rule | None:
        """A rule that is this very text."""
        return self._exact.get((behavior, command.strip()))

    def commands(self, behavior: Behavior, name: str) -> Iterator[CommandRule]:
        """The rules for commands of this name, and those that name none."""
        yield from self.named(behavior, name)
        yield from self._unnamed[behavior]

    def named(self, behavior: Behavior, name: str) -> Sequence[CommandRule]:
        """The rules for commands of this name alone."""
        return self._named.get((behavior, name), ())


def unsplit(words: Sequence[Word], bindings: Bindings) -> tuple[Word, ...]:
    """The same words; those that are written without quotes count as one each, where all that the
    script sets their variables to is known and can't be split."""
    return tuple(
        replace(word, is_one=True) if _is_unsplit(word, bindings) else word for word in words
    )


def _is_unsplit(word: Word, bindings: Bindings) -> bool:
    if word.value is not None or word.is_one or VARIABLE not in word.form:
        return False
    return all(
        is_known(form) and form and not any(map(str.isspace, form))
        for form in forms_of(word, bindings)
    )
