"""Paths, and patterns for them as in gitignore. What a path means depends on the `Ground`.

A path has two forms: as it is written, with `..` taken away, and as it really is, with symbolic
links followed. What is denied is denied in either form; what is allowed must be so in both.
"""

from __future__ import annotations

import re
from functools import lru_cache
from posixpath import normpath

from msgspec import Struct

from ..errors import InvalidRule
from .commands import like
from .verdicts import Ground

_UNCLEAN = re.compile(r"//|/\.|/$")
#: What each process sees differently: its own folder, its root, the files that it has open.
_OWN = re.compile(
    r"(?:/proc/(?:self|thread-self|[0-9]+)(?:/task/[0-9]+)?/(cwd|root|exe|fd|map_files)|/dev/fd)"
    r"(?=/|\Z)"
)
#: The three that a program has from the start.
_STANDARD = re.compile(r"/dev/std(?:in|out|err)|/(?:proc/self|dev)/fd/[012]")
_GLOB = re.compile(r"[*?\[]")
#: No file has a longer name; a longer glob is not read.
MAX_NAME = 1_000


class Place(Struct, frozen=True):
    """A path in both forms."""

    written: str
    real: str
    #: Whether it is another file for each process that opens it.
    is_own: bool = False


def absolute(path: str, cwd: str, home: str) -> str:
    """With `~` and the working folder put in; `..` and links are left as they are."""
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    return path if path.startswith("/") else f"{cwd}/{path}"


def place(path: str, cwd: str, ground: Ground) -> Place:
    whole = absolute(path, cwd, ground.home)
    written, real = clean(whole), ground.resolve(whole)
    if "/proc/" in real or "/dev/" in real:
        return _place_of_a_process(whole, real, cwd, ground)
    return Place(written, real if real == written else clean(real))


def _place_of_a_process(whole: str, real: str, cwd: str, ground: Ground) -> Place:
    """What a path below /proc most likely is; that it may be another file is told."""
    found = _OWN.match(real)
    if not found or _STANDARD.fullmatch(whole):
        return Place(clean(whole), clean(real))
    rest = real[found.end() :]
    if found[1] in ("cwd", "root"):
        folder = cwd if found[1] == "cwd" else ""
        real = ground.resolve(f"{folder}{rest}" or "/")
    return Place(clean(whole), clean(real), is_own=True)


def is_own(path: str) -> bool:
    """Whether each process sees something else there: it must not be followed from another one."""
    return _OWN.fullmatch(path) is not None


def is_glob(path: str) -> bool:
    return _GLOB.search(path) is not None


def clean(path: str) -> str:
    """Without `.`, `..`, doubled and trailing slashes."""
    if not _UNCLEAN.search(path):
        return path or "/"
    path = normpath(path)
    return path[1:] if path.startswith("//") else path


def is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder if folder.endswith("/") else f"{folder}/")


class Folders:
    """The folders that an agent may work in."""

    def __init__(self, ground: Ground) -> None:
        folders = (ground.folder, *ground.also)
        self._folders = [Place(clean(f), clean(ground.resolve(f))) for f in folders]

    def hold(self, place: Place) -> bool:
        """Whether it is inside of one of them, in both forms."""
        return any(
            is_inside(place.real, folder.real)
            and (is_inside(place.written, folder.written) or is_inside(place.written, folder.real))
            for folder in self._folders
        )


class PathPattern:
    """The content of a `Read(…)` or `Edit(…)` rule.

    `//x` begins at the root, `~/x` at home, `/x` and `./x` and `x/y` at the agent's folder; `x`
    alone is matched at any depth of that folder.
    """

    def __init__(self, text: str) -> None:
        if not text.strip() or "\0" in text:
            raise InvalidRule(text, "the path is empty")
        if text.startswith("!"):
            raise InvalidRule(text, "a path can't be negated")
        if re.search(r"\{[^}]*,[^}]*\}", text):
            raise InvalidRule(text, "braces mean nothing in a path: write a rule for each")
        self.text = text
        self._base, rest = _based(text)
        rest = f"{rest}**" if rest.endswith("/") else rest
        self._parts = [part for part in rest.split("/") if part not in ("", ".")]
        if ".." in self._parts:
            raise InvalidRule(text, "`..` can't be used in a path")
        self._parts = self._parts or ["**"]
        for part in self._parts:
            try:
                re.compile(_part(part))
            except re.error as error:
                raise InvalidRule(text, f"{part!r} is no pattern: {error}") from error

    def bind(self, ground: Ground, *, covers_below: bool) -> BoundPattern:
        """The pattern for one agent. `covers_below`: a folder that is matched is so with all that
        is in it."""
        bases = {"root": "/", "home": ground.home, "folder": ground.folder}
        written = clean(bases[self._base])
        bound = {written, clean(ground.resolve(written))}
        return BoundPattern(sorted(bound), self._parts, covers_below, ground.ignores_case)


def _based(text: str) -> tuple[str, str]:
    if text.startswith("//"):
        return "root", text[2:]
    if text == "~" or text.startswith("~/"):
        return "home", text[2:]
    if text.startswith(("/", "./")):
        return "folder", text.partition("/")[2]
    return "folder", text if "/" in text.rstrip("/") else f"**/{text}"


