"""Commands that stand in the words of another: `uv run git push`, `ssh box 'git push'`. Pure.

Deny and ask rules see them. Of a program that is known to run the end of its words they are surely
run; of one that nobody knows they may be. Owns which words may be a command; rules are matched by
the judge. That a program is allowed is not decided here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from .reading import PROGRAMS
from .shell.programs import Program, base_name, read_commands
from .shell.script import UNKNOWN, Word
from .shell.tables import RUN_WORDS, RUNNERS, RUNNERS_BY_WORD, SHELLS, SILENT

#: Of so many words of a program any may begin the command that it runs; so deep and so much text is
#: looked into. What is beyond may be anything.
MAX_WORDS = 200
MAX_DEPTH = 6
MAX_TEXT = 50_000

#: Whether somebody asks about programs of this name: others are not looked at.
Wanted: TypeAlias = Callable[[str], bool]

#: These do not run what they are given.
_PLAIN = frozenset(
    [
        "awk",
        "base64",
        "bc",
        "chgrp",
        "chmod",
        "chown",
        "cp",
        "curl",
        "date",
        "dd",
        "expr",
        "fold",
        "gawk",
        "gzip",
        "gunzip",
        "install",
        "kill",
        "killall",
        "less",
        "ln",
        "mkdir",
        "mktemp",
        "more",
        "mv",
        "openssl",
        "patch",
        "pkill",
        "ps",
        "rename",
        "rm",
        "rmdir",
        "sed",
        "shred",
        "sleep",
        "ssh-keygen",
        "tee",
        "test",
        "touch",
        "truncate",
        "type",
        "uniq",
        "unzip",
        "wget",
        "xxd",
        "yes",
    ]
)
#: The first word of these is a command of their own: `git rm` is no `rm`; or they are given files.
#: They run others only behind a word or an option that says so.
_WITH_COMMANDS = frozenset(
    [
        "apt",
        "apt-get",
        "aws",
        "az",
        "brew",
        "cargo",
        "composer",
        "docker",
        "docker-compose",
        "dotnet",
        "gcloud",
        "gh",
        "git",
        "glab",
        "go",
        "gradle",
        "helm",
        "hg",
        "jj",
        "kubectl",
        "man",
        "mvn",
        "npm",
        "nuget",
        "pip",
        "pip3",
        "pnpm",
        "podman",
        "rsync",
        "split",
        "svn",
        "systemctl",
        "tar",
        "terraform",
        "yarn",
        "zip",
    ]
)
_RUN_WORDS = RUN_WORDS | {"foreach", "for-each-repo"}
#: Options whose value is a command. Any beginning of a long one may be taken for the whole.
_RUN_OPTIONS = frozenset(("-c", "-e", "-x", "-I", "-P", "-TT"))
_LONG_RUN_OPTIONS = (
    *("--call", "--command", "--exec", "--run", "--extcmd", "--upload-pack", "--receive-pack"),
    *("--rsh", "--rsync-path", "--to-command", "--checkpoint-action", "--use-compress-program"),
    *("--info-script", "--new-volume-script", "--rmt-command", "--rsh-command", "--pager"),
    *("--to-cmd", "--cc-cmd", "--header-cmd", "--sendmail-cmd", "--filter", "--unzip-command"),
)
_FILTER = re.compile(r"--[a-z]+-filter")
#: What makes more than one word of a text, or a command of it.
_SCRIPT = re.compile(r"[\s;&|(`$]")
_SHELL_TEXT = re.compile(r"-[a-zA-Z]*c")
#: Of these the text is read that they run.
_READ_ON = SHELLS | {"ssh"}
#: Options of ssh with a value.
_SSH_VALUED = "BbcDEeFIiJLlmOoPpQRSWw"
#: Options of runners with a value, so that it is not taken for the command.
_VALUED = frozenset(
    (
        *("-n", "-p", "-e", "-c", "-u", "--name", "--prefix", "--cwd", "--env", "--with", "--from"),
        *("--python", "--extra", "--group", "--package", "--env-file", "--project", "--directory"),
        *("--config", "--profile", "--with-requirements", "--with-editable", "--index"),
    )
)
#: So many words that are no command come first.
_LEADING = {"chrt": 1, "direnv": 1, "taskset": 1}
#: Of these `run` names a script or a task, and what stands behind `--` is for that.
_WITH_SCRIPTS = frozenset(("mise", "npm", "pnpm", "rtx", "yarn"))


def surely_within(program: Program, wanted: Wanted) -> Iterator[Program]:
    """What a program that runs another one in an environment may run: its words from any one on."""
    return _Search(wanted).surely(program, 0)


def perhaps_within(program: Program, wanted: Wanted) -> Iterator[Program | None]:
    """What any other program may run, for all that is known of it; None is anything."""
    return _Search(wanted).perhaps(program, 0)


class _Search:
    """Looks into one program. Each text is read once, however many words lead to it."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._seen: set[tuple[str, bool]] = set()
        self._left = MAX_TEXT

    def surely(self, program: Program, depth: int) -> Iterator[Program]:
        if program.name not in RUNNERS and program.name not in RUNNERS_BY_WORD:
            return
        yield from self._surely_by_text(program, depth)
        for inner in _from_any(program, _begin(program), self._wanted):
            yield inner
            yield from self._surely_by_text(inner, depth)

    def _surely_by_text(self, program: Program, depth: int) -> Iterator[Program]:
        if depth == MAX_DEPTH or self._left < 0:
            return
        for inner in self._read(_text_of(program), is_shell=True):
            if inner:
                yield inner
                yield from self.surely(inner, depth + 1)

    def perhaps(self, program: Program, depth: int) -> Iterator[Program | None]:
        name = program.name
        if program.inner or name in _PLAIN or name in PROGRAMS or name in SILENT:
            return
        begin = _begin(program)
        is_long = len(program.argv) - begin > MAX_WORDS
        if is_long or depth > MAX_DEPTH or runs_unknown(program):
            yield None
            return
        yield from self._perhaps_by_text(_text_of(program), depth, is_shell=True)
        for inner in _from_any(program, begin, self._wanted):
            yield inner
            if self._left >= 0:
                yield from self._perhaps_by_text(_text_of(inner), depth, is_shell=True)
        if name == "git" and "for-each-repo" in program.argv:
            yield Program(("git", *program.argv[begin + 1 :]))
        for text in _texts(program, begin):
            yield from self._perhaps_by_text(text, depth, is_shell=False)

    def _perhaps_by_text(
        self, text: str, depth: int, *, is_shell: bool
    ) -> Iterator[Program | None]:
        for program in self._read(text, is_shell=is_shell):
            yield program
            if program:
                yield from self.perhaps(program, depth + 1)

    def _read(self, text: str, *, is_shell: bool) -> Iterator[Program | None]:
        """What a text would run. What no shell surely reads may as well be none of its language;
        else None stands for what can't be read."""
        self._left -= len(text)
        if self._left < 0:
            yield None
        if self._left < 0 or not text or (text, is_shell) in self._seen:
            return
        self._seen.add((text, is_shell))
        commands = read_commands(text)
        if is_shell and commands.unclear:
            yield None
        stack = list(commands.programs)
        while stack:
            program = stack.pop()
            yield program
            stack += program.inner


