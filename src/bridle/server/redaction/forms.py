"""Secrets that are known by their own form: tokens by their prefix, key blocks, passwords in
addresses.

Owns the table and how one is looked for: first its needle, which costs next to nothing, then the
pattern at that place. What was read is not read again, so that a text takes as long as it is long.
Texts are UTF-8, decoded from whatever JSON they stood in.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from msgspec import Struct

#: Where a secret stands, and its kind.
Found: TypeAlias = tuple[int, int, str]
Check: TypeAlias = Callable[[bytes], bool]

_ALNUM = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_HEX = frozenset(b"0123456789abcdefABCDEF")
#: What a key block has at most.
_MOST_OF_BLOCK = 1 << 16


class Form(Struct, frozen=True):
    """`pattern` is matched where the needle is; its group `secret`, or else all of it, is one.
    `is_alone`: no letter and no digit stands before it. `is_lower`: in texts in lower case."""

    kind: str
    needle: bytes
    pattern: re.Pattern[bytes]
    is_alone: bool = True
    is_lower: bool = False
    check: Check | None = None
    #: What else is there if there is one.
    also: bytes = b""
    is_prefix: bool = False
    #: Where there is none, none begins within this, either.
    skips: re.Pattern[bytes] | None = None

    def is_token(self, sign: bytes) -> bool:
        """Whether it is known by a prefix that ends with this."""
        return self.is_prefix and self.needle.endswith(sign)

    def found(self, text: bytes, lower: bytes) -> Iterator[Found | None]:
        """None for a place where the needle is, and no secret: looking costs, too."""
        searched = lower if self.is_lower else text
        at = searched.find(self.needle)
        while at >= 0:
            end = at + 1
            match = self.pattern.match(text, at)
            if match:
                end = max(match.end(), end)
                start, stop = match.span("secret" if "secret" in self.pattern.groupindex else 0)
                is_one = not self.check or self.check(text[start:stop])
                if is_one and not (self.is_alone and is_within_word(text, at)):
                    yield start, stop, self.kind
                else:
                    yield None
            else:
                yield None
                if self.skips and (run := self.skips.match(text, at)):
                    end = max(run.end(), end)
            at = searched.find(self.needle, end)


def is_within_word(text: bytes, at: int) -> bool:
    """Whether a letter or a digit stands before; not one of an escape (`\\n`, `%3D`, `\\u0020`)."""
    if at == 0 or text[at - 1] not in _ALNUM:
        return False
    if text[at - 2 : at - 1] == b"\\" and text[at - 1] in b"nrtbf":
        return False
    if text[max(at - 3, 0) : at - 2] == b"%" and _HEX.issuperset(text[at - 2 : at]):
        return False
    return not (text[max(at - 6, 0) : at - 4] == b"\\u" and _HEX.issuperset(text[at - 4 : at]))


# --- tokens, by their prefix

_WORD = "A-Za-z0-9_-"
_LETTERS = "A-Za-z0-9"
_BASE64 = "A-Za-z0-9+/=_-"


_DIGIT = re.compile(rb"[0-9]")


def _has_digit(token: bytes) -> bool:
    return bool(_DIGIT.search(token))


def _is_random(token: bytes) -> bool:
    """No words with dashes between."""
    return _has_digit(token) and token != token.lower()


def _tokens(
    kind: str,
    prefixes: str,
    letters: str,
    least: int,
    *,
    is_alone: bool = True,
    check: Check | None = None,
) -> tuple[Form, ...]:
    """`prefixes` with blanks between; after each come so many of these letters, or more."""
    return tuple(
        Form(
            kind,
            prefix.encode(),
            re.compile(rb"%b[%b]{%d,}+" % (re.escape(prefix.encode()), letters.encode(), least)),
            is_alone,
            check=check,
            is_prefix=True,
        )
        for prefix in prefixes.split()
    )


def _form(kind: str, needle: str, pattern: str, **how: Any) -> Form:
    return Form(kind, needle.encode(), re.compile(pattern.encode()), **how)


_RUN = re.compile(rb"[\w-]*+")
_TOKENS = (
    *_tokens("anthropic-key", "sk-ant-", _WORD, 16, is_alone=False),
    *_tokens("api-key", "sk-", _WORD, 20, check=_has_digit),
    *_tokens("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", _LETTERS, 10),
    *_tokens("stripe-key", "whsec_", "A-Za-z0-9+/=", 20),
    *_tokens("slack-token", "xapp- xwfp-", _WORD, 10),
    _form("slack-token", "xox", r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}+", is_alone=False),
    *_tokens("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", _LETTERS, 20, is_alone=False),
    *_tokens("github-token", "github_pat_", "A-Za-z0-9_", 20, is_alone=False),
    *_tokens(
        "gitlab-token",
        "glpat- gldt- glrt- glrtr- glptt- glcbt- glft- glsoat- glagent- glimt- glffct- gloas-",
        "A-Za-z0-9_.-",
        16,
        check=_has_digit,
    ),
    *_tokens("npm-token", "npm_", _LETTERS, 30),
    *_tokens("hugging-face-token", "hf_ api_org_", _LETTERS, 30),
    *_tokens("pypi-token", "pypi-", _WORD, 32, check=_is_random),
    *_tokens("google-key", "AIza", _WORD, 30, is_alone=False),
    *_tokens("google-token", "ya29.", _WORD, 20),
    *_tokens("google-token", "1//0", _WORD, 24),
    *_tokens("google-secret", "GOCSPX-", _WORD, 16),
    _form("aws-key", "AKIA", "AKIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _form("aws-key", "ASIA", "ASIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _form("aws-key", "ABIA", "ABIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _form("jwt", "eyJ", r"eyJ[\w-]{8,}+\.eyJ[\w-]{8,}+\.[\w-]*+", skips=_RUN),
    _form("bridle-token", "bridle_", "bridle_(?:[a-z]|login)_[A-Za-z0-9_-]{16,}+", is_alone=False),
    _form(
        "bridle-token",
        "login?ticket=",
        r"(?i:login)\?ticket=(?P<secret>[\w-]{16,}+)",
        is_alone=False,
        is_lower=True,
    ),
    _form("sendgrid-key", "SG.", r"SG\.[\w-]{16,}+\.[\w-]{16,}+"),
    _form("azure-secret", "Q~", r"Q~[\w~.-]{31,}+", is_alone=False),
    *_tokens("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", "a-f0-9", 40),
    *_tokens("shopify-token", "shpat_ shpss_ shpca_ shppa_", "a-fA-F0-9", 24),
    *_tokens("docker-token", "dckr_pat_ dckr_oat_", _WORD, 16),
    *_tokens("vault-token", "hvs. hvb. hvr.", _WORD, 20, check=_has_digit),
    *_tokens("terraform-token", "atlasv1.", _WORD, 40, is_alone=False),
    *_tokens("databricks-token", "dapi", "a-f0-9", 32),
    *_tokens("grafana-token", "glc_ glsa_", "A-Za-z0-9+/=_", 20),
    *_tokens("linear-key", "lin_api_", _LETTERS, 20),
    *_tokens("notion-token", "ntn_", _LETTERS, 30),
    *_tokens("figma-token", "figd_", _WORD, 20),
    *_tokens("api-key", "gsk_ r8_ sbp_ nfp_ rubygems_ pscale_tkn_ lsv2_", "A-Za-z0-9_", 30),
    *_tokens("api-key", "xai- pplx- tvly- NRAK- PMAK- HRKU- tskey-", _WORD, 20, check=_has_digit),
    *_tokens("sentry-token", "sntrys_ sntryu_", _BASE64, 30),
    *_tokens("atlassian-token", "ATATT3", _BASE64, 40),
    *_tokens("square-token", "sq0atp- sq0csp-", _WORD, 20),
    *_tokens("age-key", "AGE-SECRET-KEY-1", "A-Z0-9", 30),
    *_tokens("fly-token", "fm1r_ fm2_", _BASE64, 40),
    _form("twilio-key", "SK", "SK[a-f0-9]{32}(?![A-Za-z0-9])"),
    _form("mailgun-key", "key-", "key-[a-f0-9]{32}(?![A-Za-z0-9])"),
    _form("telegram-token", "bot", r"bot[0-9]{6,12}:(?P<secret>AA[\w-]{33})(?![\w-])"),
    _form(
        "slack-webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/[a-z]{1,20}/(?P<secret>[\w/-]{10,}+)",
        is_alone=False,
    ),
    _form(
        "webhook",
        "/api/webhooks/",
        r"/api/webhooks/[0-9]{6,30}/(?P<secret>[\w-]{10,}+)",
        is_alone=False,
    ),
    _form(
        "webhook",
        ".webhook.office.com/",
        r"\.webhook\.office\.com/(?P<secret>[\w/@-]{20,}+)",
        is_alone=False,
    ),
)


# --- what is said of who one is


def _is_pair(credentials: bytes) -> bool:
    """Whether it is a name and a password in base64."""
    text = credentials.rstrip(b"=")
    try:
        plain = base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in plain and plain.isascii() and plain.decode().isprintable()


_CREDENTIALS = (
    _form(
        "bearer",
        "bearer",
        r"(?i:bearer)(?:[\s\\\"':=]|%20){1,4}(?P<secret>[A-Za-z0-9._~+/=-]{16,}+)",
        is_lower=True,
    ),
    _form(
        "basic",
        "basic ",
        r"(?i:basic)\s{1,3}(?P<secret>[A-Za-z0-9+/_-]{4,}+={0,2})",
        is_lower=True,
        check=_is_pair,
    ),
    _form(
        "password",
        "://",
        r"://[^\s/:@\"'\\<>]{0,128}:(?P<secret>[^\s/\"'\\<>]{1,256})(?=@)",
        is_alone=False,
        check=lambda password: not is_placeholder(password),
        also=b"@",
    ),
    _form(
        "password",
        "login ",
        r"(?i:login)\s{1,8}\S{1,100}\s{1,8}(?i:password)\s{1,8}(?P<secret>\S{1,500})",
        is_lower=True,
    ),
    _form(
        "token",
        "-signature=",
        r"(?i:-signature=)(?P<secret>[^\s&\"']{16,}+)",
        is_alone=False,
        is_lower=True,
    ),
    _form("token", "sig=", r"sig=(?P<secret>[^\s&\"']{16,}+)"),
    _form(
        "token",
        "://",
        r"://(?P<secret>[\w-]{20,128})(?=@)",
        is_alone=False,
        check=_has_digit,
        also=b"@",
    ),
)

_PLACEHOLDER = re.compile(
    rb"""\$[A-Z_][A-Z0-9_]*|\$\{\w+(?:[:?+-][^}]*)?\}|\$[a-z_]*(?:password|token|secret|key)|\$\([^)]*\)|\{\{?[^}]*\}?\}|<[^<>]*>|\*+|\.{3,}|\xe2\x80\xa6
    |%\(?\w*\)?s?|%\w+%|\[redacted[^\]]*\].*|\#\{[^}]*\}|@\w+@""",
    re.VERBOSE | re.DOTALL,
)


