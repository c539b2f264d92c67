"""A reader of shell scripts that knows little, and says so: what it does not know is `Unclear`.

Reads what bash and zsh both take to mean the same: lists, pipes, groups, subshells, loops, `if`,
`case`, functions, `[[ … ]]`, redirections, heredocs and substitutions. Every character of the text
is accounted for by one of these, or the whole text is not read. Owns the grammar; what the
commands mean is `programs`' work.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from .compounds import compound, function_body
from .script import UNKNOWN, Assign, Redirect, Simple, Unclear, Word
from .words import MAX_DEPTH, WordReader

MAX_TEXT = 200_000

#: Controls, lone halves of characters, and what makes a text look like another one.
_ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_BLANKS = re.compile(r"(?:[ \t]+|(?<=[ \t])\\\n)+")
_KEYWORD = re.compile(
    r"(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|in|select|function|coproc|time"
    r"|\{|\}|!|\[\[)(?=[ \t\n;&|<>()]|$)"
)
_FUNCTION = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)[ \t]*\([ \t]*\)")
_ASSIGN = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
_REDIRECT = re.compile(r"([0-9]*)(<<<|<<-|<<|<>|<&|<(?!\()|>>|>\||>&|>(?!\()|&>>|&>)")
_HEREDOC = re.compile(
    r"""(?:'([A-Za-z0-9_]+)'|"([A-Za-z0-9_]+)"|\\?([A-Za-z0-9_]+))(?=[ \t\n;&|<>)]|$)"""
)
_COPIED = re.compile(r"[0-9]|-")
_RANGE = re.compile(r"[0-9]*-[0-9]*")


class _Heredoc:
    """The mark of a body that is still to come."""

    def __init__(self, delimiter: str, *, is_quoted: bool, strips: bool) -> None:
        self.delimiter = delimiter
        self.is_quoted = is_quoted
        self.strips = strips


def read_script(text: str, *, is_posix: bool = False) -> list[Simple]:
    """The simple commands of a script, or Unclear. `is_posix`: for an `sh` that may be no bash."""
    if len(text) > MAX_TEXT:
        raise Unclear("it is too long to be read")
    if odd := _ODD.search(text):
        raise Unclear(f"it holds the invisible character U+{ord(odd.group()):04X}")
    try:
        return Reader(text, is_posix=is_posix).script()
    except RecursionError:
        raise Unclear("it is nested too deeply") from None


class Reader(WordReader):
    """Reads one text; what is inside of substitutions is added to the same list."""

    def __init__(self, text: str, depth: int = 0, *, is_posix: bool = False) -> None:
        super().__init__(text, depth)
        self.commands: list[Simple] = []
        self.is_posix = is_posix
        #: Whether what is read now may run again: it is in a loop or a function.
        self.repeats = False
        #: How deep in compound commands this is.
        self.nesting = 0
        self._heredocs: list[_Heredoc] = []
        #: The simple command that was just read, if it was one; and whether it has an input of its
        #: own.
        self._last: Simple | None = None
        self._has_input = False

    def deepen_compound(self) -> None:
        self.nesting += 1
        if self.nesting > MAX_DEPTH:
            raise Unclear("it is nested too deeply")

    def script(self) -> list[Simple]:
        self.list_until(frozenset())
        if self.at < len(self.text):
            raise Unclear(f"{self.peek()!r} where nothing should be")
        if self._heredocs:
            raise Unclear("a heredoc without a body")
        return self.commands

    # --- substitutions

    def substitution(self) -> None:
        self.deeper()
        self.list_until(frozenset(), is_nested=True)
        if self.peek() != ")":
            raise Unclear("a substitution that is not closed")
        self.at += 1
        self.depth -= 1

    def prints_text(self) -> None:
        self.commands.append(Simple((Word("cat"),), repeats=self.repeats, is_text=True))

    def read_inner(self, text: str) -> None:
        self._inner(text).script()

    def _inner(self, text: str) -> Reader:
        inner = Reader(text, self.depth + 1, is_posix=self.is_posix)
        inner.commands, inner.repeats = self.commands, self.repeats
        return inner

    def deeper(self) -> None:
        if self._heredocs:
            raise Unclear("a substitution between a heredoc and its body")
        self.deepen()

    # --- blanks

    def blanks(self) -> None:
        found = _BLANKS.match(self.text, self.at)
        if found:
            self.at = found.end()
            if self.at == len(self.text) and self.text.endswith("\\\n"):
                raise Unclear("a backslash at the end")
        if self.peek() == "#":
            if self.depth:
                raise Unclear("a comment inside of a substitution")
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end

    def lines(self) -> None:
        """Blanks, newlines and what is due at them."""
        self.blanks()
        while self.peek() == "\n":
            self.at += 1
            for heredoc in self._heredocs:
                self._body(heredoc)
            self._heredocs, self.owes_heredoc = [], False
            self.blanks()

    def _body(self, heredoc: _Heredoc) -> None:
        lines: list[str] = []
        while True:
            if self.at >= len(self.text):
                raise Unclear("a heredoc that is not closed")
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            line = self.text[self.at : end]
            self.at = end
            if (line.lstrip("\t") if heredoc.strips else line) == heredoc.delimiter:
                break
            lines.append(line)
            self.at = end + 1
        if self.peek() == "\n":
            self.at += 1
        if heredoc.is_quoted:
            return
        body = "\n".join(lines)
        if "\\" in body or "`" in body:
            raise Unclear("a heredoc with escapes or backticks in it")
        if "$" in body:
            self._inner(body).expansions()

    # --- lists and pipes

    def keyword(self) -> str:
        found = _KEYWORD.match(self.text, self.at)
        return found.group() if found else ""

    def list_until(self, until: frozenset[str], *, is_nested: bool = False) -> None:
        """Commands up to a keyword of `until`, a `)`, a `;;` or the end; at least one."""
        must, count = True, 0
        while True:
            self.lines()
            rest = self.peek()
            if (
                not rest
                or rest == ")"
                or self.keyword() in until
                or self.text.startswith(";;", self.at)
            ):
                break
            self._pipeline()
            must, count = False, count + 1
            self.blanks()
            if self.text.startswith(("&&", "||"), self.at):
                self.at += 2
                must = True
            elif self.peek() in (";", "&") and not self.text.startswith(
                (";;", ";&", "&!", "&|"), self.at
            ):
                self.at += 1
            elif self.peek() not in ("", "\n", ")", ";"):
                raise Unclear(f"{self.peek()!r} where a command should end")
        if must or not count:
            raise Unclear("a command is missing")
        if is_nested and self._heredocs:
            raise Unclear("a heredoc inside of a substitution")

    def _pipeline(self) -> None:
        if self.keyword() == "time":
            self.at += 4
            self.blanks()
            if self.is_posix or self.peek() in ("-", '"', "'", "\\", "$", "`"):
                raise Unclear("`time` with options, or where it is no keyword")
        if self.text.startswith("! ", self.at):
            self.at += 2
            self.blanks()
        self._command()
        self.blanks()
        while self.peek() == "|" and self.peek(1) != "|":
            before = self._last
            self.at += 2 if self.peek(1) == "&" else 1
            self.lines()
            self._command()
            self.blanks()
            if before and self._last and not self._has_input:
                self._last = self.commands[-1] = replace(self._last, reads=before)

    # --- commands

    def _command(self) -> None:
        self._last = None
        opening = "(" if self.peek() == "(" else self.keyword()
        if opening:
            compound(self, opening)
        elif function := _FUNCTION.match(self.text, self.at):
            self.at = function.end()
            function_body(self)
        else:
            self._simple()
            self._last = self.commands[-1]
            return
        self.redirects_behind()
        self._last = None

    def redirects_behind(self) -> None:
        redirects: list[Redirect] = []
        self.blanks()
        while found := _REDIRECT.match(self.text, self.at):
            self._redirect(found, redirects)
            self.blanks()
        if redirects:
            self.add(redirects=redirects)

    def _simple(self) -> None:
        words: list[Word] = []
        assigns: list[Assign] = []
        redirects: list[Redirect] = []
        start, self._has_input = self.at, False
        while True:
            self.blanks()
            if found := _REDIRECT.match(self.text, self.at):
                self._redirect(found, redirects)
            elif not words and (assign := _ASSIGN.match(self.text, self.at)):
                if self.is_posix and "+" in assign.group():
                    raise Unclear("`+=`, which sh does not know")
                self.at = assign.end()
                value = self._assigned()
                assigns.append(Assign(assign[1], UNKNOWN if "+" in assign.group() else value))
            elif self._is_word():
                words.append(self.word())
                self.check_word_end()
            else:
                break
        if self.at == start:
            raise Unclear(f"{self.peek() or 'the end'!r} where a command should be")
        if not words and any(not redirect.writes for redirect in redirects):
            raise Unclear("a redirection by itself, for which zsh starts a pager")
        self.add(words, assigns, redirects)

    def _is_word(self) -> bool:
        char = self.peek()
        return bool(char) and (char not in " \t\n;&|<>()" or (char in "<>" and self.peek(1) == "("))

    def check_word_end(self) -> None:
        if self.peek() == "(":
            raise Unclear("a parenthesis inside of a word")
        if self.text[self.at - 1] == "}" and self.peek() in ("<", ">"):
            raise Unclear("a redirection with a name in braces")

    def _assigned(self) -> Word:
        char = self.peek()
        if not char or char in " \t\n;&|)":
            return Word("")
        if char in "(~=#":
            raise Unclear("an assignment of something unusual")
        value = self.word()
        if self.peek() in ("(", "<", ">"):
            raise Unclear("an assignment of something unusual")
        return value

    def add(
        self,
        words: Sequence[Word] = (),
        assigns: Sequence[Assign] = (),
        redirects: Sequence[Redirect] = (),
        loops: Sequence[Assign] = (),
    ) -> None:
        given = (tuple(words), tuple(assigns), tuple(redirects), self.repeats)
        self.commands.append(Simple(*given, loops=tuple(loops)))

    def _redirect(self, found: re.Match[str], redirects: list[Redirect]) -> None:
        number, operator = found.groups()
        self._has_input |= operator[0] == "<"
        if len(number) > 1 or (operator[0] == "&" and (number or self.is_posix)):
            raise Unclear("a redirection that shells take in different ways")
        self.at = found.end()
        if blanks := _BLANKS.match(self.text, self.at):
            self.at = blanks.end()
        if operator in ("<<", "<<-"):
            self._heredoc(operator)
            return
        if self.peek() in ("", "#", "!", "&", "|", ";", "\n", "(", ")"):
            raise Unclear("a redirection without a target")
        target = self.word()
        self.check_word_end()
        if operator in (">&", "<&"):
            # As a file's name it would be expanded twice: only copies of descriptors are read.
            if not target.is_bare or not _COPIED.fullmatch(target.value or "?"):
                raise Unclear("a copy of a descriptor that is not a number")
        elif operator != "<<<":
            self._opened(operator, target, redirects)

    def _opened(self, operator: str, target: Word, redirects: list[Redirect]) -> None:
        if operator == "<" and _RANGE.fullmatch(target.value or "?"):
            raise Unclear("a file that zsh takes for a range of numbers")
        if operator != "<":
            redirects.append(Redirect(target, writes=True))
        if operator[0] == "<":
            redirects.append(Redirect(target, writes=False))

    def _heredoc(self, operator: str) -> None:
        found = _HEREDOC.match(self.text, self.at)
        if not found or self.depth:
            raise Unclear("a heredoc with an unusual mark, or inside of a substitution")
        self.at = found.end()
        is_quoted = found[3] is None or found.group().startswith("\\")
        mark = found[1] or found[2] or found[3]
        self._heredocs.append(_Heredoc(mark, is_quoted=is_quoted, strips=operator == "<<-"))
        self.owes_heredoc = True
