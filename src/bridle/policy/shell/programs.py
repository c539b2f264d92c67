"""Which programs a simple command runs: wrappers are looked through, shells are read.

    timeout 5 sh -c 'npm test | tee log'   ->   timeout …, sh …, npm test, tee log

A program that is called by its path may be anything, whatever its name: what it seems to run is
seen too, so that deny rules reach it, but the program itself needs a rule of its own.

Owns how wrappers and shells are looked through; rules are matched elsewhere.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from .builtins import CHECKS, Changes, check_variable
from .reader import read_script
from .script import UNKNOWN, Redirect, Simple, Unclear, Word
from .tables import (
    EXECUTES,
    FIND_DELETES,
    FIND_PLAIN,
    FIND_VALUED,
    GIT_QUIET,
    GIT_VALUED,
    OPAQUE,
    SHELL_FLAGS,
    SHELLS,
    SILENT,
    UNREAD,
    WRAPPERS,
    Wrapper,
)

Argv = tuple[str | None, ...]


class Program(Struct, frozen=True):
    """A program that would run, with the words that are known of it; None is any number of words.

    `inner` are those that it runs itself. `is_clear`: it does no more than running them, so that
    it needs no rule of its own. A rule that names more than `reach` words of it also covers what
    is inside.
    """

    argv: Argv
    words: tuple[Word, ...] = ()
    inner: tuple[Program, ...] = ()
    is_clear: bool = False
    reach: int = 0
    repeats: bool = False
    #: Whether only a rule that reaches so far allows it at all.
    is_odd: bool = False
    #: Whether the names that it prints are given to another program as they are.
    feeds: bool = False

    @property
    def name(self) -> str:
        return base_name(self.argv[0] or "")


class Commands(Struct):
    """What a whole script would run and open; `unclear` says what of it is not known.

    `changes` says why its programs may do something else than their names say: it sets variables
    for them, or reads a file into the shell.
    """

    programs: list[Program]
    redirects: list[Redirect]
    unclear: str = ""
    changes: str = ""
    #: What variables are set to, anywhere in it.
    variables: dict[str, list[Word]] = {}


MAX_INSIDE = 12
MAX_KEPT = 4_000

_BUNCH = re.compile(r"-[cefluvx]+")
#: `-newerXY`, and the times of GNU's find and of bfs.
_FIND_TIMES = re.compile(r"-newer[aBcm][aBcmt]|-[aBcm](?:min|time|newer)")
_ASSIGNS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def base_name(path: str) -> str:
    return path.rpartition("/")[2]


def read_commands(text: str, *, is_posix: bool = False) -> Commands:
    """What a script would run. Never raises: what is not known is told in `unclear`.

    A short one is kept for a while, for agents say the same again, and the CLI asks about it twice:
    what is given is not to be changed.
    """
    read = _kept if len(text) <= MAX_KEPT else _read
    return read(text, 0, is_posix=is_posix)


def _read(text: str, depth: int, *, is_posix: bool) -> Commands:
    found = Commands([], [])
    try:
        simples = read_script(text, is_posix=is_posix)
    except Unclear as error:
        found.unclear = str(error)
        return found
    read: dict[int, int] = {}
    for simple in simples:
        found.redirects += simple.redirects
        _note_variables(simple, found)
        if simple.is_text:
            found.programs.append(Program(("cat",), simple.words, is_clear=True))
            continue
        try:
            _check_assigns(simple)
        except Changes as error:
            found.changes = found.changes or str(error)
        except Unclear as error:
            found.unclear = found.unclear or str(error)
        try:
            if simple.words:
                program = _program(simple.words, simple.repeats, found, depth)
                if (at := read.get(id(simple.reads))) is not None:
                    program = _fed(program, at, found)
                read[id(simple)] = len(found.programs)
                found.programs.append(program)
        except Unclear as error:
            found.unclear = found.unclear or str(error)
    return found


_kept = lru_cache(256)(_read)


def _note_variables(simple: Simple, found: Commands) -> None:
    name = simple.words[0].value if simple.words else None
    for assign in simple.loops or simple.assigns:
        found.variables.setdefault(assign.name, []).append(assign.value)
    for word in simple.words[1:] if name in ("export", "local", "read", "printf") else ():
        variable, equals, _ = (word.value or word.form).partition("=")
        value = replace(word, value=word.value and word.value.partition("=")[2],
                        form=word.form.partition("=")[2]) if equals else UNKNOWN  # fmt: skip
        found.variables.setdefault(variable, []).append(value)


def _check_assigns(simple: Simple) -> None:
    for assign in simple.assigns:
        check_variable(assign.name, assign.value.value, is_exported=bool(simple.words))


def _program(words: tuple[Word, ...], repeats: bool, found: Commands, depth: int) -> Program:
    name = words[0].value
    if not name or name[0] in "%-" or "=" in name or any(char.isspace() for char in name):
        raise Unclear("a command whose name is not known")
    if depth > MAX_INSIDE:
        raise Unclear("it is nested too deeply")
    argv = tuple(word.value for word in words)
    base = base_name(name)
    if base in OPAQUE:
        raise Unclear(f"`{base}` can run or change anything")
    if base in SHELLS:
        return _as_named(_shell(argv, words, found, depth))
    if base in WRAPPERS:
        return _as_named(_wrapped(WRAPPERS[base], argv, words, repeats, found, depth))
    if base == "git":
        return _as_named(_git(argv, words))
    inner = _found(argv, words, repeats, found, depth) if base == "find" else ()
    _check_builtin(base, words, found)
    return Program(argv, words, inner, is_clear=name in SILENT, repeats=repeats)


def _as_named(program: Program) -> Program:
    """Only a bare name is surely the program that we know by it."""
    if program.argv[0] == program.name:
        return program
    return replace(program, is_clear=False)


def _check_builtin(base: str, words: tuple[Word, ...], found: Commands) -> None:
    if base in ("source", "."):
        _sourced(words, found)
    elif base in CHECKS:
        try:
            CHECKS[base](words)
        except Changes as error:
            found.changes = found.changes or str(error)


def _sourced(words: tuple[Word, ...], found: Commands) -> None:
    if len(words) != 2 or words[1].value is None:
        raise Unclear(f"`{words[0].value}` of something that is not known")
    found.changes = found.changes or f"it reads {words[1].value} into the shell"


# --- wrappers


def _wrapped(
    wrapper: Wrapper,
    argv: Argv,
    words: tuple[Word, ...],
    repeats: bool,
    found: Commands,
    depth: int,
) -> Program:
    base = base_name(argv[0] or "")
    if base == "command" and argv[1:2] in (("-v",), ("-V",)):
        return Program(argv, words, is_clear=True)
    at, replaced = _options(wrapper, argv, base)
    at += wrapper.leading
    while wrapper.assigns and at < len(argv) and _ASSIGNS.match(word := argv[at] or ""):
        try:
            name, _, value = word.partition("=")
            check_variable(name, value, is_exported=True)
        except Changes as error:
            found.changes = found.changes or str(error)
        at += 1
    if None in argv[:at]:
        raise Unclear(f"the options of `{base}` are not known")
    if at >= len(argv):
        echo = (Program(("echo", None)),) if base == "xargs" else ()
        return Program(argv, words, echo, is_clear=base != "env")
    rest = words[at:]
    if wrapper.appends:
        rest = (*(_replaced(word, replaced) for word in rest), Word(None))
    inner = _program(rest, repeats, found, depth + 1)
    return Program(argv, words, (inner,), wrapper.is_clear, at, repeats)


def _fed(program: Program, at: int, found: Commands) -> Program:
    """`find … -print0 | xargs -0 …`: only with these are names passed on as they are."""
    finds = found.programs[at]
    prints = [word for word in finds.argv if (word or "-print").startswith(("-print", "-ls"))]
    if finds.argv[0] != "find" or finds.inner or prints != ["-print0"] or not program.inner:
        return program
    [inner] = program.inner
    own = program.argv[: 1 - len(inner.argv)]
    if own[:2] not in (("xargs", "-0"), ("xargs", "--null")) or not set(own[2:]) <= {
        "-r",
        "-n",
        "1",
    }:
        return program
    found.programs[at] = replace(finds, feeds=True)
    given = replace(inner, words=(*inner.words[:-1], Word(None, is_found=True)))
    return replace(program, inner=(given,))


def _replaced(word: Word, mark: str) -> Word:
    """xargs -I: a word with the mark in it is not known."""
    return Word(None) if mark and word.value and mark in word.value else word


def _options(wrapper: Wrapper, argv: Argv, base: str) -> tuple[int, str]:
    """Where the wrapper's own options end, and what xargs is to replace."""
    at, replaced = 1, ""
    while at < len(argv):
        word = argv[at]
        if word is None:
            raise Unclear(f"the options of `{base}` are not known")
        if word == "--":
            return at + 1, replaced
        if not word.startswith("-") or (word == "-" and word not in wrapper.flags):
            break
        name, value = _split_option(word)
        if word in wrapper.flags or (base == "nice" and word[1:].isdigit()):
            at += 1
        elif name in wrapper.valued:
            if not value and (name == word):
                at += 1
                value = argv[at] if at < len(argv) else None
            if name in ("-I", "--replace"):
                replaced = value or "{}"
            at += 1
        elif not word.startswith("--") and all(f"-{char}" in wrapper.flags for char in word[1:]):
            at += 1
        else:
            raise Unclear(f"`{base}` with the option {word}")
    return at, replaced


