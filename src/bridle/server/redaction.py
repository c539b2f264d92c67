"""Secrets taken out of what is shown: keys, tokens and passwords, in JSON that is encoded already.

Owns how they are found and what stands in their place (`[redacted:KIND]`). Pure: bytes in, bytes
out, and the JSON has the same shape as before. It is for what goes out; nothing that is stored is
ever changed. It finds what has the form of a secret, and values of the environment and of sessions:
another password that stands alone in a text it can't know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

#: Variables with one of these in their names have values that are secrets, if they are so long.
SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
SHORTEST_VALUE = 12
#: How much is searched at a time, and how far a secret may reach beyond that.
WINDOW, BEYOND = 1 << 18, 1 << 16
#: A password that is shorter than this is not told from other words.
SHORTEST_PASSWORD = 6


class _Form(Struct, frozen=True):
    """How one kind of secret looks. The search stops at `letter`, one that is rare; what `before`
    looks back at, with this many bytes of `head`, belongs to the secret. What `stays` does not."""

    kind: str
    letter: str
    before: str = ""
    head: int = 0
    stays: str = ""
    rest: str = ""


def _alone(head: str, letters: str = "A-Za-z0-9") -> str:
    """With none of these letters before it, unless it is an escape's, as in `\\nsk-…`."""
    escaped = rf"(?<=\\[nrtbf]{head})|(?<=\\u[0-9A-Fa-f]{{4}}{head})"
    return rf"(?<={head})(?:(?<![{letters}]{head})|{escaped})"


#: `name=`, `name="`, `"name": "`; quotes may be escaped, and that again.
_IS = r"(?:=\\*[\"']?|\\*[\"']?\s{0,3}:\s{0,3}\\*[\"'])"
_VALUE = rf"[^\s\"'\\&,;()<>{{}}$]{{{SHORTEST_PASSWORD},}}"
#: A key of the document, whose value is a secret whatever it has: it is replaced as a string.
_IS_KEY = rf"\"\s{{0,9}}:\s{{0,9}}\"(?=[^\"]{{{SHORTEST_PASSWORD}}}|[^\"]{{0,5}}\\)"
#: The same in JSON within a string: up to the quote that ends it there.
_IS_INNER_KEY = r"\\\"\s{0,9}:\s{0,9}\\\""
_INNER_LETTER = r"(?:[^\"\\]|\\\\(?:\\[\"\\]|[^\"\\]))"
_INNER_VALUE = rf"{_INNER_LETTER}{{{SHORTEST_PASSWORD},}}+(?=\\\")"
_CREDENTIALS = r"[A-Za-z0-9._~+/=-]{16,}"
#: What a block has up to its end. It ends at no half escape, and at no half letter.
_BLOCK = r"(?:(?!-----END)[^\"\\\x80-\xff]|\\+[^\"\\\x80-\xff]){0,16000}"
_BEGINS, _ENDS = "----BEGIN [A-Z ]{0,40}PRIVATE KEY-----", "-----END [A-Z ]{0,40}KEY-----"
#: It begins after none of its own letters: else each `-eyJ` of many would look to the end of all.
_JWT = r"[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"


#: User and password as a URL has them.
_USER, _PASSWORD = r"[^\s/:@\"'\\<>]{0,64}:", r"[^\s/\"'\\<>]{1,256}(?=@)"
_BASIC = r"\\*[\"']?\s{0,3}[:=]\s{0,3}\\*[\"']?(?:[Bb]asic|BASIC)\s{1,3}"


def _named(kind: str, letter: str, before: str, rest: str) -> tuple[_Form, ...]:
    """`rest` is what the name has after the letter."""
    return (
        _Form(kind, letter, before, stays=f"{rest}{_IS_KEY}"),
        _Form(kind, letter, before, stays=f"{rest}{_IS_INNER_KEY}", rest=_INNER_VALUE),
        _Form(kind, letter, before, stays=f"{rest}{_IS}", rest=_VALUE),
    )


