"""Commands that look into all files of the folders which they are given. Pure.

Owns which words of a search are folders, and which are its pattern or the value of an option: a
search that names no folder looks into the one where it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from .shell.programs import Program
from .shell.script import Word
from .shell.tables import words

HERE = Word(".")

_GREPS = frozenset(("grep", "egrep", "fgrep", "rgrep", "zgrep", "bzgrep", "xzgrep"))
_RECURSIVE = frozenset(("rg", "ag", "ack", "ugrep", "rgrep"))
#: Letters with a value, and long options with one, of all of these.
_LETTERS = "ABCDdEefgGjmMrtT"
_LETTERS_OF_GREP = "ABCDdefm"
_LONGS = tuple(
    f"--{name}"
    for name in words(
        """after-context before-context context regexp file max-count label binary-files devices
        directories exclude exclude-dir exclude-from include glob iglob ignore type type-not
        type-add max-depth max-columns replace sort sortr encoding engine threads path-separator
        colors pre pre-glob ignore-file ignore-dir dfa-size-limit regex-size-limit
        max-filesize context-separator field-context-separator field-match-separator"""
    )
)
_HAS_PATTERN = ("-e", "-f", "--regexp", "--file")


def searched_words(program: Program) -> tuple[list[Word], bool]:
    """The words for what it looks into; and whether it looks into all that is in a folder, or
    only does where one of them is a folder."""
    name, given = program.name, list(program.words[1:])
    if name == "find":
        return _operands_of_find(given) if program.inner or program.feeds else [], True
    if name == "git" and program.argv[1:2] in (("grep",), ("diff",)):
        if program.argv[1] == "diff":
            return _plain(given[1:]), False
        # It may also be given revisions, and patterns for paths.
        paths = _paths(given[1:], _LETTERS_OF_GREP)
        is_clear = Word("--") in given and not any((one.value or ":")[0] == ":" for one in paths)
        return paths if paths and is_clear else [*paths, HERE], True
    if name in ("diff", "sdiff", "cmp"):
        return _plain(given), _is_recursive(given)
    if name not in _GREPS and name not in _RECURSIVE:
        return [], False
    letters = _LETTERS_OF_GREP if name in _GREPS else _LETTERS
    is_recursive = name in _RECURSIVE or _is_recursive(given)
    paths = _paths(given, letters)
    return paths or ([HERE] if is_recursive else []), is_recursive


def _operands_of_find(given: Sequence[Word]) -> list[Word]:
    before = []
    for word in given:
        value = word.value
        if value is not None and (value in ("(", ")", "!", ",") or value.startswith("-")):
            if value in ("-H", "-L", "-P"):
                continue
            break
        before.append(word)
    return before or [HERE]


def _plain(given: Sequence[Word]) -> list[Word]:
    return [word for word in given if not (word.value or "").startswith("-") or word.value == "-"]


def _paths(given: Sequence[Word], letters: str) -> list[Word]:
    """Without the pattern."""
    operands, has_pattern, is_clear = _operands_of(given, letters)
    if not is_clear:
        return [*operands, HERE]
    if operands and not has_pattern and (operands[0].value is not None or operands[0].is_one):
        operands = operands[1:]
    return operands


def _operands_of(given: Sequence[Word], letters: str) -> tuple[list[Word], bool, bool]:
    """What is no option and no option's value; whether a pattern is given by an option; and whether
    that is surely so: an abbreviated option may have a value, or none."""
    operands: list[Word] = []
    has_pattern, is_clear, at = False, True, 0
    while at < len(given):
        word, at = given[at], at + 1
        text = word.value
        if text == "--":
            return [*operands, *given[at:]], has_pattern, is_clear
        if text is None or not text.startswith("-") or text == "-":
            operands.append(word)
            continue
        if text.startswith("--"):
            name, equals, _ = text.partition("=")
            has_pattern |= name in _HAS_PATTERN
            is_valued = not equals and name in _LONGS
            is_clear &= name in _LONGS or not any(one.startswith(name) for one in _LONGS)
            at += is_valued
            continue
        for position, letter in enumerate(text[1:], 1):
            if letter in letters:
                has_pattern |= letter in "ef"
                at += position == len(text) - 1
                break
    return operands, has_pattern, is_clear


def _is_recursive(given: Sequence[Word]) -> bool:
    for word in given:
        text = word.value or ""
        if text.startswith("--"):
            name = text.partition("=")[0]
            longs = ("--recursive", "--dereference-recursive", "--directories")
            if len(name) > 4 and any(one.startswith(name) for one in longs):
                return True
        elif text.startswith("-") and any(letter in text for letter in "rRd"):
            return True
    return False
