"""Whence the variables of a launch come: kept as names and sources, never as secret values.

A plain string is taken for a secret: it is used while this supervisor lives and written nowhere, so
that a resume by a later one needs it again. What is no secret is `Plain`; what must survive a
restart and is one is read when it is needed, from the supervisor's environment or from a file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from ..errors import MissingVariables

GIVEN = "given"


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


class SecretValues:
    """What sessions have for secrets, in memory alone: so that it can be kept from view."""

    def __init__(self) -> None:
        self._of: dict[str, frozenset[Variable]] = {}
        #: Of all of them: another set whenever it is not the same any more.
        self.all: frozenset[Variable] = frozenset()

    def hold(self, session: str, variables: Iterable[Variable]) -> None:
        """Also these: what it had before still stands in what it has said."""
        self._of[session] = self._of.get(session, frozenset()).union(variables)
        if not self._of[session] <= self.all:
            self.all |= self._of[session]

    def forget(self, session: str) -> None:
        if self._of.pop(session, None):
            self.all = frozenset().union(*self._of.values())


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
