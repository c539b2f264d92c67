"""What a shell script would do, as far as it is known: plain data.

A script is read as a flat list of its simple commands, wherever they stand: in a pipe, a loop, a
function's body or a substitution. Whether one of them really runs does not matter to a policy.
"""

from __future__ import annotations

from msgspec import Struct


class Unclear(Exception):
    """Text that is not read, and why. Never an error of the user: somebody is asked instead."""


#: Marks in a word's form: anything at all, slashes too; a variable's name; alternatives. Where
#: somebody has written such a character it is taken for the mark, which can only be stricter.
ANY, VARIABLE, BRACE, END = "\ue000", "\ue001", "\ue002", "\ue003"


class Word(Struct, frozen=True):
    """A word of a command, after the shell has removed its quotes.

    `value` is None where it can't be known (variables, substitutions, globs, braces): it may then
    be any number of words, unless `is_one`.
    """

    value: str | None
    #: Whether it was written without any quotes: only then it may be a keyword.
    is_bare: bool = True
    #: What is known of an unknown one: a glob, with `*` for all that can't be known; and the same
    #: with marks for variables, braces and what is not known at all.
    pattern: str | None = None
    form: str = ""
    #: Whether it begins with a `~` that the shell expands.
    is_home: bool = False
    is_one: bool = False
    #: Whether globs are all that is unknown: it then stands for files that are there.
    is_glob: bool = False
    #: Whether it is what `find` has found, which begins as the place where it looked.
    is_found: bool = False
    #: Whether it is the end of a pipe.
    is_pipe: bool = False

    @property
    def is_no_option(self) -> bool:
        """Whether no file, whatever its name, can make an option of an unknown word."""
        return (
            self.is_found
            or self.is_pipe
            or (self.is_glob and (self.pattern or "*")[0] not in "*?[-")
        )


UNKNOWN = Word(None, is_bare=False, pattern="*")
PIPE = Word(None, is_bare=False, pattern="*", is_pipe=True)


class Assign(Struct, frozen=True):
    name: str
    value: Word


class Redirect(Struct, frozen=True):
    """A file that is opened. Copies of descriptors are none."""

    target: Word
    writes: bool


class Simple(Struct, frozen=True):
    """A simple command. `repeats`: it stands in a loop or a function, so it may run again."""

    words: tuple[Word, ...] = ()
    assigns: tuple[Assign, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    repeats: bool = False
    #: Whether it only prints a text that stands beside it.
    is_text: bool = False
    #: The words that a loop goes through, by the name of its variable.
    loops: tuple[Assign, ...] = ()
    #: The one whose output it reads, where that is a simple command.
    reads: Simple | None = None