# --- words


def _begin(program: Program) -> int:
    """The word behind which a command may begin."""
    if program.name in RUNNERS_BY_WORD or program.name in _WITH_COMMANDS:
        argv = program.argv
        return next((at for at, word in enumerate(argv) if word in _RUN_WORDS), len(argv))
    return 0


def _from_any(program: Program, begin: int, wanted: Wanted) -> Iterator[Program]:
    """Its words from any one on, as far as that may be the name of a program."""
    argv, words = program.argv, program.words
    for at in range(begin + 1, min(len(argv), begin + MAX_WORDS)):
        word = argv[at]
        if not word or word[0] == "-":
            continue
        name = base_name(word) if "/" in word else word
        if name in _READ_ON or wanted(name):
            yield Program(argv[at:], words[at:])


def runs_unknown(program: Program) -> bool:
    """Whether a runner is given an unknown word where the name of a program should be."""
    argv, name = program.argv, program.name
    if None not in argv or (name not in RUNNERS and name not in RUNNERS_BY_WORD) or name == "ssh":
        return False
    begin = _begin(program)
    at = begin + 1
    if name in _WITH_SCRIPTS and argv[begin:at] in (("run",), ("--",)):
        return False
    if begin > 1 and (argv[begin - 1] or "") in _VALUED:
        return False  # `npm --prefix x`
    leading = _LEADING.get(name, 0)
    while at < len(argv):
        word = argv[at]
        if word is None or not word.startswith("-"):
            if not leading:
                return word is None
            leading -= 1
        at += 2 if word in _VALUED else 1
    return False


# --- texts


def _texts(program: Program, begin: int) -> Iterator[str]:
    """The words that may be scripts, as far as they are known; and those in an option's own."""
    reads_all = program.name not in _WITH_COMMANDS
    before = ""
    for at in range(1, len(program.argv)):
        text = _known(program, at)
        if _SCRIPT.search(text):
            if reads_all or at > begin or _is_run_option(before):
                yield text
            yield from _in_option(text, reads_all=reads_all or at > begin)
        before = text


def _in_option(text: str, *, reads_all: bool) -> Iterator[str]:
    option, equals, value = text.partition("=")
    if reads_all or _is_run_option(option):
        while equals and not _SCRIPT.search(option):
            yield value
            option, equals, value = value.partition("=")  # `--checkpoint-action=exec=…`
    if text[:1] == "-" and text[1:2] not in ("-", "") and (reads_all or text[:2] in _RUN_OPTIONS):
        yield text[2:]


def _is_run_option(option: str) -> bool:
    if option in _RUN_OPTIONS or _FILTER.fullmatch(option):
        return True
    return len(option) > 3 and any(one.startswith(option) for one in _LONG_RUN_OPTIONS)


def _known(program: Program, at: int) -> str:
    """A word, or what is known of it."""
    if (known := program.argv[at]) is not None:
        return known
    word: Word = program.words[at] if at < len(program.words) else UNKNOWN
    return word.pattern or "*"


def _text_of(program: Program) -> str:
    """The text that ssh or a shell is given to run."""
    if program.name == "ssh":
        return _joined_by_ssh(program)
    return _shell_text(program) if program.name in SHELLS else ""


def _shell_text(program: Program) -> str:
    for at, word in enumerate(program.argv[1:-1], 2):
        if _SHELL_TEXT.fullmatch(word or ""):
            return _known(program, at)
    return ""


def _joined_by_ssh(program: Program) -> str:
    """Its words with blanks between them: a shell at the other end reads these."""
    argv, at = program.argv, 1
    for turn in range(2):  # options stand before the host, and behind it
        while at < len(argv) and (word := argv[at] or "").startswith("-"):
            at += 1
            if word == "--":
                break
            valued = next((n for n, char in enumerate(word[1:], 2) if char in _SSH_VALUED), None)
            at += valued == len(word)
        at += turn == 0
    return " ".join(_known(program, n) for n in range(at, len(argv)))
