"""Paths that are known only in part: what variables, globs and braces may make of them. Pure.

The reader marks in a word's `form` what the shell will put in. Here variables that the script sets
are put in, braces become one form each, and a form is compared with a path that matters. In doubt
it may be that path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .paths import clean, part_may_meet
from .shell.script import ANY, BRACE, END, VARIABLE, Word

#: One word may be so many.
MAX_FORMS = 64
#: So many marks in one word are put in.
MAX_DEPTH = 12
#: So many letters are made of the words of one script, and so many variables are looked at that are
#: each set by way of the next: `a=$b$b; b=$c$c; …` is twice as long with each.
MAX_LETTERS, MAX_NESTED = 1_000_000, 20

_GLOB = re.compile(r"[*?\[]")
_UNKNOWN = re.compile(rf"[*?\[{ANY}]")
_MARK = re.compile(rf"{VARIABLE}([A-Za-z0-9_]*){END}|{BRACE}|{END}")


class Bindings:
    """What variables may be in one script: all that it sets them to, and what is `known` besides,
    such as `HOME`."""

    def __init__(self, variables: Mapping[str, Sequence[Word]], **known: Sequence[str]) -> None:
        self._variables = variables
        self._known = known
        self._values: dict[str, list[str]] = {}
        #: What is known by now.
        self.forms: dict[str, list[str]] = {}
        #: Whether there is more than can be looked at.
        self.is_too_much = False
        self._letters = self._nested = 0

    def has_room(self, form: str) -> bool:
        """Whether this may be looked at, too."""
        self._letters += len(form)
        self.is_too_much |= self._letters > MAX_LETTERS
        return self._letters <= MAX_LETTERS

    def values(self, name: str) -> list[str]:
        found = self._values.get(name)
        if found is None:
            # For one that is set by way of itself; what is made of that is not kept.
            self._values[name] = [ANY]
            if self._nested == MAX_NESTED:
                self.is_too_much = True
                return [ANY]
            self._nested += 1
            found = self._values[name] = self._found(name)
            self._nested -= 1
            self.forms.clear()
        return found

    def _found(self, name: str) -> list[str]:
        values = list(self._known.get(name, ()))
        for word in self._variables.get(name, ()):
            values += forms_of(word, self)
            if len(values) > MAX_FORMS:
                self.is_too_much = True
                return [ANY]
        if "IFS" in self._variables:
            values.append(ANY)
        return values or [ANY]


def forms_of(word: Word, bindings: Bindings) -> list[str]:
    """All that a word may be, as far as that is known: texts with globs and `ANY` in them."""
    form = _form(word)
    if form not in bindings.forms:
        found = list(dict.fromkeys(_forms(form, bindings, 0)))
        # What is not in quotes may become several words.
        split = [one for one in found if word.value is None and any(map(str.isspace, one))]
        parts = [part for one in split for part in one.split() if part not in found]
        bindings.is_too_much |= len(found) > MAX_FORMS
        bindings.forms[form] = [ANY] if len(found) > MAX_FORMS else [*found, *parts]
    return bindings.forms[form]


def globs_of(glob: str) -> list[str]:
    """The same of a glob as tools take it, with braces, `**` and groups."""
    marked = glob.replace("{", BRACE).replace("}", END).replace("**", ANY)
    marked = re.sub(r"\\.|[@!+*?]\([^)]*\)?", ANY, marked)
    found = _forms(marked, Bindings({}), 0)
    return [ANY] if len(found) > MAX_FORMS else [whole(form) for form in found]


def _form(word: Word) -> str:
    return word.value if word.value is not None else word.form or ANY


def _forms(form: str, bindings: Bindings, depth: int) -> list[str]:
    mark = _MARK.search(form)
    if mark is None:
        return [form]
    if depth > MAX_DEPTH:
        bindings.is_too_much = True
        return [ANY]
    before, after = form[: mark.start()], form[mark.end() :]
    if mark[1] is not None:
        middles = bindings.values(mark[1])
    else:
        alternatives, after = _alternatives(after) if mark.group() == BRACE else (None, "")
        middles = alternatives or [ANY]
    found: list[str] = []
    for middle in middles:
        put_in = f"{before}{middle}{after}"
        if not bindings.has_room(put_in):
            return [ANY]
        found += _forms(put_in, bindings, depth + 1)
        if len(found) > MAX_FORMS:
            break
    return found


def _alternatives(text: str) -> tuple[list[str] | None, str]:
    """What stands between these braces, and what behind them; None for a range."""
    parts, depth = [""], 0
    for at, char in enumerate(text):
        if char == END and not _is_variable(text, at) and depth == 0:
            is_range = len(parts) == 1 and ".." in parts[0]
            return (None if is_range else parts), text[at + 1 :]
        depth += (char == BRACE) - (char == END and not _is_variable(text, at))
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return None, ""


def _is_variable(text: str, end: int) -> bool:
    """Whether this end is one of a variable's name."""
    name = text[:end].rpartition(VARIABLE)
    return bool(name[1]) and re.fullmatch(r"[A-Za-z0-9_]*", name[2]) is not None


