"""Whence the variables of a launch come: kept as names and sources, never as secret values.

A plain string is taken for a secret: it is used while this supervisor lives and written nowhere, so
that a resume by a later one needs it again. What is no secret is `Plain`; what must survive a
restart and is one is read when it is needed, from the supervisor's environment or from a file.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from ..errors import MissingVariables

GIVEN = "given"
#: Variables with one of these in their names have values that are secrets.
SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL")
#: Values of the environment are secrets from this length on, if their names say so.
SHORTEST_VALUE = 12
#: A password that is shorter than this is not told from other words.
SHORTEST_PASSWORD = 6
#: A longer one is known only while somebody has it: what is kept of a session is bounded.
LONGEST_KEPT, MOST_KEPT = 8 * 1024, 64 * 1024
#: Values that no session's secret is known by: words as they stand in every answer, and paths.
_PLAIN_VALUE = re.compile(r"[A-Za-z_ -]{1,11}|[0-9.]{1,11}|[/~][^\n]*")


class Plain(Struct, frozen=True):
    """A value that is no secret: it is stored."""

    value: str


class FromEnvironment(Struct, frozen=True):
    """The value that a variable of the supervisor's own environment has at the launch."""

    name: str


class FromFile(Struct, frozen=True):
    """What a file holds at the launch, without the newline at its end."""

    path: str


#: Its name and its value.
Variable: TypeAlias = tuple[str, str]
Value: TypeAlias = str | Plain | FromEnvironment | FromFile


def sources(env: Mapping[str, Value]) -> dict[str, str]:
    """What is stored of it: the name of each variable, and its source in words."""
    return {name: _source(value) for name, value in env.items()}


def secrets(env: Mapping[str, Value]) -> dict[str, str]:
    """The values that must not be stored."""
    return {name: value for name, value in env.items() if isinstance(value, str)}


def resolve(
    stored: Mapping[str, str], given: Mapping[str, str], environ: Mapping[str, str]
) -> dict[str, str]:
    """The values. `given` are those that were not stored; MissingVariables names what is not
    there."""
    found: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name, source in stored.items():
        kind, _, rest = source.partition(":")
        match kind:
            case "plain":
                found[name] = rest
            case "env" if rest in environ:
                found[name] = environ[rest]
            case "file":
                try:
                    found[name] = _read(rest)
                except _Unreadable as error:
                    missing[name] = str(error)
            case "given" if name in given:
                found[name] = given[name]
            case "env":
                missing[name] = f"{rest} is not in the supervisor's environment"
            case _:
                missing[name] = "it was given by hand, and is not stored"
    if missing:
        raise MissingVariables(missing)
    return found


def tells_secret(name: str) -> bool:
    return any(word in name.upper() for word in SECRET_NAMES)


def hidden(stored: Mapping[str, str], env: Mapping[str, str]) -> list[Variable]:
    """Those of these variables that are no plain ones."""
    return [(name, value) for name, value in env.items() if not _is_plain(stored[name])]


def readable(stored: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """As many of the values as can be had without those that were given by hand."""
    found: dict[str, str] = {}
    for name, source in stored.items():
        with contextlib.suppress(MissingVariables):
            found |= resolve({name: source}, {}, environ)
    return found


def is_inherited_secret(name: str, value: str) -> bool:
    """Whether a variable of our own environment is one, which nobody has declared."""
    return len(value) >= SHORTEST_VALUE and tells_secret(name)


def is_told_secret(name: str, value: str) -> bool:
    """Whether a session's value can be hidden: it was given as a secret, but perhaps for want of
    care."""
    is_told = tells_secret(name) or not _PLAIN_VALUE.fullmatch(value)
    return is_told and len(value.strip()) >= SHORTEST_PASSWORD


def spellings(value: str) -> list[bytes]:
    """As it stands in JSON, and in JSON within a string of JSON."""
    once = [json.dumps(value, ensure_ascii=is_ascii)[1:-1] for is_ascii in (False, True)]
    twice = [json.dumps(text, ensure_ascii=False)[1:-1] for text in once]
    return [text.encode("utf-8", "surrogatepass") for text in dict.fromkeys((*once, *twice))]


class SecretValues:
    """What sessions have for secrets, so that it can be kept from view.

    It is in memory alone, but for what a session itself has said: that stands in its stream
    anyway. `said_in` tells of it, so that it is written down there as a secret before it is seen.
    """

    def __init__(self) -> None:
        self._of: dict[str, frozenset[Variable]] = {}
        self._said: dict[str, set[Variable]] = {}
        self._spelled: dict[bytes, Variable] = {}
        #: Of all of them: another set whenever it is not the same any more.
        self.all: frozenset[Variable] = frozenset()

    def inherit(self, environ: Mapping[str, str]) -> None:
        """What every session has without being given it."""
        self.hold("", (one for one in environ.items() if is_inherited_secret(*one)))

    def of(self, session: str) -> frozenset[Variable]:
        return self._of.get(session, frozenset())

    def hold(self, session: str, variables: Iterable[Variable]) -> None:
        """Also these: what it had before still stands in what it has said."""
        self._of[session] = self._of.get(session, frozenset()).union(variables)
        if not self._of[session] <= self.all:
            self.all |= self._of[session]
            self._spell()

    def was_said(self, session: str, variables: Iterable[Variable]) -> None:
        """These stand in its stream, and are known by that."""
        said = frozenset(variables)
        self._said.setdefault(session, set()).update(said)
        self.hold(session, said)

    def said_in(self, session: str, bodies: Iterable[bytes]) -> list[Variable]:
        """Those, of any session, that are in these and were not in its stream before."""
        said = self._said.setdefault(session, set())
        found = {
            variable
            for body in bodies
            for spelled, variable in self._spelled.items()
            if variable not in said and spelled in body
        }
        if not found:
            return []
        kept = sum(len(value) for _, value in said)
        new = []
        for variable in sorted(found):
            kept += len(variable[1])
            if kept <= MOST_KEPT:
                new.append(variable)
        self.was_said(session, new)
        return new

    def forget(self, session: str) -> None:
        self._said.pop(session, None)
        if self._of.pop(session, None):
            self.all = frozenset().union(*self._of.values())
            self._spell()

    def _spell(self) -> None:
        self._spelled = {
            spelled: (name, value)
            for name, value in self.all
            if is_told_secret(name, value) and len(value) <= LONGEST_KEPT
            for spelled in spellings(value)
        }


def _is_plain(source: str) -> bool:
    return source.startswith("plain:")


class _Unreadable(Exception):
    pass


def _read(path: str) -> str:
    try:
        file = Path(path).expanduser()
        if file.exists() and not file.is_file():  # a pipe would hold all up
            raise _Unreadable(f"{path} is no file")
        return file.read_text().removesuffix("\n")
    except OSError as error:
        raise _Unreadable(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _Unreadable(f"{path} is no text") from None
    except (ValueError, RuntimeError) as error:  # a NUL in it, or a `~` of nobody
        raise _Unreadable(f"{path}: {error}") from None


def _source(value: Value) -> str:
    match value:
        case str():
            return GIVEN
        case Plain(value=text):
            return f"plain:{text}"
        case FromEnvironment(name=name):
            return f"env:{name}"
        case FromFile(path=path):
            return f"file:{path}"
    raise TypeError(f"{value!r} is no text, Plain, FromEnvironment or FromFile")
