"""A script that was read, and the places that its words may name. Owns where a `cd` may lead."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from msgspec.structs import replace

from .partial_paths import Bindings, forms_of, is_known, is_unknown, starts_unknown, whole
from .paths import Folders, Place, absolute, clean, is_glob, place
from .reading import PROGRAMS, is_reading
from .searching import searched_words
from .shell.programs import Commands, Program, read_commands
from .shell.script import ANY, Redirect, Word
from .shell.tables import words
from .verdicts import Ground

#: Files that take anything and keep nothing.
SINKS = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero"))
MOVES = frozenset(("cd", "pushd", "popd"))
#: Options of git by which it looks for a repository elsewhere.
GIT_FOLDERS = ("-C", "--git-dir", "--work-tree")
GIT_FOLDERS_EQUAL = ("--git-dir=", "--work-tree=")
MAX_PLACES = 16
#: git may mean each of its words in several folders.
GIT_FACTOR = 8
#: So many letters may stand before a value in one word, and so many values in another.
MAX_BUNCH, MAX_PARTS = 40, 8
_NAMES_ALONE = words(
    """basename cd date df dirname du echo false id ls printf pwd readlink realpath seq stat tr true
    uname wc which whoami"""
)
#: What a path may stand behind in a word.
_SEPARATOR = re.compile(r"[=@<:,;)]")
#: These show, or write, what is in the files that they are given. (Of others only the names.)
OPENERS = (PROGRAMS.keys() - _NAMES_ALONE) | words(
    """awk base64 cp curl dd gawk hexdump install less ln more mv rsync scp sed strings tar tee uniq
    xxd zip"""
)
#: Their options `-n` and `-c` have a number behind them.
COUNTED = frozenset(("head", "tail"))
COUNTS = ("-n", "-c", "--lines", "--bytes")
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
        #: Then it is asked about in any case, and nothing more is looked up.
        self.is_too_much = False
        self._partial: dict[int, list[str]] = {}
        #: Whether something is given what another program prints.
        self._has_unnamed = any(
            word.value is None and ANY in (word.form or ANY) and not (word.is_found or word.is_pipe)
            for program in self.every
            for word in program.words
        )
        self._reads: dict[int, bool] = {}
        self._git_runs: str | None = None
        self._cwds: list[str] | None = [cwd]
        self._places: list[Place] | None = None
        self._changed: list[Place] | None = None
        self._named: dict[int, list[Place]] = {}
        self.changes = commands.changes
        self._move()
        home, here = [ground.home], self._cwds or [ANY]
        self._bindings = Bindings(commands.variables, HOME=home, PWD=here)
        if self._cwds is None:
            self.unclear = self.unclear or "it goes to a folder that is not known"
            self._cwds = [cwd]
        self.unclear = self.unclear or self._why_unclear()

    def _why_unclear(self) -> str:
        every = self.every
        names = sum(
            self._count(word) * (GIT_FACTOR if program.name == "git" else 1)
            for program in every
            for word in program.words
        )
        if len(self._cwds or ()) * names > MAX_NAMES or self._bindings.is_too_much:
            self._cwds, self._bindings = (self._cwds or [])[:1], Bindings({})
            self.is_too_much = True
            return "it names too many files"
        if len(every) > 1 and any(program.name == "ln" for program in every):
            return "it makes a link, and then does more"
        for redirect in self.redirects:
            target = redirect.target.value or redirect.target.pattern or ""
            if target.startswith(("/dev/tcp", "/dev/udp")):
                return "it opens a connection"
        return ""

    def _count(self, word: Word) -> int:
        """How many names there may be in a word."""
        return sum(
            1 + 2 * min(len(_SEPARATOR.findall(one)), MAX_PARTS) for one in self._forms(word)
        )

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

    def texts(self) -> list[str]:
        """Its words, without quotes; of those that are known in part, what they may be."""
        return [form for one in self.every for word in one.words for form in self._forms(word)]

    def targets(self, redirect: Redirect) -> list[Place]:
        target = redirect.target
        known = self._known(target)
        return [where for form in known for where in self._of_text(form, is_home=target.is_home)]

    def _of_text(
        self,
        text: str,
        program: Program | None = None,
        *,
        is_home: bool = True,
        is_part: bool = False,
    ) -> list[Place]:
        if not text or self._cwds is None or len(text) > MAX_PATH or self.is_too_much:
            return []
        cwds = self._cwds
        if program and program.name == "git":
            cwds = self._git_folders(program) or cwds
            # git names a file of a revision, and `:/x`, from the top of the repository.
            cwds = [*cwds, *(above for cwd in cwds for above in _above(cwd) if is_part)]
            text = text.lstrip("/") or text if is_part else text
        found = [place(text, cwd, self._ground) for cwd in cwds]
        if text.startswith("~") and not is_home:  # in quotes it is a name
            found += [place(f"./{text}", cwd, self._ground) for cwd in cwds]
        return found

    def named(self, program: Program) -> list[Place]:
        """What the program's words may be the names of."""
        found = self._named.get(id(program))
        if found is not None:
            return found
        found = self._named[id(program)] = []
        for word in program.words[1:]:
            for form in self._known(word):
                found += self._of_text(form, program, is_home=word.is_home)
                for text in names_in(form):
                    if text != form:
                        found += self._of_text(text, program, is_part=":" in form)
        found += self._behind_links(program)
        return found

    def _behind_links(self, program: Program) -> list[Place]:
        """The files that its globs stand for by way of a link, as far as they are there."""
        expand = self._ground.expand
        if expand is None or not self.has_unknown:
            return []
        globs = [form for form in self.partial(program) if not is_unknown(form)]
        places = [place(path, "/", self._ground) for glob in globs for path in expand(glob)]
        return [where for where in places if where.real != where.written]

    def partial(self, program: Program) -> list[str]:
        """What it may name of which only a part is known: forms of paths from the root."""
        found = self._partial.get(id(program))
        if found is None:
            found = self._partial[id(program)] = []
            for word in program.words[1:]:
                found += self._partial_of(word)
        return found

    def partial_targets(self, redirect: Redirect) -> list[str]:
        return self._partial_of(redirect.target)

    def _partial_of(self, word: Word) -> list[str]:
        found: list[str] = []
        for form in self._forms(word) if word.value is None else ():
            for text in names_in(form) if not (is_known(form) or self.is_too_much) else ():
                if starts_unknown(text):
                    found.append(text)
                    continue
                for cwd in self._cwds or ():
                    path = absolute(text, cwd, self._ground.home)
                    found += map(whole, self._linked(path))
        return list(dict.fromkeys(found))

    def _known(self, word: Word) -> list[str]:
        return [one for one in self._forms(word) if word.value is not None or is_known(one)]

    def _forms(self, word: Word) -> list[str]:
        if word.value is not None:
            return [word.value]
        return forms_of(word, self._bindings)

    def _linked(self, form: str) -> list[str]:
        """As it is written, and with the links followed that come before what is not known."""
        known = re.split(rf"[*?\[{ANY}]", form, maxsplit=1)[0].rpartition("/")[0]
        real = f"{self._ground.resolve(known)}{form[len(known) :]}" if known else form
        return list(dict.fromkeys((form, real)))

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
        forms = [form for program in self.every for form in self.partial(program)]
        forms += [form for redirect in self.redirects for form in self.partial_targets(redirect)]
        for program in self.every:
            # What a shell leaves alone is a pattern to git all the same.
            for word in program.words[1:] if program.name == "git" else ():
                if word.value and is_glob(word.value):
                    yield from (
                        clean(absolute(text, cwd, self._ground.home))
                        for text in names_in(word.value)
                        for cwd in self._cwds or ()
                    )
        yield from (form for form in dict.fromkeys(forms) if not is_unknown(form))

    def has_unknown_paths(self) -> bool:
        """Whether a program may be given any file at all."""
        programs = (program for program in self.every if not program.is_clear)
        given = (self._files_of(one) for one in programs if one.name not in ("echo", "printf"))
        targets = (self._partial_of(redirect.target) for redirect in self.redirects)
        return any(is_unknown(form) for forms in (*given, *targets) for form in forms)

    def searched(self) -> Iterator[Place]:
        """Folders in which all files are read."""
        for program, word, is_whole in self._searches():
            for form in self._known(word):
                for where in self._of_text(form, program):
                    if is_whole or self._is_folder(form, where):
                        yield where

    def searched_partial(self) -> Iterator[str]:
        """The same of words that are known only in part."""
        for _, word, is_whole in self._searches():
            if is_whole and not (word.is_found or word.is_pipe):
                yield from self._partial_of(word)

    def _searches(self) -> Iterator[tuple[Program, Word, bool]]:
        for program in self.every:
            # `git -C x grep` searches in x.
            is_git = program.name == "git" and program.reach
            feeds = program.feeds or (program.name == "find" and self._has_unnamed)
            program = replace(program, feeds=feeds)  # noqa: PLW2901 - the same one
            words, is_whole = searched_words(program.inner[0] if is_git else program)
            if not self._shows_tracked_files(program, words):
                yield from ((program, word, is_whole) for word in words)

    def _shows_tracked_files(self, program: Program, words: list[Word]) -> bool:
        """Whether it is a `git diff` inside of a repository: it shows what git knows, and does not
        look into folders, unless one of them is outside."""
        look = self._ground.is_folder
        if program.name != "git" or program.argv[1:2] != ("diff",) or look is None:
            return False
        cwds = self._cwds or []
        if not all(any(look(f"{at}/.git") for at in (cwd, *_above(cwd))) for cwd in cwds):
            return False
        places = [where for word in words for form in self._known(word)
                  for where in self._of_text(form)]  # fmt: skip
        return all(map(Folders(self._ground).hold, places)) and all(
            word.value is not None for word in words
        )

    def has_own_paths(self) -> bool:
        """Whether it names a file that is another one for each process that opens it."""
        if any(where.is_own for where in self.places()):
            return True
        return any(
            form.startswith(("/proc/", "/dev/fd"))
            for program in (self.every if self.has_unknown else ())
            for form in self.partial(program)
        )

    def _is_folder(self, text: str, where: Place) -> bool:
        if text.rpartition("/")[2] in ("", ".", "..", "~"):
            return True
        return self._ground.is_folder is not None and self._ground.is_folder(where.real)

    def unknown_files(self, names: Collection[str]) -> Iterator[str]:
        """Which of these programs are given a file of which nothing is known."""
        for program in self.every:
            # These show names alone, but for a file with the names that is given to them.
            reads_list = program.name in ("du", "wc") and any(
                (word.value or word.form).startswith("--f") for word in program.words
            )
            if (program.name in names or reads_list) and any(
                map(is_unknown, self._files_of(program))
            ):
                yield program.name

    def _files_of(self, program: Program) -> Iterator[str]:
        given: Sequence[Word] = searched_words(program)[0] or program.words[1:]
        if program.name in COUNTED:
            before = (None, *(word.value for word in program.words[1:]))
            given = [word for word, last in zip(program.words[1:], before, strict=False)
                     if last not in COUNTS]  # fmt: skip
        for word in (*given, *program.words[1:]):
            text = word.value or ""
            is_bunch = text[:1] == "-" and text[1:2] != "-" and len(text) > MAX_BUNCH
            if is_bunch or len(_SEPARATOR.findall(text)) > 2 * MAX_PARTS:
                yield ANY
        for word in given:
            if not (word.is_found or word.is_pipe):
                yield from self._partial_of(word)

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


def names_in(text: str) -> list[str]:
    """The paths that a word may be, or hold: `--out=x`, `-ox`, `-zxo`, `@x`, `a:x`, `file://x`."""
    if not text:
        return []
    if text[0] != "-" and not _SEPARATOR.search(text):
        return [text]
    found = [text] if text[0] != "-" else []
    if text[0] == "-" and text[1:2] != "-":
        found += [text[at:] for at in range(2, min(len(text), MAX_BUNCH))]
    separators = list(_SEPARATOR.finditer(text))
    for separator in separators[:MAX_PARTS] + separators[MAX_PARTS:][-MAX_PARTS:]:
        rest = text[separator.end() :]
        found += [rest, _SEPARATOR.split(rest, maxsplit=1)[0]]
    found += [name[2:] for name in found if name.startswith("//")]
    return [name for name in dict.fromkeys(found) if name]


def _above(folder: str) -> list[str]:
    """The folders that this one is in."""
    parts = folder.strip("/").split("/")
    return ["/" + "/".join(parts[:count]) for count in range(len(parts))]
