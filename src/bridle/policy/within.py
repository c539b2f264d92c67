"""Commands that stand in the words of another: `uv run git push`, `ssh box 'git push'`. Pure.

Deny and ask rules see them. Of a program that is known to run the end of its words they are surely
run; of one that nobody knows they may be. Owns which words may be a command; rules are matched by
the judge. That a program is allowed is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterator

from .reading import PROGRAMS
from .shell.programs import Argv, Program, read_commands
from .shell.tables import RUN_WORDS, RUNNERS, RUNNERS_BY_WORD, SILENT

#: Of so many words of a program any may begin the command that it runs.
MAX_WORDS = 20
#: So long a word is looked into.
MAX_TEXT = 4_000

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
        "man",
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
        "rsync",
        "sed",
        "shred",
        "sleep",
        "split",
        "ssh-keygen",
        "tar",
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
        "zip",
    ]
)
#: The first word of these is a command of their own: `git rm` is no `rm`. They run others only
#: behind a word that says so.
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
        "mvn",
        "npm",
        "nuget",
        "pip",
        "pip3",
        "pnpm",
        "podman",
        "svn",
        "systemctl",
        "terraform",
        "yarn",
    ]
)
_RUN_WORDS = RUN_WORDS | {"foreach"}
#: Options whose value is a command.
_RUN_OPTIONS = frozenset(("-c", "-e", "-x", "--call", "--command", "--exec", "--run"))


def surely_within(program: Program) -> Iterator[Argv]:
    """What a program that runs another one in an environment may run: its words from any one on."""
    words = program.argv[:MAX_WORDS]
    begin = 0 if program.name in RUNNERS else len(words)
    if program.name in RUNNERS_BY_WORD:
        begin = _run_word(words)
    yield from (program.argv[at:] for at in range(begin + 1, len(words)))


def perhaps_within(program: Program) -> Iterator[Argv]:
    """What any other program may run, for all that is known of it."""
    name = program.name
    if name in _PLAIN or name in PROGRAMS or name in SILENT:
        return
    words = program.argv[:MAX_WORDS]
    begin = _run_word(words) if name in _WITH_COMMANDS else 0
    yield from (program.argv[at:] for at in range(begin + 1, len(words)))
    for at, word in enumerate(words[1:], 1):
        if not word or len(word) > MAX_TEXT or not any(map(str.isspace, word)):
            continue
        if name not in _WITH_COMMANDS or words[at - 1] in _RUN_OPTIONS or at > begin:
            yield from _in_text(word)


def _run_word(words: Argv) -> int:
    return next((at for at, word in enumerate(words) if word in _RUN_WORDS), len(words))


def _in_text(text: str) -> Iterator[Argv]:
    stack = list(read_commands(text).programs)
    while stack:
        program = stack.pop()
        yield program.argv
        stack += program.inner