def _split_option(word: str) -> tuple[str, str | None]:
    if word.startswith("--"):
        name, _, value = word.partition("=")
        return name, value
    return word[:2], word[2:]


# --- programs that run others


def _shell(argv: Argv, words: tuple[Word, ...], found: Commands, depth: int) -> Program:
    """`sh -c 'script'` is read; a script's file is a program like any other."""
    at, reads = 1, False
    while at < len(argv):
        word = argv[at]
        if word is None:
            raise Unclear("a shell whose options are not known")
        if _BUNCH.fullmatch(word):
            reads = reads or "c" in word
        elif word.startswith(("-", "+")) and word not in SHELL_FLAGS:
            raise Unclear(f"a shell with the option {word}")
        elif word not in SHELL_FLAGS:
            break
        at += 1
    if at >= len(argv):
        raise Unclear("a shell that reads its commands from elsewhere")
    if not reads:
        return Program(argv, words)
    script = argv[at]
    if script is None:
        raise Unclear("a shell whose commands are not known")
    is_posix = base_name(argv[0] or "") not in ("bash", "zsh")
    inner = _read(script, depth + 1, is_posix=is_posix)
    found.redirects += inner.redirects
    for name, values in inner.variables.items():
        found.variables.setdefault(name, []).extend(values)
    found.unclear = found.unclear or inner.unclear
    found.changes = found.changes or inner.changes
    return Program(argv, words, tuple(inner.programs), is_clear=True)


