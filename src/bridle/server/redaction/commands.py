"""Passwords that are known by the program that they are given to: `curl -u a:b`, `sshpass -p x`.

Owns these programs and their options.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from .forms import Found, is_placeholder

#: How far ahead of an option its program may stand, or behind a program its option.
_REACH = 400

_USER = re.compile(
    rb"(?:-[uU]|--(?:proxy-)?user)(?:[ \t=]{1,8}|(?=[\"'\\\w]))(?P<open>\\*[\"'])?"
    rb"(?P<name>[^\s:\"'\\/]{0,128}):(?P<password>[^\s\"'`\\]{1,512})"
)
#: Names of users and groups, as `docker run -u` has them.
_OWNER = re.compile(rb"[0-9]+|[a-z_][a-z_-]*|\$\{?\w+\}?")


class UserOption(Struct, frozen=True):
    needle: bytes
    is_lower: bool = False
    also: bytes = b""

    def found(self, text: bytes, _: bytes) -> Iterator[Found | None]:
        at = text.find(self.needle)
        while at >= 0:
            match = None
            if text[at - 1 : at] in (b"", b" ", b"\n", b"\t", b'"', b"'", b"\\") or at == 0:
                match = _USER.match(text, at)
            is_one = match is not None and _is_login(text, at, match)
            yield (*match.span("password"), "password") if match and is_one else None
            at = text.find(self.needle, match.end() if match else at + 1)


def _is_login(text: bytes, at: int, match: re.Match[bytes]) -> bool:
    name, password = match["name"], match["password"]
    if is_placeholder(password) or password.startswith((b"$", b"/")):
        return False
    if b"curl" in text[max(at - _REACH, 0) : at].rpartition(b"\n")[2]:
        return True
    return not (_OWNER.fullmatch(name) and _OWNER.fullmatch(password))


class Program(Struct, frozen=True):
    """`option` is looked for behind the program, in its line."""

    needle: bytes
    option: re.Pattern[bytes]
    is_lower: bool = False
    also: bytes = b""

    def found(self, text: bytes, _: bytes) -> Iterator[Found | None]:
        at = text.find(self.needle)
        while at >= 0:
            at += len(self.needle)
            end = text.find(b"\n", at, at + _REACH)
            end = end if end >= 0 else min(at + _REACH, len(text))
            again = text.find(self.needle, at, end)
            end = again if again >= 0 else end
            match = self.option.search(text, at, end)
            is_one = match is not None and not is_placeholder(match["secret"])
            is_one = is_one and match is not None and not match["secret"].startswith(b"$")
            yield (*match.span("secret"), "password") if match and is_one else None
            at = text.find(self.needle, end)


_VALUE = rb"[\"']?(?P<secret>[^\s\"'`\\-][^\s\"'`\\]*)"


def _option(text: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?<=\s)" + text + _VALUE)


COMMANDS: tuple[UserOption | Program, ...] = (
    UserOption(b"-u "),
    UserOption(b"-U "),
    Program(
        b"curl",
        re.compile(
            rb"(?<=\s)-[a-zA-Z]{0,6}u\s{0,4}[\"']?[^\s:\"'\\]{0,128}:(?P<secret>[^\s\"'`\\]+)"
        ),
    ),
    UserOption(b"--user"),
    UserOption(b"--proxy-user"),
    Program(b"sshpass", _option(rb"-p\s{0,4}")),
    Program(b"mysql", _option(rb"-p(?!\s)")),
    Program(b"mariadb", _option(rb"-p(?!\s)")),
    Program(b"redis-cli", _option(rb"-a\s{1,4}")),
    Program(b"docker login", _option(rb"-p\s{1,4}")),
    Program(b"podman login", _option(rb"-p\s{1,4}")),
    Program(b"registry login", _option(rb"-p\s{1,4}")),
    Program(b"ldap", _option(rb"-w\s{1,4}")),
    Program(b"smbclient", re.compile(rb"(?<=\s)-U\s{0,4}[^\s%]{1,100}%(?P<secret>\S+)")),
)
