"""What a shell does itself with words that it evaluates: only plain uses of it are judged.

An index in a name (`read 'a[$(id)]'`) and, in zsh, any number that is asked for, is evaluated, and
runs the commands in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from .script import Unclear, Word
from .tables import EVALUATED, MISLEADING, SAFE_VARIABLES, SET_OPTIONS, SHELLS_OWN


class Changes(Exception):
    """What is set may change what programs do."""


Check = Callable[[Sequence[Word]], None]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_READ_OPTION = re.compile(r"-[ers]+|-[dnNtu][0-9]*")
#: Of a format only what takes text: zsh evaluates what is given for a number.
_FORMAT = re.compile(r"(?:[^%]|%[-0-9.]*[sb%])*")
_TEXT_TESTS = frozenset(("=", "==", "!=", "<", ">", "-nt", "-ot", "-ef"))
_NUMBER_TESTS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_NAME_TESTS = frozenset(("-v", "-R", "-t"))


#: In another encoding a shell may take half of a character for a quote or a backslash.
_LOCALE = re.compile(r"C|POSIX|(?:[A-Za-z_]+\.)?(?:UTF-8|utf-?8)", re.IGNORECASE)


def check_variable(name: str, value: str | None = "", *, is_exported: bool) -> None:
    """Whether a script may set it to this: one that only words depend on; or its own, in lower
    case, which no program is given. A value of None is not known."""
    if not _IDENTIFIER.fullmatch(name) or name in EVALUATED:
        raise Unclear("a name or a value that is evaluated")
    if name in MISLEADING:
        raise Unclear(f"it sets {name}, which changes which files its words name")
    is_own = not is_exported and name == name.lower() and name not in SHELLS_OWN
    if name not in SAFE_VARIABLES and (not is_own or name.startswith("npm_")):
        raise Changes(f"it sets {name}, which can change what programs do")
    is_locale = name == "LANG" or name.startswith("LC_")
    if is_locale and value != "" and not _LOCALE.fullmatch(value or "?"):
        raise Changes(f"it sets {name} to an encoding in which shells read commands differently")


def _read(words: Sequence[Word]) -> None:
    for word in words[1:]:
        if word.value is None:
            raise Unclear("`read` with words that are not known")
        if not _READ_OPTION.fullmatch(word.value):
            check_variable(word.value, None, is_exported=False)


def _export(words: Sequence[Word]) -> None:
    """`export` and `local` are like assignments, without any options."""
    for word in words[1:]:
        if word.value is None:
            raise Unclear("a variable is set to what is not known")
        name, _, value = word.value.partition("=")
        check_variable(name, value, is_exported=words[0].value == "export")


def _test(words: Sequence[Word]) -> None:
    args = list(words[1:])
    if words[0].value == "[" and args and args[-1].value == "]":
        args.pop()
    while args and args[0].value == "!":
        del args[0]
    if any(word.value is None and not word.is_one for word in args):
        raise Unclear("a test of words that are not known")
    values = [word.value for word in args]
    if any(value in _NAME_TESTS for value in values):
        raise Unclear("a test that evaluates a name")
    match values:
        case [] | [_]:
            return
        case [str(), _]:
            return
        case [_, str() as operator, _] if operator in _TEXT_TESTS:
            return
        case [str() as left, str() as operator, str() as right]:
            if operator in _NUMBER_TESTS and left.isdigit() and right.isdigit():
                return
    raise Unclear("a test that may evaluate what it is given")


def _printf(words: Sequence[Word]) -> None:
    given = words[1].value if len(words) > 1 else None
    if given is None or given.startswith("-") or not _FORMAT.fullmatch(given):
        raise Unclear("`printf` that may set a variable or evaluate a number")


def _set(words: Sequence[Word]) -> None:
    if len(words) == 1 or any(word.value not in SET_OPTIONS for word in words[1:]):
        raise Unclear("`set` of something that can change what commands mean")


def _number(words: Sequence[Word]) -> None:
    if any(not (word.value or "").isdigit() for word in words[1:]):
        raise Unclear(f"`{words[0].value}` with something that may be evaluated")


CHECKS: dict[str, Check] = {
    "[": _test,
    "break": _number,
    "continue": _number,
    "exit": _number,
    "export": _export,
    "local": _export,
    "printf": _printf,
    "read": _read,
    "return": _number,
    "set": _set,
    "shift": _number,
    "test": _test,
    "wait": _number,
}