def _found(
    argv: Argv, words: tuple[Word, ...], repeats: bool, found: Commands, depth: int
) -> tuple[Program, ...]:
    """What `find` runs on what it finds."""
    inner: list[Program] = []
    at = 1
    while at < len(argv):
        word = argv[at]
        if word is None and not words[at].is_no_option:
            raise Unclear("`find` with words that are not known")
        at += 1
        if word in FIND_DELETES:
            inner.append(Program(("rm", None)))
        elif not word or word[0] != "-" or word in FIND_PLAIN:
            continue
        elif word in FIND_VALUED or _FIND_TIMES.fullmatch(word):
            at += 1
        elif word not in EXECUTES:
            found.unclear = found.unclear or f"`find` with {word}"
        else:
            if word in UNREAD:
                found.unclear = found.unclear or f"`find` with {word}"
            end = at
            while end < len(argv) and not _ends_exec(argv, end, word):
                end += 1
            if end == at or end == len(argv):
                raise Unclear(f"`find` with {word} and no command")
            inner.append(
                _program(tuple(_with_found(w) for w in words[at:end]), repeats, found, depth + 1)
            )
            at = end + 1
    return tuple(inner)


def _with_found(word: Word) -> Word:
    if word.value == "{}":
        return Word(None, is_found=True)
    return _replaced(word, "{}")


def _ends_exec(argv: Argv, at: int, option: str) -> bool:
    """`;` ends it anywhere; `+` only behind the braces, and for those that take many at once."""
    is_many = option in ("-exec", "-execdir") and argv[at - 1] == "{}"
    return argv[at] == ";" or (argv[at] == "+" and is_many)


def _git(argv: Argv, words: tuple[Word, ...]) -> Program:
    """git's own options are looked through: `git -C x push` is a `git push` too."""
    at, reach = 1, 0
    while at < len(argv):
        word = argv[at]
        if word is None:
            raise Unclear("`git` with a command that is not known")
        if not word.startswith("-"):
            break
        if word not in GIT_QUIET:
            at += word in GIT_VALUED
            reach = at
        at += 1
    if at == 1 or at >= len(argv):
        return Program(argv, words)
    inner = Program((argv[0], *argv[at:]), (words[0], *words[at:]))
    # With options that may change what is run, a rule must name these to allow it.
    return Program(argv, words, (inner,), is_clear=not reach, reach=reach, is_odd=bool(reach))
