"""Commands that only read: a short list of programs, each with the options that let it do no more.

An option that is not here may well be harmless; the command is asked about all the same. What the
programs really do with these is traced in `tests/policy/test_option_sweep.py`, also with those that
the CLI has in their place (on 2.1.325 `find` is bfs, `grep` is ugrep).
"""

from __future__ import annotations

import re

from msgspec import Struct

from .shell.programs import Argv, Program


class Options(Struct, frozen=True):
    """The options with which a program only reads: letters alone, letters whose value may follow in
    the same word, and long ones. `any`: whatever it is given, it does no more."""

    letters: str = ""
    valued: str = ""
    longs: frozenset[str] = frozenset()
    any: bool = False

    def cover(self, word: str) -> bool:
        """Whether a word is one of these options, or no option at all."""
        if self.any or not word.startswith("-") or word in ("-", "--"):
            return True
        if word.startswith("--"):
            return word.partition("=")[0] in self.longs
        for letter in word[1:]:
            if letter in self.valued:
                return True
            if letter not in self.letters:
                return False
        return True


def _options(letters: str = "", valued: str = "", longs: str = "") -> Options:
    return Options(letters, valued, frozenset(f"--{name}" for name in longs.split()))


ANY = Options(any=True)
_GREP = _options(
    "0123456789abcEFGHhIiLlnoPqRrsTvwxyzZ",
    "ABCeDdfm",
    """after-context before-context context basic-regexp extended-regexp fixed-strings perl-regexp
    regexp file ignore-case no-ignore-case invert-match word-regexp line-regexp count color colour
    files-without-match files-with-matches max-count only-matching quiet silent no-messages
    byte-offset with-filename no-filename line-number line-buffered initial-tab null text
    binary-files devices directories exclude exclude-dir exclude-from include recursive
    dereference-recursive null-data label help version""",
)
#: By name, as a shell finds it: what is called by its path may be anything.
PROGRAMS: dict[str, Options] = {
    "basename": ANY,
    "cat": ANY,
    "cd": ANY,
    "cmp": ANY,
    "comm": ANY,
    "cut": ANY,
    "df": ANY,
    # Not -l, which runs another program to make pages.
    "diff": _options(
        "0123456789abBcdeEiNnpqrsTtuvwyZ",
        "CUWxXIFL",
        """normal brief report-identical-files context unified ed rcs side-by-side width left-column
        suppress-common-lines show-c-function show-function-line label expand-tabs initial-tab
        tabsize suppress-blank-empty recursive no-dereference new-file unidirectional-new-file
        ignore-file-name-case exclude exclude-from starting-file ignore-case ignore-tab-expansion
        ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines
        ignore-matching-lines text strip-trailing-cr minimal color help version""",
    ),
    "dirname": ANY,
    "du": ANY,
    "echo": ANY,
    "egrep": _GREP,
    "false": ANY,
    "fgrep": _GREP,
    # Neither what compiles a file, nor what unpacks one by another program, nor what touches one.
    "file": _options(
        "0bdEhiIkLlNnrsv",
        "eFPf",
        """brief exclude exclude-quiet separator files-from mime mime-type mime-encoding extension
        apple keep-going dereference no-dereference no-buffer no-pad print0 raw special-files
        parameter version help""",
    ),
    "find": ANY,  # its own words are judged where it is read, and what it runs or deletes by itself
    "grep": _GREP,
    "head": ANY,
    "id": ANY,
    "join": ANY,
    "jq": _options(
        "aCceehjMnRrSs",
        "",
        """arg argjson args ascii-output color-output compact-output exit-status help indent
        join-output jsonargs monochrome-output null-input raw-input raw-output raw-output0 rawfile
        seq slurp slurpfile sort-keys stream tab unbuffered version""",
    ),
    "ls": ANY,
    "md5sum": ANY,
    "nl": ANY,
    "od": ANY,
    "paste": ANY,
    "printf": ANY,
    "pwd": ANY,
    "readlink": ANY,
    "realpath": ANY,
    # Neither what runs a program for each file, nor what unpacks files by one.
    "rg": _options(
        "0.abcFHhIilLNnopqsSuUvVwxP",
        "ABCdeEfgjmMrtT",
        """after-context before-context binary block-buffered byte-offset case-sensitive color
        colors column context context-separator count count-matches crlf encoding engine
        field-context-separator field-match-separator file files files-with-matches
        files-without-match fixed-strings follow glob glob-case-insensitive heading help hidden
        iglob ignore-case include-zero invert-match json line-buffered line-number line-regexp
        max-columns max-columns-preview max-count max-depth max-filesize mmap multiline
        multiline-dotall no-config no-filename no-heading no-hidden no-ignore no-ignore-dot
        no-ignore-exclude no-ignore-files no-ignore-global no-ignore-parent no-ignore-vcs
        no-line-number no-messages no-mmap no-unicode null null-data one-file-system only-matching
        passthru path-separator pcre2 pretty quiet regex-size-limit regexp replace smart-case sort
        sortr stats stop-on-nonmatch text threads trim type type-add type-list type-not
        unrestricted version vimgrep with-filename word-regexp""",
    ),
    "seq": ANY,
    "sha256sum": ANY,
    "sort": _options(
        "bcCdfghiMmnRrsuVz",
        "kSt",
        """ignore-leading-blanks dictionary-order ignore-case general-numeric-sort
        ignore-nonprinting month-sort human-numeric-sort numeric-sort random-sort reverse sort
        version-sort check debug key merge stable buffer-size field-separator parallel unique
        zero-terminated help version""",
    ),
    "stat": ANY,
    "tac": ANY,
    "tail": ANY,
    "tr": ANY,
    # Its letters with a value take the next word, whatever follows in theirs: `tree -Io x FILE`
    # writes. So they are not read together with others.
    "tree": _options(
        "aACcdDFfghiJlNnpQqrSstuUvX",
        "",
        """charset device dirsfirst du filelimit filesfirst gid gitignore help ignore-case inodes
        matchdirs metafirst noreport prune si sort timefmt uid version""",
    ),
    "true": ANY,
    "uname": ANY,
    "wc": ANY,
    "which": ANY,
    "whoami": ANY,
}
#: These run programs from the PATH: the system's own grep, which writes and runs nothing, and not
#: the one that a shell has in its place.
_RUN_FROM_PATH = ("find", "xargs")
_GREPS = ("egrep", "fgrep", "grep")
_TREE_VALUED = ("-I", "-L", "-P")
#: Of sed only the printing of lines by their numbers.
_SED = re.compile(r"[0-9]+(?:,(?:[0-9]+|\$))?p")
_DATE = re.compile(r"\+.*|-u|--utc|-R|-I[a-z]*|--iso-8601(?:=[a-z]+)?", re.DOTALL)
#: A program of jq that reads files which no word names.
_JQ_READS = re.compile(r"\b(?:import|include|input_filename|get_search_list|modulemeta)\b")
#: Commands of git that read, and the options that they must not have.
_GIT_NEVER = (
    *("--output", "--ext-diff", "--textconv", "--filters", "--open-files-in-pager", "-O"),
    *("--exec", "--no-index", "--show-signature", "--submodule"),
)
#: A placeholder of git's that has gpg verify a signature.
_GIT_SIGNATURE = re.compile(r"%[-+ ]*G")
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


