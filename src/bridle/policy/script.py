"""A script that was read, and the places that its words may name. Owns where a `cd` may lead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from .paths import Place, absolute, clean, place
from .reading import is_reading
from .shell.programs import Commands, Program, read_commands
from .shell.script import Redirect, Word
from .verdicts import Ground

#: Files that take anything and keep nothing.
SINKS = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero"))
MOVES = frozenset(("cd", "pushd", "popd"))
#: Options of git by which it looks for a repository elsewhere.
GIT_FOLDERS = ("-C", "--git-dir", "--work-tree")
GIT_FOLDERS_EQUAL = ("--git-dir=", "--work-tree=")
MAX_PLACES = 16
MAX_PATH = 4096
MAX_NAMES = 3_000


class Script:
    """One script, as far as it is known."""

    def __init__(self, text: str, commands: Commands, cwd: str, ground: Ground) -> None:
        self.text = text
        self.programs = commands.programs
        self.redirects = commands.redirects
        self.unclear = commands.unclear
        #: Each program, and those inside of it, in their order.
        self.every = list(_every(commands.programs))
        self.has_unknown = any(None in program.argv for program in self.every) or any(
            redirect.target.value is None for redirect in commands.redirects
        )
        self._ground = ground
        self._reads: dict[int, bool] = {}
        self._git_runs: str | None = None
        self._cwds: list[str] | None = [cwd]
        self._places: list[Place] | None = None
        self._changed: list[Place] | None = None
        self._named: dict[int, list[Place]] = {}
        self.changes = commands.changes
        self._move()
        if self._cwds is None:
            self.unclear = self.unclear or "it goes to a folder that is not known"
            self._cwds = [cwd]
        self.unclear = self.unclear or self._why_unclear()

    def _why_unclear(self) -> str:
        every = self.every
        if len(self._cwds or ()) * sum(len(program.words) for program in every) > MAX_NAMES:
            self._cwds = (self._cwds or [])[:1]
            return "it names too many files"
        if len(every) > 1 and any(program.name == "ln" for program in every):
            return "it makes a link, and then does more"
        for redirect in self.redirects:
            target = redirect.target.value or redirect.target.pattern or ""
            if target.startswith(("/dev/tcp", "/dev/udp")):
                return "it opens a connection"
        return ""

    def _move(self) -> None:
        """Every folder in which a command may find itself: a `cd` may have happened or not."""
        for program in self.every:
            if program.name in MOVES and self._cwds is not None:
                moved = self.moved_to(program)
                if moved is None or len(self._cwds) > MAX_PLACES:
                    self._cwds = None
                    return
                self._cwds += [where.written for where in moved if where.written not in self._cwds]

    def moved_to(self, program: Program) -> list[Place] | None:
        """Where a `cd` may lead; None where that is not known."""
        args = [word for word in program.words[1:] if word.value != "--"]
        if program.name == "popd" or len(args) > 1 or self._cwds is None:
            return None
        target = args[0].value if args else "~"
        if (
            target is None
            or target.startswith(("-", "+"))
            or (program.repeats and not target.startswith("/"))
        ):
            return None
        return [place(target, cwd, self._ground) for cwd in self._cwds]

    def target_globs(self, redirect: Redirect) -> list[str]:
        """What is known of a target that is not known."""
        return self._whole_globs(redirect.target)

    def targets(self, redirect: Redirect) -> list[Place]:
        return self._of_text(redirect.target.value or "")

    def _of_text(self, text: str) -> list[Place]:
        if not text or self._cwds is None or len(text) > MAX_PATH:
            return []
        return [place(text, cwd, self._ground) for cwd in self._cwds]

    def named(self, program: Program) -> list[Place]:
        """What the program's words may be the names of."""
        found = self._named.get(id(program))
        if found is not None:
            return found
        found = self._named[id(program)] = []
        for word in program.words[1:]:
            for text in _names_in(word.value or ""):
                found += self._of_text(text)
        return found

    def named_globs(self, program: Program) -> list[str]:
        """The same of words that are known only in part."""
        return [glob for word in program.words[1:] for glob in self._whole_globs(word)]

    def _whole_globs(self, word: Word) -> list[str]:
        if not word.pattern or word.pattern.strip("*") == "":
            return []
        return [
            form
            for text in _names_in(word.pattern)
            for cwd in self._cwds or ()
            for form in self._glob_forms(absolute(text, cwd, self._ground.home))
        ]

    def _glob_forms(self, glob: str) -> list[str]:
        """As it is written, and with the links followed that come before what is not known."""
        known = re.split(r"[*?\[]", glob, maxsplit=1)[0].rpartition("/")[0]
        real = f"{self._ground.resolve(known)}{glob[len(known) :]}" if known else glob
        return list(dict.fromkeys((clean(glob), clean(real))))

    def places(self) -> list[Place]:
        """What all words and redirections may name."""
        if self._places is None:
            self._places = []
            for program in self.every:
                self._places += self.named(program)
            for redirect in self.redirects:
                self._places += self.targets(redirect)
        return self._places

    def reads(self, program: Program) -> bool:
        """Whether it only reads."""
        found = self._reads.get(id(program))
        if found is None:
            found = is_reading(program) and (not _has_git(program) or self._is_git_harmless())
            self._reads[id(program)] = found
        return found

    def _is_git_harmless(self) -> bool:
        """Whether git runs nothing because a repository says so."""
        if self._ground.git_runs:
            return not self.git_runs()
        return self._cwds == [self._ground.folder]  # elsewhere, there may be another one

    def git_runs(self) -> str:
        """What git would run, wherever this script has it run, that nobody trusts; as far as that
        is looked up."""
        if self._git_runs is None:
            self._git_runs = next(self._untrusted(), "")
        return self._git_runs

    def _untrusted(self) -> Iterator[str]:
        look = self._ground.git_runs
        for program in self.every if look else ():
            if program.name != "git" or not look:
                continue
            folders = self._git_folders(program)
            if folders is None:
                yield "what a repository says that is not known"
            for folder in dict.fromkeys(folders or ()):
                for runs in look(folder):
                    if runs not in self._ground.trusted:
                        yield runs

    def _git_folders(self, program: Program) -> list[str] | None:
        """Where this git may look for its repository; None where that is not known."""
        folders = self._cwds
        words = program.argv[1:]
        for option, value in pairwise((*words[: program.reach], None)):
            if option in GIT_FOLDERS or (option or "").startswith(GIT_FOLDERS_EQUAL):
                given = value if option in GIT_FOLDERS else (option or "").partition("=")[2]
                if given is None or folders is None:
                    return None
                folders = [*folders, *(absolute(given, f, self._ground.home) for f in folders)]
        return folders

    def changed(self) -> list[Place]:
        """What is named to programs that may do more than read, and what is written to."""
        if self._changed is None:
            programs = [program for program in self.every if not self.reads(program)]
            self._changed = [place for program in programs for place in self.named(program)]
            for redirect in self.redirects:
                self._changed += self.targets(redirect) if redirect.writes else []
        return self._changed

    def globs(self) -> Iterator[str]:
        """All that is known only in part, as patterns of whole paths."""
        for program in self.every:
            yield from self.named_globs(program)
        for redirect in self.redirects:
            yield from self.target_globs(redirect)

    def has_unknown_paths(self) -> bool:
        """Whether a program may be given any file at all."""
        words = [
            word
            for program in self.every
            if not program.is_clear and program.name not in ("echo", "printf")
            for word in program.words[1:]
        ]
        words += [redirect.target for redirect in self.redirects]
        return any(word.value is None and not word.is_glob for word in words)

    def searched(self) -> Iterator[Place]:
        """Folders in which all files are read."""
        for program in self.every:
            if _searches(program):
                yield from self.named(program)
                given = [word for word in program.argv[1:] if not (word or "").startswith("-")]
                if len(given) <= 1:  # what to look for, and not where
                    yield from self._of_text(".")

    def is_reading(self) -> bool:
        return bool(self.programs) and all(map(self.reads, self.programs))

    def notes(self) -> tuple[str, ...]:
        """What whoever is asked should know."""
        seen = dict.fromkeys(program.name for program in self.every)
        notes = [f"runs {', '.join(seen)}"] if len(seen) > 1 else []
        writes = [r.target.value or "an unknown file" for r in self.redirects if r.writes]
        return (*notes, *(f"writes {file}" for file in writes if file not in SINKS))


