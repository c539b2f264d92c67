"""Words that say that what follows them is a secret: `password`, `api_key`, `Authorization`.

Owns the words, what each stands for, and where they stand in a text: a name may have more before
its word (`DB_PASSWORD`), and no letter behind it (`max_tokens`, `passwordless`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

PASSWORD, SECRET, TOKEN, API_KEY = "password", "secret", "token", "api-key"
AUTHORIZATION, COOKIE = "authorization", "cookie"

_WORDS = {
    "password": PASSWORD,
    "passwd": PASSWORD,
    "passphrase": PASSWORD,
    "pwd": PASSWORD,
    "secret": SECRET,
    "credential": SECRET,
    "token": TOKEN,
    "authorization": AUTHORIZATION,
    "cookie": COOKIE,
}
#: What is before `key`: keys of other kinds are no secrets.
_KEYS = {
    "api": API_KEY,
    "auth": API_KEY,
    "subscription": API_KEY,
    "access": SECRET,
    "account": SECRET,
    "encryption": SECRET,
    "master": SECRET,
    "private": SECRET,
    "secret": SECRET,
    "shared": SECRET,
    "signing": SECRET,
}
#: `tokens` are mostly counted.
_PLURAL_TOKENS = "(?:access|refresh|auth|api|bearer|secret)[_-]?tokens"

_NAME = re.compile(
    "|".join(
        [
            *(f"(?P<w_{word}>{word}{'' if word == 'token' else 's?'})" for word in _WORDS),
            *(f"(?P<k_{key}>{key}[_-]?key(?:s|[_-]?base)?)" for key in _KEYS),
            f"(?P<tokens>{_PLURAL_TOKENS})",
            "(?P<auth>(?:^|[_.-])auth)",
            "(?P<pass>[_-]pass)",
        ]
    ).join(("(?:", ")[0-9]{0,2}$"))
)
_KINDS = {
    **{f"w_{word}": kind for word, kind in _WORDS.items()},
    **{f"k_{key}": kind for key, kind in _KEYS.items()},
    "tokens": TOKEN,
    "auth": AUTHORIZATION,
    "pass": PASSWORD,
}
#: The end of a name says what it is.
_LONGEST = 40
#: Variables of every shell.
_FOLDERS = (b"PWD", b"OLDPWD")
_LETTERS = b"abcdefghijklmnopqrstuvwxyz0123456789_.-"
_SEPARATORS = ("", "_", "-")


def _behind(words: Iterable[str]) -> str:
    return "|".join(f"(?<={word})" for word in words)


_KEY_NAMES = [f"{key}{sign}key" for key in _KEYS for sign in _SEPARATORS]
_TOKENS = [
    f"{kind}{sign}tokens"
    for kind in ("access", "refresh", "auth", "api", "bearer", "secret")
    for sign in _SEPARATORS
]
#: What a name may end with, by needles, which cost next to nothing.
_ENDS = {
    **{word: f"{word}s?" for word in _WORDS if word != "token"},
    "token": f"token(?:s(?:{_behind(_TOKENS)}))?",
    "key": f"key(?:{_behind(_KEY_NAMES)})(?:s|[_-]?base)?",
    "auth": 'auth(?<=["_.-]auth)',
    "_pass": "_pass",
}
#: A sign of what it is stands behind it, perhaps behind a quote; or its value in the next line, as
#: lists of variables in YAML have it; or, of SQL, one in quotes.
_SIGN = r"""\\*["'`]?\]?(?:[ \t]|\\{1,8}t){0,32}(?:[:=>]|%3d)"""
_NEXT_LINE = r"(?:\n|\\{1,8}n)[ \t]{0,64}(?:- )?[\\\"']{0,3}value"
_PAIR = r"\\*\",\s{0,9}\\*\"val"
_QUOTED = r"[ \t]{1,8}[\\\"']"
#: `<add key="Password" value="…"/>`, `<password type="x">…`, and `setenv("API_KEY", "…")`.
_ATTRIBUTE = r"\\*[\"'][ \t]{1,8}val(?:ue)?="
_OTHERS = r"[ \t][^<>\n]{0,100}>[^\s<>]"
_ARGUMENT = r"\\*[\"'],[ \t]{0,8}\\*[\"']"
_MARKUP = f"{_ATTRIBUTE}|{_OTHERS}|{_ARGUMENT}"


def _pattern(end: str, follows: str = "") -> re.Pattern[bytes]:
    return re.compile(f"{end}[0-9]{{0,2}}(?![a-z]){follows}".encode())


#: The shortest part that tells that one may be there.
_SHORT = {
    "password": b"pass",
    "passwd": b"pass",
    "passphrase": b"pass",
    "authorization": b"auth",
    "auth": b"auth",
    "_pass": b"_pass",
}
_BY_PART: dict[bytes, list[tuple[re.Pattern[bytes], re.Pattern[bytes]]]] = {}
for _needle, _end in _ENDS.items():
    _follows = f"(?={_SIGN}|{_NEXT_LINE}|{_PAIR}|{_MARKUP}" + (
        f"|{_QUOTED})" if _needle == PASSWORD else ")"
    )
    _BY_PART.setdefault(_SHORT.get(_needle, _needle.encode()), []).append(
        (_pattern(_end, _follows), _pattern(_end))
    )
#: With what tells that a value follows, and without.
_HINTS = tuple(_BY_PART.items())
#: Names with a rare letter, which is in brackets, as they stand where a value follows.
_FOLLOWS = f"[0-9]{{0,2}}(?:{_SIGN}|{_NEXT_LINE}|{_PAIR}|{_MARKUP})"
NAME_HINTS = (
    f"pass[w](?:or)?ds?(?:{_FOLLOWS}|{_QUOTED})",
    f"p[w]ds?{_FOLLOWS}",
    f"to[k]en{_FOLLOWS}",
    *(f"{word[:-4]}[k]ens{_FOLLOWS}" for word in _TOKENS),
    f"authori[z]ation{_FOLLOWS}",
    f"coo[k]ies?{_FOLLOWS}",
    *(f"{name[:-3]}[k]ey(?:s|[_-]?base)?{_FOLLOWS}" for name in _KEY_NAMES),
)
#: `--password` and `"-token"`.
_FLAG = re.compile(
    rb"-(?<=[\s\"'n\\-]-)(?=[a-z])[a-z0-9_.-]{0,60}?(?:passw(?:or)?ds?|passphrases?|pwds?|secrets?"
    rb"|credentials?|tokens?|authorization|auth|cookies?|key)[0-9]{0,2}(?![a-z0-9_-])"
)


@functools.lru_cache(4096)
def _kind_of_end(name: bytes) -> str:
    found = _NAME.search(name.lower().decode("latin-1"))
    return _KINDS[found.lastgroup] if found and found.lastgroup else ""


def kind_of_name(name: bytes) -> str:
    """What the value of such a name is, if it is a secret; else ""."""
    return "" if name in _FOLDERS else _kind_of_end(name[-_LONGEST:])


def names_in(lower: bytes) -> Iterator[int]:
    """Where one ends that a value may follow."""
    for part, patterns in _HINTS:
        if part in lower:
            for pattern, _ in patterns:
                for match in pattern.finditer(lower):
                    yield match.end()


def has_names(lower: bytes) -> bool:
    """Whether there may be one, in JSON too."""
    for part, patterns in _HINTS:
        if part in lower and any(pattern.search(lower) for pattern, _ in patterns):
            return True
    return False


def has_flags(lower: bytes) -> bool:
    """Whether there may be an option of such a name."""
    return bool(_FLAG.search(lower))


def loose_names(lower: bytes) -> Iterator[int]:
    """Where one ends, whatever follows."""
    for part, patterns in _HINTS:
        if part in lower:
            for _, loose in patterns:
                for match in loose.finditer(lower):
                    yield match.start()