def is_placeholder(value: bytes) -> bool:
    """Whether it only says where a value is to stand, or where it is from."""
    return len(value) < 1000 and bool(_PLACEHOLDER.fullmatch(value))


# --- key blocks

_BLOCK = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_END = re.compile(rb"-----END [A-Z0-9 ]{0,60}-----")
_PUTTY = re.compile(rb"Private-Lines: {0,8}[0-9]{0,8}")
#: The end of a line, also as a string of a program has it.
_LINE_END = rb"(?:\r?\n|\\{1,8}(?:r\\{1,8})?n)"
_AFTER_LINE = re.compile(_LINE_END + rb"|\Z")
_BETWEEN_LINES = re.compile(_LINE_END)
#: What a line of a block has, perhaps in quotes; and of its first lines, what is said of it.
_AROUND = rb"(?:[ \t\"'`,;]|\\{1,8}[\"'`])"
_BLOCK_LINE = re.compile(rb"%b{0,64}+(?P<code>[A-Za-z0-9+/=]*+)%b{0,64}+" % (_AROUND, _AROUND))
_BLOCK_HEADER = re.compile(rb"[ \t\"']{0,64}[A-Z][A-Za-z-]{1,40}: [^\r\n\\]{0,400}")
#: A line that does not come to its end is one of the block if it has so much of it.
_LEAST_OF_LINE = 16
#: How far before a block its line may begin.
_MOST_BEFORE = 80
_BLANKS = re.compile(rb"[ \t]{0,64}")
_NUMBER = re.compile(rb"[ \t]{0,64}[0-9]{1,9}")
_BEFORE_LINE = re.compile(_LINE_END + b'|"')
_PART_OF_PREFIX = re.compile(rb"[ \t]+|[0-9]+|[:-]|[^ \t0-9:-]+")


