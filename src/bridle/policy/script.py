"""A script that was read, and the places that its words may name. Owns where a `cd` may lead."""

from __future__ import annotations

from collections.abc import Iterator

from .paths import Place, absolute, clean, place
from .reading import is_reading
from .shell.programs import Commands, Program
from .shell.script import Redirect
from .verdicts import Ground

#: Files that take anything and keep nothing.
SINKS = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero"))
MOVES = frozenset(("cd", "pushd", "popd"))
MAX_PLACES = 16
MAX_PATH = 4096


class Script:
    """One script, as far as it is known."""

    def __init__(self, text: str, commands: Commands, cwd: str, ground: Ground) -> None:
        self.text = text
        self.programs = commands.programs
        self.redirects = commands.redirects
        self.unclear = commands.unclear
        self._ground = ground
        self._cwds: list[str] | None = [cwd]
        self._places: list[Place] | None = None
        self._named: dict[int, list[Place]] = {}
        self._move()
        if self._cwds is None:
            self.unclear = self.unclear or "it goes to a folder that is not known"
            self._cwds = [cwd]

    def all_programs(self) -> Iterator[Program]:
        """Each, and those inside of it, in their order."""
        stack = self.programs[::-1]
        while stack:
            program = stack.pop()
            yield program
            stack += program.inner[::-1]

    def _move(self) -> None:
        """Every folder in which a command may find itself: a `cd` may have happened or not."""
        for program in self.all_programs():
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
            text = word.value
            if not text:
                continue
            if text[0] != "-":
                found += self._of_text(text)
            _, equals, value = text.partition("=")
            if equals or text[0] == "@":
                found += self._of_text(value if equals else text[1:])
        return found

    def places(self) -> list[Place]:
        """What all words and redirections may name."""
        if self._places is None:
            self._places = []
            for program in self.all_programs():
                self._places += self.named(program)
            for redirect in self.redirects:
                self._places += self.targets(redirect)
        return self._places

    def globs(self) -> Iterator[str]:
        """Words with globs in them, as patterns of whole paths."""
        for program in self.all_programs():
            for word in program.words[1:]:
                if word.pattern:
                    for cwd in self._cwds or ():
                        yield clean(absolute(word.pattern, cwd, self._ground.home))

    def has_unknown_paths(self) -> bool:
        """Whether a program may be given any file at all."""
        return any(
            word.value is None and word.pattern is None
            for program in self.all_programs()
            if not program.is_clear and program.name not in ("echo", "printf")
            for word in program.words[1:]
        )

    def is_reading(self) -> bool:
        return bool(self.programs) and all(map(is_reading, self.programs))

    def first_name(self) -> str:
        return self.programs[0].name if self.programs else ""

    def notes(self) -> tuple[str, ...]:
        """What whoever is asked should know."""
        seen = dict.fromkeys(program.name for program in self.all_programs())
        notes = [f"runs {', '.join(seen)}"] if len(seen) > 1 else []
        writes = [r.target.value or "an unknown file" for r in self.redirects if r.writes]
        return (*notes, *(f"writes {file}" for file in writes if file not in SINKS))