def may_move(text: str) -> bool:
    """Whether a script may leave its shell in another folder; what can't be read may."""
    commands = read_commands(text)
    return bool(commands.unclear) or any(
        program.name in MOVES for program in _every(commands.programs)
    )


def _every(programs: Sequence[Program]) -> Iterator[Program]:
    stack = list(reversed(programs))
    while stack:
        program = stack.pop()
        yield program
        stack += reversed(program.inner)


def _has_git(program: Program) -> bool:
    return program.name == "git" or any(map(_has_git, program.inner))


def _names_in(text: str) -> list[str]:
    """The paths that a word may be, or hold: `--out=x`, `-ox`, `@x`, `file://x`."""
    if not text:
        return []
    found = [text] if text[0] != "-" else []
    if text[0] == "-" and len(text) > 2 and text[1] != "-":
        found.append(text[2:])
    _, equals, value = text.partition("=")
    if equals and value:
        found.append(value)
    revision, colon, path = text.partition(":")
    if colon and path and "/" not in revision:
        found.append(path)  # as git names a file of some revision
    found += [name[1:] for name in found if name.startswith("@") and len(name) > 1]
    found += [name[7:] for name in found if name[:7].lower() == "file://"]
    return found


def _searches(program: Program) -> bool:
    """Whether it reads, or has others do something to, all that is in the folders which it is
    given."""
    if program.name == "find":
        return bool(program.inner)
    if program.name in ("rg", "ag", "ack") or program.argv[:2] == ("git", "grep"):
        return True
    options = [word or "" for word in program.argv[1:] if (word or "").startswith("-")]
    return program.name in ("grep", "egrep", "fgrep", "diff") and any(
        option in ("--recursive", "--dereference-recursive")
        or (option[1:2] != "-" and ("r" in option or "R" in option))
        for option in options
    )
