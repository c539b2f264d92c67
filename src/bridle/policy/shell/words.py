"""Words: quotes, expansions, substitutions. The part of the reader that looks inside of words.

Only what means the same to bash and to zsh is read. Everything else is `Unclear`.
"""

from __future__ import annotations

import re
from abc import abstractmethod

from .script import ANY, BRACE, END, PIPE, VARIABLE, Unclear, Word

#: What ends a word, outside of quotes.
BREAKS = " \t\n;&|<>()"

_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,-][A-Za-z0-9_./:@%+,=-]*(?=[ \t\n;&|)]|$)")
_RUN = re.compile(r"[A-Za-z0-9_./:@%+,=^!#\]-]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SAFE = r"[A-Za-z0-9_./ ,:@%+*?-]*"
_FLAT = r"[A-Za-z0-9_. ,:@%+*?-]+"
#: `${name}` and the forms that only change text. Not `:=`, which sets; not what counts or indexes,
#: which evaluates; not `@`, which may run a command.
_BRACED = re.compile(
    r"\$\{(?:#?[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?])"
    rf"(?::?[-+?]{_SAFE}|##?{_SAFE}|%%?{_SAFE}|//?{_FLAT}/{_SAFE})?\}}"
)
_VARIABLE = re.compile(
    r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?:\}|(?=[^A-Za-z0-9_])))"
)
#: What zsh takes for a modifier of the expansion before it; one of them evaluates.
_MODIFIER = re.compile(r":[A-Za-z&#]")
#: Names are not read in arithmetic: their values would be evaluated, commands in them too.
_ARITHMETIC = re.compile(r"\$\(\([0-9+*/%<> \t-]*\)\)")
#: zsh would look for a program where a word begins with `=`; these are operators of `[`.
_EQUALS = re.compile(r"==?(?=[ \t])")
_TEXT = re.compile(r"\$\(cat <<'(?P<mark>[A-Za-z0-9_]+)'\n(?P<body>(?:.*\n)*?)(?P=mark)\n[ \t]*\)")
_DOUBLE = re.compile(r'[^"\\$`]+')

MAX_DEPTH = 40