class Blocks(Struct, frozen=True):
    """Private keys in the form of PEM and PGP, or of PuTTY."""

    needle: bytes = b"-----BEGIN "
    begins: re.Pattern[bytes] = _BLOCK
    #: Whether all of it is a secret, and not only what is behind its first words.
    is_whole: bool = True
    #: So many lines may be before the first of the key.
    headers: int = 10
    is_lower: bool = False
    also: bytes = b""

    def found(self, text: bytes, _: bytes) -> Iterator[Found | None]:
        at, end = text.find(self.needle), -1
        while at >= 0:
            match = self.begins.match(text, at)
            if match is None:
                yield None
                at = text.find(self.needle, at + 1)
                continue
            if self.is_whole and end < match.end():
                # Looked for once, however many blocks begin before it.
                end = text.find(b"-----END ", match.end())
                end = len(text) + _MOST_OF_BLOCK if end < 0 else end
            if 0 <= end - match.end() < _MOST_OF_BLOCK and (last := _BLOCK_END.match(text, end)):
                stop = last.end()
            else:
                stop = _end_of_lines(text, at, match.end(), self.headers)
            start = at if self.is_whole else match.end()
            yield (start, stop, "private-key") if stop > match.end() else None
            at = text.find(self.needle, stop)


def _end_of_lines(text: bytes, start: int, at: int, headers: int) -> int:
    """Of a block that begins so, and whose end was cut off; where its lines would begin, if none
    is there. Before each there may be what is before the first: the number of a line, the mark of a
    diff, the name of a file. `headers` is how many may say something of it."""
    begin, most = at, at + _MOST_OF_BLOCK
    prefix = _prefix(text, start)
    rest = _REST_OF_LINE.match(text, at)
    has_code = bool(rest and rest["code"])
    at = rest.end() if rest else at
    while at < most and headers and (between := _BETWEEN_LINES.match(text, at)):
        line = _behind(prefix, text, between.end())
        found = _BLOCK_LINE.match(text, line)
        is_one = found is not None and (
            _AFTER_LINE.match(text, found.end()) or len(found["code"]) >= _LEAST_OF_LINE
        )
        if not (found and is_one):
            header = None if has_code else _BLOCK_HEADER.match(text, line)
            if header is None:
                break
            at = header.end()
        else:
            has_code = has_code or bool(found["code"])
            at = found.end()
        headers -= not has_code
    return at if has_code else begin


