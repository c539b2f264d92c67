"""Secrets taken out of a JSON document, whatever its strings say, and out of documents in these.

Owns the way through it: string by string, so that numbers and the form stay what they were. What
the name of a key says of its value is said here, too; what is in a text is `text`'s.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from .assigned import flagged_kind, is_value_of
from .names import kind_of_name
from .text import UNCHECKED, Budget, Search, Spent, redacted, search_for, word
from .values import Held, values_of

#: So many documents may stand in each other's strings, and are still read as such.
DEEPEST = 6

_STRING = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"(\s*:)?', re.DOTALL)
#: As those that tell keys apart, where there are such already.
_NUMBER = re.compile(rb"#([0-9]{1,18})(?![0-9])")
#: Keys of a pair whose value names what the other one is.
_NAMES = frozenset((b"name", b"key", b"variable", b"header"))
_VALUES = frozenset((b"value", b"val"))

# Inside `Redactor`, the name is that of a method.
_Bytes: TypeAlias = bytes


class Redactor:
    """`environ` is where values are from that are secrets by their variables' names. `held` are
    variables that sessions have as secrets: another set whenever it has changed."""

    def __init__(self, environ: Mapping[str, str], held: Callable[[], Held] = frozenset) -> None:
        self._environ = environ
        self._held = held
        self._seen: Held = frozenset()
        self._values = values_of(environ, frozenset())

    def _known(self) -> Mapping[_Bytes, tuple[_Bytes, str]]:
        held = self._held()
        if held is not self._seen:
            if held != self._seen:
                self._values = values_of(self._environ, held)
            self._seen = held
        return self._values

    def bytes(self, encoded: _Bytes) -> _Bytes:
        """The same JSON without secrets."""
        search = search_for(encoded, self._known())
        return _Document(search, Budget(len(encoded))).without(encoded) if search else encoded


class _Document:
    """One, with those that are in it."""

    def __init__(self, search: Search, budget: Budget, depth: int = 0) -> None:
        self._search = search
        self._budget = budget
        self._depth = depth
        #: What the next string is, as those before it say.
        self._next = ""
        #: What those of a list are, and how deep it is.
        self._of_list, self._level = "", 0
        #: What the value of a pair is, whose name was there.
        self._of_pair = ""
        self._is_name = False
        #: What the value of the last key is, be it a list.
        self._wanted = ""

    def without(self, encoded: bytes) -> bytes:
        places = self._search.places(encoded)
        parts: list[bytes] = []
        keys = _Keys(encoded)
        done = after = at = 0
        for string in _STRING.finditer(encoded):
            start, end = string.span(1)
            if places is not None:
                while at < len(places) and places[at] < start:
                    at += 1
                is_one = at < len(places) and places[at] <= end
                if not (is_one or self._next or self._of_list or self._of_pair or self._wanted):
                    if at == len(places):
                        break
                    self._is_name = string.lastindex == 2 and string[1].lower() in _NAMES
                    after = string.end()
                    continue
            is_key, text = string.lastindex == 2, _decoded(string[1])
            kind = self._kind(encoded[after : start - 1].strip(), text, is_key=is_key)
            after = string.end()
            new = word(kind) if kind and is_value_of(kind, text) else self._redacted(text)
            if new is not None:
                new = _encoded(new)
                parts += (encoded[done:start], keys.told(string[1], new) if is_key else new)
                done = end
        return b"".join((*parts, encoded[done:]))

    def _kind(self, between: bytes, text: bytes, *, is_key: bool) -> str:
        """What this string is by those before it; and what it says of those after it."""
        if between[:1] in (b"}", b"{") or between[-1:] == b"{":
            self._of_pair = ""
        kind, self._next = self._next if between in (b"", b",") else "", ""
        if is_key:
            self._of_list = ""
            lower = text.lower()
            self._next = kind_of_name(text) or (self._of_pair if lower in _VALUES else "")
            self._is_name = lower in _NAMES
            self._wanted = self._next
            return ""
        kind = self._in_list(between) or kind
        if self._is_name and between == b"":
            self._of_pair = kind_of_name(text)
        self._is_name = False
        self._next = flagged_kind(text)
        self._wanted = ""
        return kind

    def _in_list(self, between: bytes) -> str:
        """What the strings of a list are, whose key says so."""
        if self._wanted and between and not between.strip(b"[ \t\r\n"):
            self._of_list, self._level = self._wanted, 0
        if self._of_list:
            self._level += between.count(b"[") - between.count(b"]")
            if self._level <= 0 or b"{" in between:
                self._of_list = ""
        return self._of_list

    def _redacted(self, text: bytes) -> bytes | None:
        if len(text) < 2:
            return None
        if self._budget.is_spent:
            return UNCHECKED
        try:
            if text[:1] in b'{["' and self._depth < DEEPEST and _is_json(text):
                new = _Document(self._search, self._budget, self._depth + 1).without(text)
                return None if new == text else new
            return redacted(text, self._search, self._budget)
        except Spent:
            return UNCHECKED


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (ValueError, RecursionError):
        return False
    return True


def _decoded(string: bytes) -> bytes:
    """As UTF-8, halves of letters too."""
    if b"\\" not in string:
        return string
    text: str = json.loads(b'"%b"' % string, strict=False)
    return text.encode("utf-8", "surrogatepass")


def _encoded(text: bytes) -> bytes:
    try:
        return json.dumps(text.decode(), ensure_ascii=False)[1:-1].encode()
    except UnicodeDecodeError:  # half a letter can only be spelled
        return json.dumps(text.decode("utf-8", "surrogatepass"))[1:-1].encode()


class _Keys:
    """Two keys of a document that differ still do when they are redacted; equal ones stay so."""

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded
        self._first = 0
        self._numbers: dict[bytes, int] = {}

    def told(self, key: bytes, redacted: bytes) -> bytes:
        if not self._first:
            self._first = max(map(int, _NUMBER.findall(self._encoded)), default=0) + 1
        number = self._numbers.setdefault(key, self._first + len(self._numbers))
        return b"%s#%d" % (redacted, number)