_FORMS = (
    _Form("anthropic-key", "-", "(?<=sk-)", 2, rest="ant-[A-Za-z0-9_-]{16,}"),
    _Form("api-key", "-", rf"{_alone('sk-')}(?=[A-Za-z_-]{{0,64}}+[0-9])", 2, rest=r"[\w-]{20,}"),
    _Form("slack-token", "-", "(?<=xox[a-z]-)", 4, rest="[A-Za-z0-9-]{10,}"),
    _Form("private-key", "-", rest=f"{_BEGINS}{_BLOCK}(?:{_ENDS})?"),
    _Form("github-token", "_", "(?<=gh[pousr]_)", 3, rest="[A-Za-z0-9]{20,}"),
    _Form("github-token", "_", "(?<=github_)", 6, rest="pat_[A-Za-z0-9_]{20,}"),
    _Form("google-key", "z", "(?<=AIz)", 2, rest="a[A-Za-z0-9_-]{30,}"),
    _Form("jwt", "J", _alone("eyJ", "A-Za-z0-9_-"), 2, rest=_JWT),
    _Form("bearer", "B", stays=r"(?:earer|EARER)\s{1,3}", rest=_CREDENTIALS),
    _Form("bearer", "b", stays=r"earer\s{1,3}", rest=_CREDENTIALS),
    _Form("bridle-token", "b", rest="ridle_[a-z]{1,10}_[A-Za-z0-9_-]{16,}"),
    _Form("aws-key", "K", "(?<=AK)", 1, rest="IA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    *_named("token", "K", "(?<=OK)", "EN"),
    *_named("api-key", "K", "(?:(?<=PIK)|(?<=PI[_-]K)|(?<=[Pp]iK))", "(?:ey|EY)"),
    *_named("token", "k", "(?<=[Oo]k)", "en"),
    *_named("api-key", "k", "(?:(?<=[Pp]ik)|(?<=[Pp]i[_-]k))", "ey"),
    *_named("password", "w", "(?<=[Ss]w)", "(?:or)?d"),
    *_named("password", "W", "(?<=SW)", "(?:OR)?D"),
    *_named("secret", "c", "(?<=[Ss]ec)", "ret"),
    *_named("secret", "C", "(?<=SEC)", "RET"),
    *_named("secret", "k", "(?:(?<=[Ss]ecret[_-]k)|(?<=[Aa]ccess[_-]k))", "ey"),
    *_named("secret", "K", "(?:(?<=SECRET_K)|(?<=ACCESS_K)|(?<=ecretK)|(?<=ccessK))", "(?:ey|EY)"),
    _Form("authorization", "z", "(?<=[Aa]uthoriz)", stays=f"ation{_IS_KEY}"),
    _Form("basic", "z", "(?<=[Aa]uthoriz)", stays=f"ation{_BASIC}", rest="[A-Za-z0-9+/=_-]{6,}"),
    _Form("password", "/", "(?<=://)", stays=_USER, rest=_PASSWORD),
)


def _pattern() -> bytes:
    """One for all. The letters stand first, each once: so the search knows where it may begin."""
    by_letter: dict[str, list[str]] = {}
    for at, form in enumerate(_FORMS):
        stays = f"(?P<stays{at}>{form.stays})" if form.stays else ""
        rest = f"(?P<form{at}>{form.before}{stays}{form.rest})"
        by_letter.setdefault(form.letter, []).append(rest)
    forms = [f"{letter}(?:{'|'.join(rests)})" for letter, rests in by_letter.items()]
    return "|".join(forms).encode()


_SECRET = re.compile(_pattern())
#: What a group that has matched stands for, and the group of what stays of it.
_FORM_OF = {
    f"form{at}": (form, f"stays{at}" if form.stays else "") for at, form in enumerate(_FORMS)
}
_STRING = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?')
_NAME = re.compile(
    rb"(?i:(passwo?r?d)|(secret|(?:secret|access)[_-]?key)|(token)|(api[_-]?key)|(authorization))$"
)
#: As those that tell keys apart, where there are such already.
_NUMBER = re.compile(rb"#([0-9]{1,18})(?![0-9])")
#: Values that no session's secret is known by: words as they stand in every answer, and paths.
_PLAIN_VALUE = re.compile(r"[A-Za-z_ -]{1,11}|[0-9.]{1,11}|[/~][^\n]*")
_KINDS = ("password", "secret", "token", "api-key", "authorization")


class _Found(Struct, frozen=True):
    """A secret. `begin` is where the form begins that it was known by."""

    begin: int
    start: int
    end: int
    kind: str


# Inside `Redactor`, the name is that of a method.
_Bytes: TypeAlias = bytes
_Held: TypeAlias = frozenset[tuple[str, str]]


class Redactor:
    """`environ` is where values are from that are secrets by their variables' names. `held` are
    variables that sessions have as secrets: another set whenever it has changed."""

    def __init__(self, environ: Mapping[str, str], held: Callable[[], _Held] = frozenset) -> None:
        of_ours = [
            (name, value)
            for name, value in environ.items()
            if len(value) >= SHORTEST_VALUE and _tells_secret(name)
        ]
        self._of_ours = _kinds_by_value(of_ours)
        self._held = held
        self._seen: _Held = frozenset()
        self._values = self._of_ours

    def _known(self) -> dict[_Bytes, str]:
        held = self._held()
        if held is not self._seen:
            found = _kinds_by_value(one for one in held if _is_hidden(*one))
            self._seen, self._values = held, found | self._of_ours
        return self._values

    def bytes(self, encoded: _Bytes) -> _Bytes:
        """The same JSON without secrets."""
        # They may reach from one string into the next here, but each string with one is among them.
        found = self._found(encoded, 0, len(encoded))
        return self._without(encoded, found) if found else encoded

    def _without(self, encoded: _Bytes, found: list[_Found]) -> _Bytes:
        keys = _Keys(encoded)
        parts: list[_Bytes] = []
        waiting = iter(sorted(found, key=lambda one: one.begin))
        done, named, after, one = 0, "", 0, next(waiting, None)
        for string in _STRING.finditer(encoded):
            start, end = string.span(1)
            while one and one.end < start:
                one = next(waiting, None)
            if one is None:
                break
            if one.begin > end:
                continue
            is_long = end - start >= SHORTEST_PASSWORD
            if string.lastindex == 2:
                named, after = _kind_of(string[1]), string.end()
                redacted = self._redacted(encoded, start, end)
                redacted = redacted and keys.told(string[1], redacted)
            elif named and is_long and not encoded[after : start - 1].strip():
                redacted = _word(named)
            else:
                redacted = self._redacted(encoded, start, end)
            if redacted:
                parts += (encoded[done:start], redacted)
                done = end
        return b"".join((*parts, encoded[done:]))

    def _redacted(self, encoded: _Bytes, start: int, end: int) -> _Bytes | None:
        """What is between, within one string, without secrets; None if there are none."""
        parts: list[_Bytes] = []
        done = start
        for one in sorted(self._found(encoded, start, end), key=lambda one: one.start):
            if _is_in_escape(encoded, one.start):
                continue
            if one.start >= done:
                parts += (encoded[done : one.start], _word(one.kind))
            done = max(done, one.end)
        return b"".join((*parts, encoded[done:end])) if parts else None

    def _found(self, encoded: _Bytes, start: int, end: int) -> list[_Found]:
        found = [_found_by(match, start) for match in _matches(encoded, start, end)]
        for value, kind in self._known().items():
            places = _places(value, encoded, start, end)
            found += (_Found(at, at, at + len(value), kind) for at in places)
        return found


def _matches(encoded: bytes, start: int, end: int) -> Iterator[re.Match[bytes]]:
    """Window by window: all other threads wait until a search has come to its end."""
    while start < end:
        last = start + WINDOW
        for match in _SECRET.finditer(encoded, start, min(last + BEYOND, end)):
            if match.start() >= last:
                break
            is_cut = match.end() == last + BEYOND
            whole = _SECRET.match(encoded, match.start(), end) if is_cut else None
            found = whole or match
            start = found.end()
            yield found
        start = max(start, last)


def _found_by(match: re.Match[bytes], start: int) -> _Found:
    form, stays = _FORM_OF[match.lastgroup or ""]
    begin = max(match.start() - form.head, start)
    return _Found(begin, match.end(stays) if stays else begin, match.end(), form.kind)


def _places(value: bytes, encoded: bytes, start: int, end: int) -> Iterator[int]:
    at = encoded.find(value, start, end)
    while at >= 0:
        yield at
        at = encoded.find(value, at + 1, end)


def _tells_secret(name: str) -> bool:
    return any(word in name.upper() for word in SECRET_NAMES)


def _is_hidden(name: str, value: str) -> bool:
    """Whether a session's value is: it was given as a secret, but perhaps for want of care."""
    is_told = _tells_secret(name) or not _PLAIN_VALUE.fullmatch(value)
    return is_told and len(value.strip()) >= SHORTEST_PASSWORD


def _kinds_by_value(variables: Iterable[tuple[str, str]]) -> dict[bytes, str]:
    found: dict[bytes, str] = {}
    for name, value in variables:
        kind = name if re.fullmatch(r"\w{1,80}", name, re.ASCII) else "environment"
        found |= dict.fromkeys(_spellings(value), kind)
    return found


def _word(kind: str) -> bytes:
    return b"[redacted:%s]" % kind.encode()


def _spellings(value: str) -> list[bytes]:
    """As it stands in JSON, and in JSON within a string of JSON."""
    once = [json.dumps(value, ensure_ascii=is_ascii)[1:-1] for is_ascii in (False, True)]
    twice = [json.dumps(text, ensure_ascii=False)[1:-1] for text in once]
    return [text.encode("utf-8", "surrogatepass") for text in dict.fromkeys((*once, *twice))]


def _kind_of(key: bytes) -> str:
    """What the value of such a key is, if it is a secret."""
    found = _NAME.search(key)
    return _KINDS[found.lastindex - 1] if found and found.lastindex else ""


class _Keys:
    """Two keys of a document that differ still do when they are redacted; equal ones stay so."""

    def __init__(self, encoded: bytes) -> None:
        self._first = max(map(int, _NUMBER.findall(encoded)), default=0) + 1
        self._numbers: dict[bytes, int] = {}

    def told(self, key: bytes, redacted: bytes) -> bytes:
        number = self._numbers.setdefault(key, self._first + len(self._numbers))
        return b"%s#%d" % (redacted, number)


def _is_in_escape(encoded: bytes, at: int) -> bool:
    """Whether what is here is no letter by itself, but a part of `\\n` or of `\\u0041`."""
    for back in range(1, 6):
        if at >= back and encoded[at - back] == 0x5C:
            slashes = 1
            while at - back - slashes >= 0 and encoded[at - back - slashes] == 0x5C:
                slashes += 1
            return bool(slashes % 2) and (back == 1 or encoded[at - back + 1] == 0x75)
    return False