class BoundPattern:
    """A pattern that begins at known folders."""

    def __init__(
        self, bases: list[str], parts: list[str], covers_below: bool, ignores_case: bool
    ) -> None:
        *before, last = parts
        if last == "**":
            # Of a folder all that is in it; and the folder itself, where it covers what is below.
            rule = parts if covers_below else [*before, "*", "**"]
        else:
            rule = [*parts, "**"] if covers_below else parts
        self._wholes = [[*_components(base), *rule] for base in bases]
        #: How every path that fits begins.
        self._starts = tuple(_literal_start(whole) for whole in self._wholes)
        self._flags = re.IGNORECASE if ignores_case else 0

    def matches(self, path: str) -> bool:
        if not self._flags and not path.startswith(self._starts):
            return False
        parts = _components(path)
        return any(_fit(parts, whole, self._flags) for whole in self._wholes)

    def matches_either(self, place: Place) -> bool:
        written, real = place.written, place.real
        return self.matches(written) or (real != written and self.matches(real))

    def matches_both(self, place: Place) -> bool:
        return self.matches(place.written) and (
            place.real == place.written or self.matches(place.real)
        )

    def may_match(self, glob: str) -> bool:
        """Whether some file that a shell's glob stands for could be matched."""
        parts = _components(glob)
        return any(may_meet(parts, whole, self._flags) for whole in self._wholes)

    def reaches(self, folder: Place) -> bool:
        """Whether something inside of this folder could be matched."""
        return any(map(self.may_reach, {folder.written, folder.real}))

    def may_reach(self, glob: str) -> bool:
        """The same for a folder that is known in part."""
        parts = [*_components(glob), "**"]
        return any(may_meet(parts, whole, self._flags) for whole in self._wholes)


def _literal_start(whole: list[str]) -> str:
    known: list[str] = []
    for part in whole:
        if _GLOB.search(part):
            break
        known.append(part)
    return "/" + "/".join(known)


def _components(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _fit(parts: list[str], rule: list[str], flags: int) -> bool:
    """Whether a path fits a rule, component by component; `**` is any number of them.

    In time that is bounded by the product of both, whatever they are.
    """
    states = _after_stars({0}, rule)
    for part in parts:
        states = _after_stars(
            {
                state if rule[state] == "**" else state + 1
                for state in states
                if state < len(rule) and (rule[state] == "**" or _is_like(rule[state], part, flags))
            },
            rule,
        )
        if not states:
            return False
    return len(rule) in states


def _after_stars(states: set[int], rule: list[str]) -> set[int]:
    for at, part in enumerate(rule):
        if part == "**" and at in states:
            states.add(at + 1)
    return states


def _is_like(pattern: str, part: str, flags: int) -> bool:
    if not flags and not _GLOB.search(pattern):
        return pattern == part
    if not flags and "?" not in pattern and "[" not in pattern:
        return like(pattern, part)
    return re.fullmatch(_part(pattern), part, flags | re.DOTALL) is not None


@lru_cache(1024)
def _part(part: str) -> str:
    """One component: `*` and `?` do not cross a slash. What stands behind a `*` is looked for once,
    from the left: that suffices, and takes no longer than the text is long."""
    first, *rest = _between_stars(part)
    if not rest:
        return first
    inner = "".join(f"(?>[^/]*?{one})" for one in rest[:-1] if one)
    return f"{first}{inner}[^/]*{rest[-1]}"


def _between_stars(part: str) -> list[str]:
    found, at = [""], 0
    while at < len(part):
        char = part[at]
        at += 1
        if char == "*":
            found.append("")
        elif char == "?":
            found[-1] += "[^/]"
        elif char == "[" and (end := _end_of_bracket(part, at)):
            found[-1] += _bracket(part[at:end])
            at = end + 1
        else:
            found[-1] += re.escape(char)
    return found


_CLASS = re.compile(r"\[([:.=])([^\]]{1,20}?)\1\]")
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-\/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "word": r"\w",
    "xdigit": "0-9a-fA-F",
}


def _end_of_bracket(part: str, at: int) -> int:
    """Where the `]` is that ends what begins behind a `[`; 0 if none is."""
    if part.rfind("]") < at:
        return 0
    at += part[at : at + 1] in ("!", "^")
    at += part[at : at + 1] == "]"
    while at < len(part):
        if found := _CLASS.match(part, at):
            at = found.end()
        elif part[at] == "]":
            return at
        else:
            at += 1
    return 0


def _bracket(text: str) -> str:
    negates = text[0] in "!^"
    inside, at, text = "", 0, text[negates:]
    for found in _CLASS.finditer(text):
        inside += _range(text[at : found.start()])
        is_class = found[1] == ":"
        inside += _CLASSES.get(found[2], r"\S") if is_class else re.escape(found[2])
        at = found.end()
    inside += _range(text[at:])
    return f"[^{inside}]" if negates else f"[{inside}]"


def _range(text: str) -> str:
    return re.sub(r"([^\w-])", r"\\\1", text).replace("--", r"-\-")


def may_meet(glob: list[str], rule: list[str], flags: int) -> bool:
    """Whether a path could fit both patterns, component by component; in doubt it could. In either
    `**` is any number of components."""
    states = _after_stars({0}, rule)
    for part in glob:
        if part == "**":
            # It may stand for whatever the rule wants next.
            states = set(range(min(states), len(rule) + 1)) if states else states
            continue
        states = _after_stars(
            {
                state if rule[state] == "**" else state + 1
                for state in states
                if state < len(rule)
                and (rule[state] == "**" or part_may_meet(part, rule[state], flags))
            },
            rule,
        )
    return len(rule) in states


def part_may_meet(glob: str, part: str, flags: int) -> bool:
    if _GLOB.search(glob) and _GLOB.search(part):
        return True
    if max(len(glob), len(part)) > MAX_NAME:
        return True
    pattern, text = (glob, part) if _GLOB.search(glob) else (part, glob)
    try:
        return re.fullmatch(_part(pattern), text, flags) is not None
    except re.error:
        return True
