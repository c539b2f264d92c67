"""Secrets that are known by the name before them: `password: x`, `x-api-key: …`, `TOKEN=…`,
`"secret": "…"`, `--password x`, `<password>x</password>`.

Owns what may stand between a name and its value, where the value ends, and what is no secret
although it stands there: types, placeholders, code that gets one from elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .forms import Found, is_placeholder
from .names import AUTHORIZATION, COOKIE, PASSWORD, kind_of_name, names_in

#: A value that is longer ends here, as far as we look.
_LONGEST = 8192
_NAME_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_LONGEST_NAME = 64
#: One that is so long is a secret, whatever it looks like.
_ALWAYS = 256
#: Of others than passwords, what is shorter is not told from words.
_SHORTEST = 6

_QUOTE = rb"\\*(?:\"\"\"|'''|[\"'`])"
_OPEN = rb"(?:[rbfuRBFU]{1,2}(?=[\"']))?(?P<open>%b)" % _QUOTE
_BETWEEN = re.compile(
    rb"""(?P<close>\\*["'`])?\]?[ \t]{0,32}
    (?:(?P<equals>=>|:=|=|%3[Dd])(?![=~>])
      |(?P<colon>:)(?![:=])
      |(?P<tag>>)
      |(?P<attribute>(?<=[ \t])val(?:ue)?=)
      |(?P<argument>,)
      |\n[ \t]{0,64}(?:-[ ])?["']?(?P<value>value)["']?[ ]?:)
    (?P<blanks>[ \t]{0,64})(?P<list>\[\s{0,64})?(?:(?:[rbfuRBFU]{1,2}(?=["']))?(?P<open>"""
    + _QUOTE
    + rb"))?",
    re.VERBOSE,
)
#: `token: str = "…"`
_TYPED = re.compile(rb"[ \t]{0,8}[A-Za-z_][\w.|\[\], ]{0,60}=[ \t]{0,8}" + _OPEN)
#: `password 'x'` of SQL.
_SPACED = re.compile(rb"[ \t]{1,8}(?P<open>['\"])")
_NEXT_OF_LIST = re.compile(rb"\s{0,64},\s{0,64}" + _OPEN)

_UNQUOTED = re.compile(rb"[^\s\"'`\\&,;()<>{}|\[\]$][^\s\"'`\\&,;()<>{}|]*+")
_TO_BLANK = re.compile(rb"[^\s\"'`][^\s\"'`]{0,%d}+" % _LONGEST)
_TO_END_OF_HEADER = re.compile(rb"[^\s\"'`\\][^\n\r\"'`\\]{0,%d}+" % _LONGEST)
_TO_TAG = re.compile(rb"(?P<value>[^<>\n]{1,%d}+)(?=</)" % _LONGEST)
_CDATA = re.compile(rb"<!\[CDATA\[(?P<value>[^\]\n]{1,%d}+)\]\]>" % _LONGEST)
_ATTRIBUTES = re.compile(rb"[ \t][^<>\n]{0,100}>")
_END_OF_LINE = re.compile(rb"[ \t]{0,64}(?:\#[^\n]*|[,;][ \t]*)?(?:[\r\n]|\\[nr]|\Z)")
_BLOCK = re.compile(rb"[ \t]*[|>][+-]?[0-9]?[ \t]{0,64}\r?\n(?P<indent>[ \t]+)(?=\S)")
_SCHEME = re.compile(rb"[A-Za-z][A-Za-z0-9-]{1,24}[ \t]{1,8}(?=\S)")
_LINE_START = re.compile(
    rb"(?:^|[\n\r])[ \t]{0,64}(?:-[ ]|export[ ]|set[ ]|ENV[ ]|ARG[ ])?[\"']?\Z"
)

_LEAST_OF_ARGUMENT = 8
_LETTER_AND_DIGIT = re.compile(rb"(?=[^\s]*[0-9])(?=[^\s]*[A-Za-z])[^\s(){}$]+")
_LETTERS_ALONE = re.compile(rb"[A-Za-z_]+")
_DOTTED = re.compile(rb"[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)+")
_CALL = re.compile(rb"[A-Za-z_][\w.:]*[\[(].*", re.DOTALL)
_IDENTIFIER = re.compile(rb"[A-Za-z_][\w.]*")
_NAME_OF_TYPE = re.compile(rb"[A-Z][a-z]+(?:[A-Z][a-z]*)+|Token|Secret|Password|Credentials?")
#: What stands where a value would, and is none.
_NO_VALUES = frozenset(
    b"""str string bytes byte int integer number float bool boolean any object none null nil void
    undefined unknown true false optional required text char varchar secretstr type never self this
    yes no on off empty hidden redacted masked missing invalid valid expired changed""".split()
)
#: Where a variable of a session is from, as the session has it.
_SOURCE = re.compile(rb"given|env:[A-Z_][A-Z0-9_]*|file:[~/][^\n]*")
#: What may follow `--password` in a sentence.
_PROSE = frozenset(
    b"""a an and are as at be by can could do does flag flags for from has have if in instead into
    is it its may must not of on option options or over should so than that the then there they to
    was were when where which will with without would argument value parameter""".split()
)


class Assigned:
    """As a form, of those that have no needle of their own."""

    def found(self, text: bytes, lower: bytes) -> Iterator[Found | None]:
        done = 0
        for end in sorted(names_in(lower)):
            if end <= done:
                continue  # within a secret
            for one in _value_after(text, end):
                yield one
                done = one[1] if one else done
        if b"-" in text:
            yield from _flags(text)


def _value_after(text: bytes, end: int) -> Iterator[Found | None]:
    head = text[max(end - _LONGEST_NAME, 0) : end]
    name = head[len(head.rstrip(_NAME_LETTERS)) :]
    kind = kind_of_name(name)
    if not kind:
        yield None
        return
    start = end - len(name)
    match = _BETWEEN.match(text, end)
    tag = match.start("tag") if match and match["tag"] else -1
    is_element = text[start - 1 : start] in (b"<", b":")
    if is_element and tag < 0 and (others := _ATTRIBUTES.match(text, end)):
        tag = others.end() - 1
    if tag >= 0:
        value = (
            (_CDATA.match(text, tag + 1) or _TO_TAG.match(text, tag + 1)) if is_element else None
        )
        yield (*value.span("value"), kind) if value else None
    elif match is None:
        yield _after_blank(text, end, kind)
    elif match["attribute"] or match["argument"]:
        yield _beside(text, start, match, kind)
    elif match["open"] and _is_end_of_string(text, start, match):
        yield None
    elif match["open"]:
        yield from _quoted(text, match, kind)
    elif match["list"]:
        yield None
    else:
        yield _unquoted(text, start, match, name, kind)


def _beside(text: bytes, start: int, match: re.Match[bytes], kind: str) -> Found | None:
    """The value behind a name in quotes: of an attribute, or as the next argument of a call."""
    if not (match["close"] and match["open"]):
        return None
    at = match.end()
    end = end_of_quoted(text, at, match["open"])
    value = text[at:end]
    if match["attribute"]:
        is_one = _is_secret(value, kind, least=1)
    else:
        # Other calls have two names, or a name and what it is called.
        is_call = text[start - 1 - len(match["close"]) : start].startswith(b"(" + match["close"])
        is_one = is_call and _is_secret(value, kind, _LEAST_OF_ARGUMENT) and _is_random(value)
    return (at, end, kind) if is_one else None


def _is_random(value: bytes) -> bool:
    return len(value) >= _LEAST_OF_ARGUMENT and bool(_LETTER_AND_DIGIT.fullmatch(value))


def _is_end_of_string(text: bytes, start: int, match: re.Match[bytes]) -> bool:
    """Whether the quote ends a string in which the name stands: `'Password: '`."""
    if match["close"] or not match["blanks"]:
        return False
    line = text[max(start - 200, 0) : start].rpartition(b"\n")[2]
    return line.count(match["open"][-1:]) % 2 == 1


def _after_blank(text: bytes, end: int, kind: str) -> Found | None:
    if kind != PASSWORD:
        return None
    if quote := _SPACED.match(text, end):
        stop = end_of_quoted(text, quote.end(), quote["open"])
        value = text[quote.end() : stop]
        is_one = _is_secret(value, kind) and b" " not in value
        return (quote.end(), stop, kind) if is_one else None
    return None


# --- in quotes


def _quoted(text: bytes, match: re.Match[bytes], kind: str) -> Iterator[Found | None]:
    at, delimiter = match.end(), match["open"]
    # A name in quotes is one of JSON, and no word of a program.
    least = 1 if match["close"] else _SHORTEST
    while True:
        end = end_of_quoted(text, at, delimiter)
        # Between such quotes there are also commands, in a sentence.
        is_said = delimiter.endswith(b"`") and b" " in text[at:end]
        is_one = not is_said and _is_secret(text[at:end], kind, least)
        yield (at, end, kind) if is_one else None
        more = _NEXT_OF_LIST.match(text, end + len(delimiter)) if match["list"] else None
        if more is None:
            return
        at, delimiter = more.end(), more["open"]


def end_of_quoted(text: bytes, at: int, delimiter: bytes) -> int:
    """Where the delimiter stands again, that may be escaped as often as the first. Of what does not
    end, the end of the line."""
    quote = delimiter.lstrip(b"\\")
    slashes, limit, place = len(delimiter) - len(quote), at + _LONGEST, at
    while (found := text.find(quote, place, limit)) >= 0:
        before = text[at:found]
        there = len(before) - len(before.rstrip(b"\\"))
        if there % (2 * (slashes + 1)) == slashes:
            return found - slashes
        place = found + 1
        if place - at > 512:  # what is before it is copied each time
            break
    line = text.find(b"\n", at, limit)
    return line if line >= 0 else min(limit, len(text))


def _is_secret(value: bytes, kind: str, least: int = _SHORTEST) -> bool:
    if kind == AUTHORIZATION and (scheme := _SCHEME.match(value)):
        value = value[scheme.end() :]
    if not value.strip() or is_placeholder(value) or value.lower() in _NO_VALUES:
        return False
    if kind_of_name(value) and _LETTERS_ALONE.fullmatch(value):
        return False  # `"token": "Token"`
    return kind == PASSWORD or len(value) >= least


# --- without quotes


def _unquoted(
    text: bytes, start: int, match: re.Match[bytes], name: bytes, kind: str
) -> Found | None:
    at = match.end()
    if kind in (AUTHORIZATION, COOKIE):
        return _of_header(text, at, kind) if match["colon"] else _word_at(text, at, kind)
    if not match["equals"]:
        if block := _BLOCK.match(text, at):
            return block.end("indent"), _end_of_block(text, block), kind
        if typed := _TYPED.match(text, at):
            stop = end_of_quoted(text, typed.end(), typed["open"])
            is_one = _is_secret(text[typed.end() : stop], kind)
            return (typed.end(), stop, kind) if is_one else None
    sign = match.start("equals")
    is_tight = bool(match["equals"] and not match["blanks"]) and text[sign - 1 : sign] != b" "
    is_variable = is_tight and name == name.upper()
    is_line = bool(_LINE_START.search(text, max(start - 80, 0), start))
    # Of a line of YAML, or of a `.env`, all is the value.
    to_blank = is_line and (is_variable or not match["equals"])
    value = (_TO_BLANK if to_blank else _UNQUOTED).match(text, at)
    if value is None:
        return None
    stop = value.end() - (value[0][-1:] in b",;" and len(value[0]) > 1)
    found = text[at:stop]
    if len(found) > _ALWAYS:
        return at, stop, kind
    if not _is_secret(found, kind) or _is_code(found, text[stop : stop + 1], is_variable):
        return None
    ends_line = bool(_END_OF_LINE.match(text, stop))
    is_whole = (is_line and ends_line) or name.startswith(b"--")
    if match["equals"]:
        is_one = _is_assigned(found, kind, is_tight=is_tight, is_whole=is_whole)
    else:
        is_one = _is_said(found, kind, is_header=b"-" in name, is_line=ends_line)
    return (at, stop, kind) if is_one else None


def _is_assigned(value: bytes, kind: str, *, is_tight: bool, is_whole: bool) -> bool:
    if value.isdigit() and len(value) < _SHORTEST:
        return False
    if kind == PASSWORD and is_whole:
        return True
    if len(value) < (4 if kind == PASSWORD else _SHORTEST):
        return False
    return is_tight or not _LETTERS_ALONE.fullmatch(value)


def _is_said(value: bytes, kind: str, *, is_header: bool, is_line: bool) -> bool:
    """After a colon, where there may be anything."""
    if _NAME_OF_TYPE.fullmatch(value):
        return False
    if is_line and kind == PASSWORD:
        return True
    if len(value) < _SHORTEST:
        return False
    return is_line or is_header or _is_mixed(value)


def _is_mixed(value: bytes) -> bool:
    """Letters and digits, or signs beside them."""
    letters = sum(65 <= one <= 90 or 97 <= one <= 122 for one in value[:64])
    digits = sum(48 <= one <= 57 for one in value[:64])
    return letters > 0 and (digits > 0 or any(one in b"!@#%^*+=~?/" for one in value[:64]))


def _is_code(value: bytes, follows: bytes, is_variable: bool = False) -> bool:
    """Whether it says where to get one: a variable, a call, a member, a file. `is_variable`: it is
    given to a variable of a shell, which calls nothing."""
    if value[:1] == b"$" and value[1:2] not in (b"$", b""):
        return True
    if value.startswith((b"/", b"~/", b"./", b"../")) and not re.search(rb"[0-9=+]", value):
        return True
    if follows and follows in b"([" and _IDENTIFIER.fullmatch(value):
        return True
    if not is_variable and _CALL.fullmatch(value):
        return True
    return bool(_DOTTED.fullmatch(value)) and not re.search(rb"\d", value)


def _of_header(text: bytes, at: int, kind: str) -> Found | None:
    """Up to the end of the line, or to the quote that the header stands in."""
    if kind == AUTHORIZATION and (scheme := _SCHEME.match(text, at)):
        named = scheme[0].strip().lower().decode()
        kind = named if named in ("basic", "bearer") else kind
        at = scheme.end()
        value = _TO_BLANK.match(text, at)
    else:
        value = (_TO_END_OF_HEADER if kind == COOKIE else _TO_BLANK).match(text, at)
    if value is None:
        return None
    found = value[0].rstrip(b" \t,;")
    if len(found) > _ALWAYS:
        return at, at + len(found), kind
    is_one = b"=" in found if kind == COOKIE else _is_mixed(found)
    is_one = is_one and len(found) >= _SHORTEST and not is_placeholder(found)
    is_one = is_one and not _is_code(found, text[at + len(found) : at + len(found) + 1])
    return (at, at + len(found), kind) if is_one else None


def _word_at(text: bytes, at: int, kind: str) -> Found | None:
    value = _UNQUOTED.match(text, at)
    if value is None:
        return None
    if value.end() - at > _ALWAYS:
        return (*value.span(), kind)
    if not _is_secret(value[0], kind) or not _is_mixed(value[0]):
        return None
    is_code = _is_code(value[0], text[value.end() : value.end() + 1])
    return None if is_code else (*value.span(), kind)


def _end_of_block(text: bytes, block: re.Match[bytes]) -> int:
    """Of the lines that are indented as far as the first."""
    end, indent = block.end(), block["indent"]
    while (line := text.find(b"\n", end)) >= 0 and line - block.end() < _LONGEST:
        if not text.startswith(indent, line + 1):
            return line
        end = line + 1
    return line if line >= 0 else len(text)


# --- flags

_FLAG = re.compile(
    rb"(?:--|(?<![\w-])-)(?P<name>[A-Za-z][\w.-]{0,60}+)[ \t]{1,8}(?P<open>\\*[\"'])?"
)
_ARGUMENT = re.compile(rb"[^\s\"'`\\&;()<>{}|\[\]$-][^\s\"'`\\&;()<>{}|\]]{0,%d}+" % _LONGEST)


def _flags(text: bytes) -> Iterator[Found | None]:
    for match in _FLAG.finditer(text):
        kind = kind_of_name(match["name"])
        if not kind:
            continue
        at = match.end()
        if match["open"]:
            stop = end_of_quoted(text, at, match["open"])
            is_one = not is_placeholder(text[at:stop]) and stop > at
            yield (at, stop, kind) if is_one else None
            continue
        value = _ARGUMENT.match(text, at)
        is_one = value is not None and _is_argument(value[0])
        yield (*value.span(), kind) if value and is_one else None


def _is_argument(value: bytes) -> bool:
    lower = value.lower().rstrip(b".,:")
    is_word = lower in _PROSE or lower in _NO_VALUES or is_placeholder(value)
    return not is_word and not (value == value.upper() and kind_of_name(value) and value.isalpha())


def flagged_kind(argument: bytes) -> str:
    """Of an argument of its own, `--password`: what the next one is."""
    is_flag = argument.startswith(b"-") and len(argument) < _LONGEST_NAME and b"=" not in argument
    return kind_of_name(argument) if is_flag else ""


def is_value_of(kind: str, value: bytes) -> bool:
    """Whether the value of a key of that kind is a secret: nearly whatever it has."""
    scheme = _SCHEME.match(value) if kind == AUTHORIZATION else None
    text = value[scheme.end() :] if scheme else value
    if not text.strip() or is_placeholder(text) or text.lower() in _NO_VALUES:
        return False
    if kind_of_name(text) and _LETTERS_ALONE.fullmatch(text):
        return False
    if kind == AUTHORIZATION:
        return bool(scheme) or (len(text) >= _SHORTEST and _is_mixed(text))
    return b"=" in text if kind == COOKIE else not _SOURCE.fullmatch(text)