def is_reading(program: Program, by: str = "") -> bool:
    """Whether the program and all that it runs do nothing but read. `by`: what runs it, if that is
    a program."""
    is_plain = by in _RUN_FROM_PATH and program.argv[0] in _GREPS
    reads = program.is_clear or is_plain or _reads(program)
    return reads and all(is_reading(inner, program.argv[0] or "") for inner in program.inner)


def _reads(program: Program) -> bool:
    name, rest = program.argv[0], program.argv[1:]
    match name:
        case "git":
            return _git_reads(rest)
        case "sed":
            return (
                rest[:1] == ("-n",)
                and bool(_SED.fullmatch((*rest, "")[1] or ""))
                and _files(rest[2:])
            )
        case "date":
            # Without a `+` a word would set the clock.
            return all(word is not None and _DATE.fullmatch(word) for word in rest)
        case "uniq":
            # A second file would be written; `-` is one, too, and what stands behind `--`.
            files = sum(word == "-" or not (word or "").startswith("-") for word in rest)
            return not {None, "--"} & set(rest) and files <= 1
        case "tree":
            rest = tuple(word for word in rest if word not in _TREE_VALUED)
            return all(word is not None and PROGRAMS["tree"].cover(word) for word in rest)
        case "jq":
            if any(_JQ_READS.search(word or "") for word in rest):
                return False
    options = PROGRAMS.get(name or "")
    if options is None:
        return False
    if options.any:
        return True
    return all(
        word.is_no_option if word.value is None else options.cover(word.value)
        for word in program.words[1:]
    )


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
    return not any(
        _GIT_SIGNATURE.search(word or "") or _is_one_of(word or "", _GIT_NEVER) for word in rest[1:]
    )


def _is_one_of(word: str, options: tuple[str, ...]) -> bool:
    """Any beginning of a long option counts: git takes it for the whole."""
    if not word.startswith("-"):
        return False
    name = word.partition("=")[0]
    for option in options:
        if option.startswith("--"):
            if len(name) > 2 and option.startswith(name):
                return True
        elif not word.startswith("--") and option[1] in word[1:]:
            return True
    return False
