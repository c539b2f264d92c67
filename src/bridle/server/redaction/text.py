"""Secrets in one text, which is no JSON or was decoded from it.

Owns what is looked for, the values that are known beside, and how much looking a document may take:
what could not be looked at to its end is not shown at all.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from .assigned import Assigned
from .commands import COMMANDS
from .forms import FORMS, Form, Found
from .names import NAME_HINTS, has_flags, has_names, loose_names

#: So many places are looked at in a document of any size, and one more for so many bytes of it.
PLACES, BYTES_A_PLACE = 2_000, 200
UNCHECKED = b"[redacted:unchecked]"

#: Letters that JSON or a program has spelled by their number.
_SPELLED_LETTER = re.compile(rb"\\+u00(?P<hex>[2-7][0-9A-Fa-f])")
#: Letters that are spelled so could be those of a name, or of the beginning of a token.
_MAY_HIDE = re.compile(rb"\\u00[2-7]|\\/")


class Searched(Protocol):
    @property
    def needle(self) -> bytes: ...
    @property
    def is_lower(self) -> bool: ...
    @property
    def also(self) -> bytes: ...
    def found(self, text: bytes, lower: bytes) -> Iterator[Found | None]: ...


_ALL: tuple[Searched, ...] = (*FORMS, *COMMANDS)
_ASSIGNED = Assigned()


class _Bunch(Struct, frozen=True):
    """Forms that one hint is for: a part of their needles, and what must be behind it."""

    hint: bytes
    forms: tuple[Searched, ...]
    pattern: re.Pattern[bytes] | None = None

    def among(self, encoded: bytes, lower: bytes) -> list[Searched]:
        if self.pattern and not self.pattern.search(encoded):
            return []
        return [one for one in self.forms if one.needle in (lower if one.is_lower else encoded)]


_FORMS = tuple(one for one in FORMS if isinstance(one, Form))


def _bunches() -> Iterator[_Bunch]:
    """Most tokens have a prefix that ends with one of three signs, and at least so much behind it.
    Of the others some have a part in common."""
    left = list(_ALL)
    for sign, letters in (
        (b"_", b"[A-Za-z0-9+/=-]{10}"),
        (b"-", b"[\\w-]{10}"),
        (b".", b"[\\w-]{16}"),
    ):
        taken = tuple(one for one in _FORMS if one.is_token(sign))
        left = [one for one in left if one not in taken]
        behind = b"|".join(b"(?<=%b)" % re.escape(one.needle) for one in taken)
        last = bytes({one.needle[-2] for one in taken})
        last = b"(?<=[%b]%b)" % (last, re.escape(sign))
        pattern = re.compile(b"%b%b(?=%b)(?:%b)" % (re.escape(sign), last, letters, behind))
        yield _Bunch(sign, taken, pattern)
    for hint in (b"login", b"@", b"sig"):
        some = tuple(one for one in left if hint in one.needle or one.also == hint)
        left = [one for one in left if one not in some]
        yield _Bunch(hint, some)
    for one in left:
        yield _Bunch(one.needle, (one,))


_BUNCHES = tuple(_bunches())


def _hint() -> re.Pattern[bytes]:
    """What nearly no document without a secret has, in lower case. One search for all, that stops
    at few letters, and looks at what is behind one before it looks at what is before it."""
    by_letter: dict[str, dict[str, list[str]]] = {}
    for hint in NAME_HINTS + FORM_HINTS:
        before, letter, after = _HINT_PARTS.fullmatch(hint).groups()  # type: ignore[union-attr]
        by_letter.setdefault(letter, {}).setdefault(after, []).append(f"(?<={before}{letter})")
    parts = []
    for letter, by_after in by_letter.items():
        some = (f"(?={after})(?:{'|'.join(before)})" for after, before in by_after.items())
        parts.append(f"{letter}(?:{'|'.join(some)})")
    return re.compile("|".join(parts).encode())


_HINT_PARTS = re.compile(r"(.*?)\[(.)\](.*)", re.DOTALL)
#: Each with a rare letter, by which it is looked for, in brackets.
FORM_HINTS = (
    *("ey[j]", "ai[z]a", "[q]~", "xo[x]", "hoo[k]s\\.slack\\.com", "webhoo[k]s/", "[w]ebhook\\."),
    *("[b]asic ", "[b]earer", "lo[g]in ", "si[g](?:nature)?=", "-----[b]egin ", "pri[v]ate-lines"),
    *("s[k][0-9a-f]{32}", "[k]ey-[a-f0-9]{32}", "mys[q]l", "mariad[b]", "-pro[x]y-user"),
    *("a[k]ia[a-z0-9]{16}", "a[b]ia[a-z0-9]{16}", "atatt3[x]", "[b]ot[0-9]{6,12}:aa"),
    "tic[k]et=",
    *("s[g]\\.[a-z0-9_-]{16}", "[b]ridle_[a-z]{1,5}_", "1[/]/0"),
)
#: The same for those whose letters are all common: it is faster to look for each as it is.
_WORD_HINTS = (b"secret", b"credential", b"passphrase", b'auth"', b"_auth", b"_pass", b"dapi")
#: Options of commands, with and without blanks that JSON spells.
_OPTION_HINT = re.compile(
    rb"-(?:(?<=[\s\"'\\(-]-)|(?<=\\[nt]-))(?:-?user|[a-z]{0,6}(?:[uapw][ =\\\"']|u[^\s:\"]{1,64}:))"
)
_HINT = _hint()
_OTHERS = (b"ASIA",)
#: Those that the hint has not.
_TOKENS = tuple(
    (one.hint, one.pattern, one)
    for one in _BUNCHES
    if one.hint in (b"_", b"-", b".", b"@", *_OTHERS)
)

_AS_IT_IS = tuple((one.hint, one) for one in _BUNCHES if not any(f.is_lower for f in one.forms))
_IN_LOWER = tuple((one.hint, one) for one in _BUNCHES if any(f.is_lower for f in one.forms))


def most_places(size: int) -> int:
    return PLACES + size // BYTES_A_PLACE


class Spent(Exception):
    """More places were to be looked at than may be."""


class Budget:
    """Of one document."""

    def __init__(self, size: int) -> None:
        self._left = most_places(size)

    @property
    def is_spent(self) -> bool:
        return self._left < 0

    def spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Spent


class Search(Struct, frozen=True):
    """What there may be in a document: the rest need not be looked for in each of its texts."""

    forms: Sequence[Searched]
    has_names: bool
    #: Values that are known to be secrets, with the kind of each.
    values: Sequence[tuple[bytes, str]]
    #: How these are spelled.
    spelled: Sequence[bytes] = ()
    #: Letters may be spelled by their numbers: nothing can be said of a text before it is decoded.
    is_hidden: bool = False

    def __bool__(self) -> bool:
        return bool(self.forms or self.has_names or self.values)

    def places(self, encoded: bytes) -> list[int] | None:
        """Where in a document there may be one; None if it may be anywhere, or in too many."""
        if self.is_hidden:
            return None
        most = most_places(len(encoded))
        found = list(itertools.islice(self._places(encoded), most))
        return sorted(found) if len(found) < most else None

    def _places(self, encoded: bytes) -> Iterator[int]:
        lower = encoded.lower()
        if self.has_names:
            yield from loose_names(lower)
        for form in self.forms:
            yield from _finds(form.needle, lower if form.is_lower else encoded)
        for spelled in self.spelled:
            yield from _finds(spelled, encoded)


def search_for(encoded: bytes, values: Mapping[bytes, tuple[bytes, str]]) -> Search:
    """`values` are the known ones by how they are spelled in JSON."""
    is_hidden = bool(_MAY_HIDE.search(encoded))
    plain = _SPELLED_LETTER.sub(_letter, encoded).replace(b"\\/", b"/") if is_hidden else encoded
    lower = plain.lower()
    seen = [value for one, value in values.items() if one in plain]
    if is_hidden:
        seen += [value for one, value in values.items() if one in encoded]
    known = tuple(dict.fromkeys(seen)) if seen else ()
    # In documents within it they are spelled otherwise.
    spelled = [one for one, value in values.items() if value in known] if known else ()
    if (
        _HINT.search(lower)
        or _OPTION_HINT.search(lower)
        or any([word in lower for word in _WORD_HINTS])  # noqa: C419 - twice as fast
    ):
        hinted = [bunch for hint, bunch in _AS_IT_IS if hint in plain]
        hinted += [bunch for hint, bunch in _IN_LOWER if hint in lower]
        is_named = has_names(lower) or has_flags(lower)
    else:
        hinted = [
            bunch
            for hint, pattern, bunch in _TOKENS
            if hint in plain and (pattern is None or pattern.search(plain))
        ]
        is_named = has_flags(lower)
    if not (hinted or is_named or known or is_hidden):
        return _NOTHING
    forms = [form for bunch in hinted for form in bunch.among(plain, lower)]
    return Search(forms, is_named, known, spelled, is_hidden)


_NOTHING = Search((), has_names=False, values=())


def _letter(match: re.Match[bytes]) -> bytes:
    return bytes([int(match["hex"], 16)])


def _finds(needle: bytes, text: bytes) -> Iterator[int]:
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + len(needle))


def redacted(text: bytes, search: Search, budget: Budget) -> bytes | None:
    """Without secrets; None if there are none in it. Spent, if that took too long to tell."""
    found = _without(text, search, budget)
    if found is None and b"\\u00" in text:
        plain = _SPELLED_LETTER.sub(_letter, text)
        found = _without(plain, search, budget)
    return found


def _without(text: bytes, search: Search, budget: Budget) -> bytes | None:
    found: list[Found] = []
    lower = text.lower()
    for form in search.forms:
        if form.needle in (lower if form.is_lower else text):
            found += _seen(form.found(text, lower), budget)
    if search.has_names:
        found += _seen(_ASSIGNED.found(text, lower), budget)
    for value, kind in search.values:
        found += _seen(_places(value, kind, text), budget)
    if not found:
        return None
    # Of those that begin at the same place the longest, and of two of a size the first.
    found.sort(key=lambda one: (one[0], -one[1]))
    parts: list[bytes] = []
    done = 0
    for start, end, kind in found:
        if start >= done:
            parts += (text[done:start], word(kind))
        done = max(done, end)
    return b"".join((*parts, text[done:]))


def _seen(found: Iterable[Found | None], budget: Budget) -> Iterator[Found]:
    for one in found:
        budget.spend()
        if one:
            yield one


def _places(value: bytes, kind: str, text: bytes) -> Iterator[Found]:
    for at in _finds(value, text):
        yield at, at + len(value), kind


def word(kind: str) -> bytes:
    return b"[redacted:%s]" % kind.encode()