#: Of the line with which a block begins; or all of one that is in one line.
_REST_OF_LINE = re.compile(
    rb"[ \t\"'`,;]{0,64}(?:(?P<code>[A-Za-z0-9+/=]{16})[A-Za-z0-9+/= \t\"'`,;]*+|(?=%b))"
    % _LINE_END
)


def _prefix(text: bytes, start: int) -> list[bytes]:
    """What is before a block in its line, in parts."""
    line = _BEFORE_LINE.split(text[max(start - _MOST_BEFORE, 0) : start])[-1]
    return _PART_OF_PREFIX.findall(line)


def _behind(prefix: list[bytes], text: bytes, at: int) -> int:
    """Where the same ends that begins here, perhaps with another number; if it is not there, here.

    No pattern is made of it: that takes longer than to look."""
    begin = at
    for part in prefix:
        if part.isspace():
            at = _BLANKS.match(text, at).end()  # type: ignore[union-attr]
        elif part.isdigit():
            number = _NUMBER.match(text, at)
            at = number.end() if number else -1
        elif part in b":-":
            # `grep` has another sign before the lines around what it has found.
            at = at + 1 if text[at : at + 1] in (b":", b"-") else -1
        else:
            at = at + len(part) if text.startswith(part, at) else -1
        if at < 0:
            return begin
    return at


FORMS: tuple[Form | Blocks, ...] = (
    *_TOKENS,
    *_CREDENTIALS,
    Blocks(),
    Blocks(b"Private-Lines:", _PUTTY, is_whole=False, headers=3),
)
