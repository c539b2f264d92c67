"""Patterns for commands: the content of a `Bash(…)` rule, matched word by word.

    npm run test:*     npm run test, and whatever follows
    git diff *         the same, with another spelling
    git * main         any words between
    npm run build      exactly that

By words and not by text, so that quotes can't make one command look like another.
"""

from __future__ import annotations

import re

from ..errors import InvalidRule
from .shell.programs import Argv

_TOKEN = re.compile(r"""'([^']*)'|"([^"]*)"|([^\s'"]+)""")


class CommandPattern:
    """A pattern for one program's words."""

    def __init__(self, text: str) -> None:
        self.text = text
        body = text.strip()
        if not body:
            raise InvalidRule(text, "the command is empty")
        self.is_open = False
        if body.endswith(":*"):
            body, self.is_open = body[:-2], True
        self.tokens = _tokens(body)
        if ":*" in body and not self.is_open:
            raise InvalidRule(text, "`:*` can only stand at the end")
        if self.tokens and self.tokens[-1] == "*" and len(self.tokens) > 1:
            self.tokens, self.is_open = self.tokens[:-1], True
        elif self.tokens and self.tokens[-1].endswith("*") and not self.is_open:
            self.is_open = True
        if not self.tokens:
            raise InvalidRule(text, "the command is empty")
        self._words = tuple(self.tokens)
        self.is_exact = not self.is_open and not any("*" in token for token in self.tokens)
        #: The program that it is for, where it names one.
        self.name = self.tokens[0] if "*" not in self.tokens[0] else None
        #: How many words it names before its first wildcard.
        wild = (at for at, token in enumerate(self.tokens) if "*" in token)
        self.fixed = next(wild, len(self.tokens))

    def matches(self, argv: Argv) -> bool:
        """Whether all of these words are surely matched."""
        count = len(self.tokens)
        if self.fixed == count:
            return argv[:count] == self._words and (self.is_open or len(argv) == count)
        return _meets(self.tokens, argv, is_open=self.is_open, in_doubt=False)

    def matches_around_options(self, argv: Argv) -> bool:
        """The same, wherever options stand between the words, with or without a value: a program's
        own options do not make another command of it."""
        states = {(0, False)}  # how many words were matched, and whether a value may follow
        for word in argv:
            if word is None:
                return False
            reached = {at for at, _ in states}
            matched = _step(self.tokens, reached, word, is_open=self.is_open, in_doubt=False)
            after = {(at, False) for at in matched}
            if word.startswith("-"):
                after |= {(at, "=" not in word) for at, _ in states if at}
            else:
                after |= {(at, False) for at, has_value in states if has_value}
            if not after:
                return False
            states = after
        return len(self.tokens) in _closure(self.tokens, {at for at, _ in states})

    def may_match(self, argv: Argv) -> bool:
        """Whether they could be, if the unknown ones were what they might be."""
        return _meets(self.tokens, argv, is_open=self.is_open, in_doubt=True)


def _tokens(body: str) -> list[str]:
    tokens, at = [], 0
    for found in re.finditer(rf"\s*({_TOKEN.pattern})", body):
        if found.start() != at:
            break
        at = found.end()
        tokens.append(next(group for group in found.groups()[1:] if group is not None))
    if body[at:].strip():
        raise InvalidRule(body, "a quote that is not closed")
    return tokens


def _meets(tokens: list[str], argv: Argv, *, is_open: bool, in_doubt: bool) -> bool:
    """Whether the words fit. An unknown one fits only wildcards; or, in doubt, anything."""
    states = {0}
    for word in argv:
        states = _step(tokens, states, word, is_open=is_open, in_doubt=in_doubt)
        if not states:
            return False
    done = _closure(tokens, states)
    if len(tokens) in done:
        return True
    # An unknown word may have been several.
    return in_doubt and None in argv


def _step(
    tokens: list[str], states: set[int], word: str | None, *, is_open: bool, in_doubt: bool
) -> set[int]:
    after: set[int] = set()
    for at in _closure(tokens, states):
        if at == len(tokens):
            if is_open or (word is None and in_doubt):
                after.add(at)
        elif tokens[at] == "*":
            after.add(at)
        elif word is None:
            if in_doubt:
                after.update(range(at, len(tokens) + 1))
        elif _fits(tokens[at], word):
            after.add(at + 1)
    return after


def _closure(tokens: list[str], states: set[int]) -> set[int]:
    """A `*` may stand for no word at all."""
    found = set(states)
    for at, token in enumerate(tokens):
        if token == "*" and at in found:
            found.add(at + 1)
    return found


def _fits(token: str, word: str) -> bool:
    return token == word if "*" not in token else like(token, word)


def like(pattern: str, text: str) -> bool:
    """Whether a text fits a pattern with any number of `*` in it; in time that is bounded by the
    product of the two."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    last = rest.pop()
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in rest:
        at = text.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True