class WordReader:
    """A cursor over a script's text that reads words."""

    def __init__(self, text: str, depth: int = 0) -> None:
        self.text = text
        self.at = 0
        #: How deep in substitutions this is.
        self.depth = depth - 1
        self.deepen()
        #: Whether the body of a heredoc is due at the next newline.
        self.owes_heredoc = False

    @abstractmethod
    def substitution(self) -> None:
        """Read the commands from here to the `)` that ends them, and step over it."""

    @abstractmethod
    def read_inner(self, text: str) -> None:
        """Read commands that stand in a text of their own."""

    def deepen(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unclear("it is nested too deeply")

    @abstractmethod
    def prints_text(self) -> None:
        """A `cat` that only prints a text is run."""

    def peek(self, ahead: int = 0) -> str:
        return self.text[self.at + ahead : self.at + ahead + 1]

    def word(self) -> Word:
        """The word that begins here."""
        plain = _PLAIN.match(self.text, self.at)
        if plain:
            self.at = plain.end()
            return Word(plain.group())
        start, parts = self.at, _Parts()
        while (char := self.peek()) and char not in BREAKS:
            self._part(char, parts, is_first=self.at == start)
        if char in ("<", ">") and self.peek(1) == "(":
            if self.at > start:
                raise Unclear("a process substitution inside of a word")
            self.at += 2
            self.substitution()
            if self.peek() and self.peek() not in BREAKS:
                raise Unclear("a process substitution inside of a word")
            return PIPE
        if self.at == start:
            raise Unclear(f"{char or 'the end'!r} where a word should be")
        return parts.word()

    def _part(self, char: str, parts: _Parts, *, is_first: bool) -> None:
        run = _RUN.match(self.text, self.at)
        if run and not (is_first and char in "=#"):
            parts.add(run.group())
            self.at = run.end()
        elif char == "'":
            parts.quote(self._single())
        elif char == '"':
            self._double(parts)
        elif char == "\\":
            parts.quote(self._escaped())
        elif char == "$":
            self._dollar(parts, is_quoted=False)
        elif char == "`":
            self._backticks(parts, is_quoted=False)
        else:
            self._special(char, parts, is_first=is_first)

    def _special(self, char: str, parts: _Parts, *, is_first: bool) -> None:
        self.at += 1
        rest = self.peek()
        if char == "[" and is_first and rest in (" ", "\t"):
            parts.add("[")  # the command
        elif char in "*?[":
            parts.glob(char)
        elif char == "{" and rest == "}":
            self.at += 1
            parts.add("{}")
        elif char in "{}":
            parts.brace(1 if char == "{" else -1)
        elif char == "~":
            self._tilde(rest, parts, is_first=is_first)
        elif operator := _EQUALS.match(self.text, self.at - 1):
            parts.add(operator.group())
            self.at = operator.end()
        elif ord(char) > 127 and char.isalnum():
            parts.add(char)
        else:
            raise Unclear(f"{char!r} outside of quotes")

    def _tilde(self, rest: str, parts: _Parts, *, is_first: bool) -> None:
        is_first = is_first or parts.braces > 0  # each of several words may begin there
        if is_first and (not rest or rest in "/ \t\n;&|)"):
            parts.is_home = True
            parts.add("~")
        elif is_first and rest == "+":  # where the shell is
            self.at += 1
            parts.unknown(form=f"{VARIABLE}PWD{END}")
        elif is_first or (parts.texts and parts.texts[-1][-1:] in ("=", ":")):
            # Somebody else's home; or one that is expanded inside of a word, as bash does.
            parts.unknown()
        else:
            parts.add("~")

    def _single(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise Unclear("a quote that is not closed")
        inside = self.text[self.at + 1 : end]
        self._check_lines(inside)
        self.at = end + 1
        return inside

    def _escaped(self) -> str:
        char = self.peek(1)
        if not char or not " " <= char <= "~":
            raise Unclear("a backslash before something unusual")
        self.at += 2
        return char

    def _double(self, parts: _Parts) -> None:
        self.at += 1
        parts.quote("")
        while (char := self.peek()) != '"':
            chunk = _DOUBLE.match(self.text, self.at)
            if chunk:
                self._check_lines(chunk.group())
                parts.quote(chunk.group())
                self.at = chunk.end()
            elif char == "\\":
                # Before anything else the backslash itself is meant.
                escaped = self.peek(1)
                if not escaped or escaped == "\n":
                    raise Unclear("a backslash at the end of a line")
                parts.quote(escaped if escaped in '$`"\\' else f"\\{escaped}")
                self.at += 2
            elif char == "$":
                self._dollar(parts, is_quoted=True)
            elif char == "`":
                self._backticks(parts, is_quoted=True)
            else:
                raise Unclear("a quote that is not closed")
        self.at += 1

    def _check_lines(self, quoted: str) -> None:
        if self.owes_heredoc and "\n" in quoted:
            raise Unclear("a quoted newline between a heredoc and its body")

    def _dollar(self, parts: _Parts, *, is_quoted: bool) -> None:
        start, following = self.at, self.peek(1)
        all_words = self.text.startswith(("$@", "${@"), self.at)
        if following == "(":
            text = self._parenthesis()
            if text is not None and is_quoted:
                parts.quote(text)
                return
        elif following == "{":
            braced = _BRACED.match(self.text, self.at)
            if not braced:
                raise Unclear("an expansion that can do more than insert a value")
            self.at = braced.end()
        elif name := _NAME.match(self.text, self.at + 1):
            self.at = name.end()
        elif following and following in "0123456789@*#?$!-":
            self.at += 2
        elif not following or following in (" \t\n/.,:%\"'" if is_quoted else " \t\n;&|)"):
            parts.quote("$")
            self.at += 1
            return
        else:
            raise Unclear("a `$` before something unusual")
        form = _form_of(self.text[start : self.at])
        # `"$@"` is any number of words, with its quotes too.
        parts.unknown(is_one=is_quoted and not all_words, form=form)
        if following != "(" and self.peek() == "[":
            raise Unclear("an expansion with an index")
        if following not in "({" and _MODIFIER.match(self.text, self.at):
            raise Unclear("an expansion that zsh would modify")

    def _parenthesis(self) -> str | None:
        """Read a substitution; what it gives, where that is known."""
        if self.text.startswith("$((", self.at):
            found = _ARITHMETIC.match(self.text, self.at)
            if not found:
                raise Unclear("arithmetic with more than numbers in it")
            self.at = found.end()
            return None
        text = self._text()
        if text is None:
            self.at += 2
            self.substitution()
        return text

    def _text(self) -> str | None:
        """`$(cat <<'END' … END)`, as commit messages are written: text, in which nothing is run."""
        found = _TEXT.match(self.text, self.at)
        if not found or self.owes_heredoc:
            return None
        body = found["body"]
        if found["mark"] in body.split("\n"):
            return None  # the body ends there, and what follows is run
        depth = lowest = 0
        for char in body:
            depth += (char == "(") - (char == ")")
            lowest = min(lowest, depth)
        # Old shells look for the end in the body too: there must be none, and nothing behind it
        # that an open quote could swallow.
        is_last = not self.text[found.end() :].strip(' \t\n"')
        if lowest < 0 or depth or "`" in body or (re.search("['\"\\\\]", body) and not is_last):
            return None
        self.prints_text()
        self.at = found.end()
        return body.rstrip("\n")

    def _backticks(self, parts: _Parts, *, is_quoted: bool) -> None:
        end = self.text.find("`", self.at + 1)
        inside = self.text[self.at + 1 : end]
        if end < 0 or "\\" in inside or (is_quoted and '"' in inside):
            raise Unclear("backticks with escapes or quotes in them")
        self._check_lines(inside)
        self.read_inner(inside)
        self.at = end + 1
        parts.unknown(is_one=is_quoted)

    def expansions(self) -> None:
        """Read a heredoc's body, which has expansions but no quotes."""
        parts = _Parts()
        while (at := self.text.find("$", self.at)) >= 0:
            self.at = at
            self._dollar(parts, is_quoted=True)


def _form_of(expansion: str) -> str:
    named = _VARIABLE.match(expansion)
    if not named:
        return ANY
    form = f"{VARIABLE}{named[1] or named[2]}{END}"
    # With an operator it may be something else.
    return form if named.end() == len(expansion) else f"{BRACE}{form},{ANY}{END}"


class _Parts:
    """A word while it is put together."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.form: list[str] = []
        self.is_bare = True
        self.is_unknown = False
        self.is_one = True
        self.has_globs = False
        self.braces = 0
        self.is_home = False

    def add(self, text: str) -> None:
        self.form.append(text)
        if not self.braces:
            self.texts.append(text)

    def quote(self, text: str) -> None:
        self.is_bare = False
        self.add(text)

    def glob(self, char: str) -> None:
        self.has_globs = True
        self.add(char)

    def brace(self, step: int) -> None:
        """Braces make several words of one: of what is between them the pattern knows nothing."""
        self.unknown(form=BRACE if step > 0 else END)
        self.braces = max(0, self.braces + step)

    def unknown(self, *, is_one: bool = False, form: str = ANY) -> None:
        self.is_bare = False
        self.is_unknown = True
        self.is_one = self.is_one and is_one
        self.form.append(form)
        if not self.braces:
            self.texts.append("*")

    def word(self) -> Word:
        text = "".join(self.texts)
        if self.is_unknown or self.has_globs:
            is_one = self.is_one and not self.has_globs
            return Word(
                None,
                is_bare=False,
                pattern=text,
                form="".join(self.form),
                is_home=self.is_home,
                is_one=is_one,
                is_glob=not self.is_unknown,
            )
        return Word(text, is_bare=self.is_bare, is_home=self.is_home)
