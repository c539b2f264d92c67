"""Commands that only read: a short list, with the options that would make them do more.

A command that is not here may well be harmless; it is asked about all the same.
"""

from __future__ import annotations

import re

from .shell.programs import Argv, Program

#: Options that write a file or run a program, by command. Any beginning of a long one counts.
_NEVER: dict[str, tuple[str, ...]] = {
    "basename": (),
    "cat": (),
    "cd": (),
    "cmp": (),
    "comm": (),
    "cut": (),
    "df": (),
    "diff": ("--to-file", "--from-file"),
    "dirname": (),
    "du": (),
    "echo": (),
    "egrep": (),
    "fgrep": (),
    "file": ("-C", "--compile", "-m", "--magic-file"),
    "find": (),  # what it runs or deletes is judged by itself
    "grep": (),
    "head": (),
    "id": (),
    "join": (),
    "jq": ("-f", "--from-file", "-L"),
    "ls": (),
    "md5sum": (),
    "nl": (),
    "od": (),
    "paste": (),
    "printf": (),
    "pwd": (),
    "readlink": (),
    "realpath": (),
    "rg": ("--pre", "--hostname-bin", "-z", "--search-zip"),
    "seq": (),
    "sha256sum": (),
    "sort": ("-o", "--output", "--compress-program", "-T", "--temporary-directory"),
    "stat": (),
    "tac": (),
    "tail": (),
    "tr": (),
    "tree": ("-o", "-R", "-H"),
    "true": (),
    "false": (),
    "uname": (),
    "wc": (),
    "which": (),
    "whoami": (),
}
#: Of sed only the printing of lines by their numbers.
_SED = re.compile(r"[0-9]+(?:,(?:[0-9]+|\$))?p")
_DATE = re.compile(r"\+.*|-u|--utc|-R|-I[a-z]*|--iso-8601(?:=[a-z]+)?", re.DOTALL)
#: Commands of git that read, and the options that they must not have.
_GIT_NEVER = (
    *("--output", "--ext-diff", "--textconv", "--filters", "--open-files-in-pager", "-O"),
    *("--exec", "--no-index"),
)
_GIT: dict[str, frozenset[str] | None] = {
    "blame": None,
    "cat-file": None,
    "describe": None,
    "diff": None,
    "grep": None,
    "log": None,
    "ls-files": None,
    "ls-tree": None,
    "rev-list": None,
    "rev-parse": None,
    "shortlog": None,
    "show": None,
    "status": None,
    # These change things too: only with these words.
    "branch": frozenset(("-a", "-r", "-v", "-vv", "--all", "--list", "--show-current")),
    "remote": frozenset(("-v", "--verbose")),
    "tag": frozenset(("-l", "--list")),
}


def is_reading(program: Program) -> bool:
    """Whether the program and all that it runs do nothing but read."""
    if program.inner:
        return (program.is_clear or _reads(program.argv)) and all(map(is_reading, program.inner))
    return program.is_clear or _reads(program.argv)


def _reads(argv: Argv) -> bool:
    name, rest = argv[0], argv[1:]
    if name == "git":
        return _git_reads(rest)
    if name == "sed":
        return (
            rest[:1] == ("-n",) and bool(_SED.fullmatch((*rest, "")[1] or "")) and _files(rest[2:])
        )
    if name == "date":
        # Without a `+` a word would set the clock.
        return all(word is not None and _DATE.fullmatch(word) for word in rest)
    if name == "uniq":
        # A second file would be written.
        return None not in rest and sum(not (word or "").startswith("-") for word in rest) <= 1
    never = _NEVER.get(name or "")
    # What is not known may be an option; only where no option does harm it does not matter.
    return never is not None and not any(_is_one_of(word, never) for word in rest)


def _files(words: Argv) -> bool:
    """Names of files, and no option among them."""
    return all(word is not None and not word.startswith("-") for word in words)


def _git_reads(rest: Argv) -> bool:
    if rest in (("stash", "list"), ("worktree", "list")):
        return True
    if not rest or rest[0] not in _GIT or None in rest:
        return False
    only = _GIT[rest[0]]
    if only is not None:
        return all(word in only for word in rest[1:])
    return not any(_is_one_of(word, _GIT_NEVER) for word in rest[1:])


def _is_one_of(word: str | None, options: tuple[str, ...]) -> bool:
    if word is None:
        return bool(options)
    if not word.startswith("-"):
        return False
    name = word.partition("=")[0]
    for option in options:
        if option.startswith("--"):
            if len(name) > 2 and option.startswith(name):
                return True
        elif len(option) > 2:
            if word.startswith(option):
                return True
        elif not word.startswith("--") and option[1] in word[1:]:
            return True
    return False
