"""Compound commands: groups, loops, conditions, functions. A part of the reader's grammar."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from .script import UNKNOWN, Assign, Unclear, Word

if TYPE_CHECKING:
    from .reader import Reader

_FOR = re.compile(r"for[ \t]+([A-Za-z_][A-Za-z0-9_]*)(?=[ \t\n;])")
_IN = re.compile(r"in(?=[ \t\n])")
_NAMED = re.compile(r"function[ \t]+[A-Za-z_][A-Za-z0-9_-]*(?=[ \t\n(])[ \t]*(?:\([ \t]*\))?")
_COMPARES = re.compile(r"(?:==|!=|=|<|>|!)(?=[ \t])")
#: These evaluate what they are given as arithmetic, or read it with a quoting of their own.
_EVALUATES = frozenset(("=~", "-v", "-R", "-t", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"))


def compound(reader: Reader, opening: str) -> None:
    """Read the compound command that begins here with this keyword or parenthesis."""
    read = _READ.get(opening)
    if read is None:
        raise Unclear(f"`{opening}` where a command should be")
    reader.deepen_compound()
    read(reader)
    reader.nesting -= 1


def function_body(reader: Reader) -> None:
    """A function's body: judged as if it ran, for it may."""
    reader.lines()
    opening = "(" if reader.peek() == "(" else reader.keyword()
    if opening not in ("(", "{"):
        raise Unclear("a function of an unusual form")
    repeats, reader.repeats = reader.repeats, True
    compound(reader, opening)
    reader.repeats = repeats


def _skip(reader: Reader, keyword: str) -> None:
    if reader.keyword() != keyword:
        raise Unclear(f"`{keyword}` is missing")
    reader.at += len(keyword)


def _part(reader: Reader, *until: str) -> str:
    """A list up to one of these keywords, which is stepped over."""
    reader.list_until(frozenset(until))
    found = reader.keyword()
    if found not in until:
        raise Unclear(f"`{until[0]}` is missing")
    reader.at += len(found)
    return found


def _subshell(reader: Reader) -> None:
    if reader.text.startswith("((", reader.at):
        raise Unclear("arithmetic, or two parentheses at once")
    reader.at += 1
    reader.list_until(frozenset())
    if reader.peek() != ")":
        raise Unclear("a parenthesis that is not closed")
    reader.at += 1


def _group(reader: Reader) -> None:
    reader.at += 1
    if reader.peek() not in (" ", "\t", "\n"):
        raise Unclear("a brace without a blank behind it")
    _part(reader, "}")


def _if(reader: Reader) -> None:
    reader.at += 2
    _part(reader, "then")
    while True:
        match _part(reader, "elif", "else", "fi"):
            case "elif":
                _part(reader, "then")
            case "else":
                _part(reader, "fi")
                return
            case _:
                return


def _loop(reader: Reader) -> None:
    reader.at += 5  # `while` or `until`
    repeats, reader.repeats = reader.repeats, True
    _part(reader, "do")
    _part(reader, "done")
    reader.repeats = repeats


def _for(reader: Reader) -> None:
    found = _FOR.match(reader.text, reader.at)
    if not found:
        raise Unclear("a loop of an unusual form")
    reader.at = found.end()
    reader.lines()
    words: list[Word] = []
    if _IN.match(reader.text, reader.at):
        reader.at += 2
        reader.blanks()
        while (char := reader.peek()) and char not in "\n;":
            if char in "&|<>()":
                raise Unclear("a loop of an unusual form")
            words.append(reader.word())
            reader.check_word_end()
            reader.blanks()
    loops = [Assign(found[1], word) for word in words or [UNKNOWN]]
    reader.add(assigns=[Assign(found[1], UNKNOWN)], loops=loops)
    if reader.peek() == ";":
        reader.at += 1
    reader.lines()
    _skip(reader, "do")
    repeats, reader.repeats = reader.repeats, True
    _part(reader, "done")
    reader.repeats = repeats


def _case(reader: Reader) -> None:
    if reader.depth:
        raise Unclear("`case` inside of a substitution")
    reader.at += 4
    reader.blanks()
    reader.word()
    reader.lines()
    _skip(reader, "in")
    reader.lines()
    while reader.keyword() != "esac":
        _clause(reader)
        reader.lines()
    reader.at += 4


def _clause(reader: Reader) -> None:
    if reader.peek() == "(":
        reader.at += 1
    while True:
        reader.blanks()
        reader.word()
        reader.blanks()
        char = reader.peek()
        reader.at += 1
        if char == ")":
            break
        if char != "|":
            raise Unclear("a pattern of an unusual form")
    reader.lines()
    if reader.keyword() != "esac" and not reader.text.startswith(";;", reader.at):
        reader.list_until(frozenset(("esac",)))
    if reader.text.startswith(";;", reader.at):
        if reader.peek(2) == "&":
            raise Unclear("a clause that falls through")
        reader.at += 2
    elif reader.keyword() != "esac":
        raise Unclear("`esac` is missing")


def _function(reader: Reader) -> None:
    found = _NAMED.match(reader.text, reader.at)
    if not found or reader.is_posix:
        raise Unclear("a function of an unusual form")
    reader.at = found.end()
    function_body(reader)


def _test(reader: Reader) -> None:
    if reader.is_posix:
        raise Unclear("`[[`, which sh does not know")
    reader.at += 2
    count = 0
    while True:
        reader.blanks()
        compares = _COMPARES.match(reader.text, reader.at)
        if compares:
            reader.at = compares.end()
        elif reader.text.startswith(("&&", "||"), reader.at):
            reader.at += 2
        else:
            word = reader.word()
            reader.check_word_end()
            if word.is_bare and word.value == "]]":
                break
            if word.value in _EVALUATES:
                raise Unclear(f"`{word.value}`, which evaluates what it is given")
            count += 1
    if not count:
        raise Unclear("an empty test")


_READ: dict[str, Callable[[Reader], None]] = {
    "(": _subshell,
    "{": _group,
    "if": _if,
    "while": _loop,
    "until": _loop,
    "for": _for,
    "case": _case,
    "function": _function,
    "[[": _test,
}
