"""Patterns for commands: the content of a `Bash(…)` rule, matched word by word.

    npm run test:*     npm run test, and whatever follows
    git diff *         the same, with another spelling
    git * main         any words between
    npm run build      exactly that

By words and not by text, so that quotes can't make one command look like another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from ..errors import InvalidRule
from .shell.programs import Argv, base_name
from .shell.script import UNKNOWN, Word
from .shell.tables import GIT_VALUED

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
        return _meets(self.tokens, argv, is_open=self.is_open)

    def may_begin(self, name: str) -> bool:
        """Whether it speaks of the end of some words, from a program of this name on, without
        speaking of all of them: a `*` stands for whatever is before."""
        first = self.tokens[0]
        return first != "*" and ("/" in first or _fits(first, name))

    def matches_around_options(self, argv: Argv, words: Sequence[Word] = ()) -> bool:
        """The same, wherever options stand between the words, with or without a value: a program's
        own options do not make another command of it. Nor do the other targets of a `make`."""
        return self._meets_around(argv, words, in_doubt=False)

    def may_match(self, argv: Argv, words: Sequence[Word] = ()) -> bool:
        """Whether it could be so, if the unknown words were what they might be. `words` are the
        same with what is known of these."""
        return self._meets_around(argv, words, in_doubt=True)

    def _meets_around(self, argv: Argv, words: Sequence[Word], *, in_doubt: bool) -> bool:
        name = base_name(argv[0] or "")
        takes: _Takes | None = _Takes(name, self.tokens)
        states = {(0, _FREE)}
        for number, word in enumerate(argv):
            after: set[_State] = set()
            for state in states:
                if word is not None:
                    after |= self._after(state, word, takes)
                else:
                    known = words[number] if number < len(words) else UNKNOWN
                    after |= self._after_unknown(state, known, in_doubt=in_doubt)
                at, before = state
                if at and (before or name in TAKES_TARGETS) and not (word or "").startswith("-"):
                    after.add((at, _FREE))
            if not after:
                return False
            states = after
            if word == "--":
                takes = None
        return len(self.tokens) in _closure(self.tokens, {at for at, _ in states})

    def _after(self, state: _State, word: str, takes: _Takes | None) -> set[_State]:
        at, before = state
        found: set[_State] = set()
        if before != _VALUE:
            found = {(to, _FREE) for to in _step(self.tokens, {at}, word, is_open=self.is_open)}
            if "," in word and self.tokens[0] == "tox":  # `tox -e lint,deploy`
                for one in word.split(","):
                    more = _step(self.tokens, {at}, one, is_open=self.is_open)
                    found |= {(to, _FREE) for to in more}
        if at and word.startswith("-"):
            is_value = before == _FREE and takes is not None and takes.value(at, word)
            found.add((at, _FREE if "=" in word else _VALUE if is_value else _MAY_BE_VALUE))
        return found

    def _after_unknown(self, state: _State, word: Word, *, in_doubt: bool) -> set[_State]:
        at, before = state
        start = _WILD.split(word.pattern or "*", maxsplit=1)[0]
        found = {(to, _FREE) for to in _step(self.tokens, {at}, None, is_open=self.is_open)}
        if at and start.startswith("-"):
            found.add((at, _FREE if "=" in start else _MAY_BE_VALUE))
        if not in_doubt:
            return found
        # A glob stands for several words, but none of those is the name of a command.
        if not (word.is_one or word.is_found or (word.is_glob and "/" in start)):
            return found | {(to, _MAY_BE_VALUE) for to in range(at, len(self.tokens) + 1)}
        if before == _VALUE:
            return found
        for to in _closure(self.tokens, {at}):
            if to < len(self.tokens) and _may_fit(self.tokens[to], start):
                found.add((to + 1, _FREE))
        if at and not start:
            found.add((at, _MAY_BE_VALUE))
        return found


#: How many words of a pattern are matched, and whether the next word is the value of an option.
_State: TypeAlias = tuple[int, int]
_FREE, _MAY_BE_VALUE, _VALUE = range(3)
_WILD = re.compile(r"[*?\[]")

#: `git-push` is `git push`.
JOINED = ("cargo-", "docker-", "git-", "kubectl-")
#: Programs that do several things in one call: `make all deploy` is a `make deploy`.
TAKES_TARGETS = frozenset(
    (
        *("ant", "doit", "fab", "gmake", "gradle", "gradlew", "grunt", "gulp", "inv", "invoke"),
        *("just", "lein", "mage", "make", "mvn", "mvnw", "ninja", "nox", "rake", "sbt", "task"),
        *("tox", "turbo"),
    )
)


class _Takes:
    """Which of a program's options surely take the next word for their value.

    Few are known, and only from these an unknown value is told from an unknown command. Of any
    other option the next word may be either.
    """

    def __init__(self, name: str, tokens: Sequence[str]) -> None:
        self._name = name
        self._tokens = tokens
        self._anywhere = _VALUED.get(name, _NONE)

    def value(self, at: int, option: str) -> bool:
        if option in self._anywhere:
            return True
        if "*" in self._tokens[:at] or self._tokens[at : at + 1] == ["*"]:
            return False
        return option in _VALUED_BEHIND.get((self._name, *self._tokens[1:at]), _NONE)


def _options(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NONE: frozenset[str] = frozenset()
_MAKE = _options("-C -f -I -o -W --directory --file --makefile --include-dir --old-file --what-if")
#: By program, wherever they stand.
_VALUED = {
    "aws": _options("--profile --region --output --endpoint-url --query --color --ca-bundle"),
    "cargo": _options("--config --manifest-path --color -Z -C"),
    "gcloud": _options("--project --account --configuration --format --verbosity"),
    "gh": _options("-R --repo"),
    "gmake": _MAKE,
    "gradle": _options("-p -b -c -g -I --project-dir --build-file --gradle-user-home"),
    "gradlew": _options("-p -b -c -g -I --project-dir --build-file --gradle-user-home"),
    "helm": _options("-n --namespace --kube-context --kubeconfig"),
    "just": _options("-f -d --justfile --working-directory"),
    "kubectl": _options(
        """-n --namespace --context --cluster --kubeconfig --server --user --token --as
        --request-timeout --cache-dir --certificate-authority"""
    ),
    "make": _MAKE,
    "mvn": _options("-f -pl -P -s --file --projects --settings"),
    "ninja": _options("-C -f -j -k -l"),
    "npm": _options("-C -w --prefix --workspace --registry --userconfig --cache --loglevel --tag"),
    "pnpm": _options("-C -F --dir --filter --registry"),
    "poetry": _options("-C -P --directory --project"),
    "rake": _options("-f --rakefile -C --directory"),
    "uv": _options("--directory --project --config-file --cache-dir"),
    "yarn": _options("--cwd"),
}
_COMPOSE = _options(
    "-f -p --file --project-name --profile --env-file --project-directory --parallel --progress"
)
#: By program and command, right behind these.
_VALUED_BEHIND = {
    ("docker",): _options("-c -H -l --context --host --config --log-level"),
    ("docker", "compose"): _COMPOSE,
    ("docker-compose",): _COMPOSE,
    ("git",): GIT_VALUED,
    ("go",): _options("-C"),
    ("podman", "compose"): _COMPOSE,
}


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


def _meets(tokens: list[str], argv: Argv, *, is_open: bool) -> bool:
    """Whether the words surely fit. An unknown one fits only wildcards."""
    states = {0}
    for word in argv:
        states = _step(tokens, states, word, is_open=is_open)
        if not states:
            return False
    return len(tokens) in _closure(tokens, states)


def _step(tokens: list[str], states: set[int], word: str | None, *, is_open: bool) -> set[int]:
    after: set[int] = set()
    for at in _closure(tokens, states):
        if at == len(tokens):
            if is_open:
                after.add(at)
        elif tokens[at] == "*":
            after.add(at)
        elif word is not None and _fits(tokens[at], word):
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


def _may_fit(token: str, start: str) -> bool:
    """Whether a word of which only the start is known may be this one."""
    return "*" in token or token.startswith(start)


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
