"""Whether a reader saw all that a shell really did. Owns the comparison, not the running."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Iterator, Sequence

from bridle.policy.shell.programs import Commands, Program
from bridle.policy.shell.script import Word

from .sandbox import HOME, Ran


def misses(seen: Commands, ran: Ran) -> list[str]:
    """What was done and not seen, in words."""
    programs = list(flattened(seen.programs))
    found = [
        f"ran {argv}"
        for argv in ran.commands
        if not any(_matches(_pattern(program), argv) for program in programs)
    ]
    targets = [redirect.target for redirect in seen.redirects if redirect.writes]
    if all(target.value is not None for target in targets):
        known = {os.path.normpath(_value(target) or "") for target in targets}
        found += [f"wrote {name!r}" for name in sorted(ran.files - known)]
    return found


def flattened(programs: Iterable[Program]) -> Iterator[Program]:
    for program in programs:
        yield program
        yield from flattened(program.inner)


def _value(word: Word) -> str | None:
    if word.is_home and word.value is not None:
        return HOME + word.value[1:]
    return word.value


def _pattern(program: Program) -> list[Word]:
    if len(program.words) == len(program.argv):
        return list(program.words)
    return [Word(value) for value in program.argv]


def _matches(pattern: Sequence[Word], argv: Sequence[str]) -> bool:
    """Like a glob: a word that is not known is any number of words, or one if that is promised."""
    ends = {0}
    for word in pattern:
        value = _value(word)
        if value is not None:
            ends = {end + 1 for end in ends if end < len(argv) and argv[end] == value}
        elif word.is_one:
            ends = {end + 1 for end in ends if end < len(argv)}
        elif ends:
            ends = set(range(min(ends), len(argv) + 1))
    return len(argv) in ends