def is_known(form: str) -> bool:
    return ANY not in form and not _GLOB.search(form)


def whole(form: str) -> str:
    """A form of a path from the root, with as much of `..` taken away as can be. What is above
    something that is not known, or behind a link that may be anything, may be anywhere."""
    found = _UNKNOWN.search(form)
    if not found:
        return clean(form)
    before, behind = form[: form.rfind("/", 0, found.start()) + 1], form[found.start() :]
    if before.startswith(("/proc/", "/dev/")):
        return f"{before}{ANY}"
    if "/.." in behind or any(map(_may_lead_up, form.split("/")[:-1])):
        return ANY
    return clean(form)


def _may_lead_up(part: str) -> bool:
    """Whether some shell takes this glob for `..`, too, or for any number of folders."""
    return part == "**" or (part[:1] == "." and part != "." and _is_glob_of(part, ".."))


def _is_glob_of(part: str, name: str) -> bool:
    return bool(_GLOB.search(part)) and part_may_meet(part, name, 0)


def is_unknown(form: str) -> bool:
    """Whether it may be any file: what is not known may lead up, wherever it stands."""
    return ANY in form


def starts_unknown(form: str) -> bool:
    return form.startswith(ANY)


def _components(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def may_be_inside(form: str, folder: str) -> bool:
    """Whether it may be this folder, or in it. What is wholly unknown is not counted here."""
    if starts_unknown(form):
        return False
    home = _components(folder)
    known, unknown, _ = form.partition(ANY)
    parts = _components(known)
    if unknown:
        # The rest of that component, and all behind it, may be anything.
        if known.endswith("/"):
            parts.append(ANY)
        else:
            parts[-1] += ANY
        return all(map(_meets, parts, home))
    return len(parts) >= len(home) and all(map(_meets, parts, home))


def may_hold(form: str, folder: str) -> bool:
    """Whether it may be this folder, or one that this is in."""
    if starts_unknown(form):
        return False
    known, unknown, _ = form.partition(ANY)
    parts, home = _components(known), _components(folder)
    if unknown and not known.endswith("/"):
        parts[-1] += ANY
    return len(parts) <= len(home) and all(map(_meets, parts, home))


def may_be(form: str, path: str) -> bool:
    """Whether it may be this path; where it begins unknown, its end must tell."""
    end = form.rpartition(ANY)[2]
    if ANY in form:
        return end.startswith("/") and path.endswith(end) and not _GLOB.search(end)
    parts, wanted = _components(form), _components(path)
    return len(parts) == len(wanted) and all(map(_meets, parts, wanted))


def may_contain(form: str, names: Sequence[str]) -> bool:
    """Whether it may have these names in it, one behind the other; the first known in part."""
    parts = [part.replace(ANY, "*") for part in _components(form)]
    for at, part in enumerate(parts):
        following = parts[at : at + len(names)]
        if part.strip("*?") and len(following) == len(names):
            pairs = zip(following, names, strict=True)
            if all(part_may_meet(one, name, re.IGNORECASE) for one, name in pairs):
                return True
    return False


def _meets(part: str, name: str) -> bool:
    # A shell's `*` does not stand for a name that begins with a dot.
    if name.startswith(".") and part[:1] in ("*", "?"):
        return False
    return part_may_meet(part.replace(ANY, "*"), name, 0)
