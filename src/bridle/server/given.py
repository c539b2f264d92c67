"""What callers give, made into what the supervisor takes: prompts, environments, options, folders.

Owns the checks that keep an odd string from becoming an error of ours.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from ..process.spec import LaunchSpec
from ..protocol.blocks import Base64Source, ImageBlock
from ..protocol.outbound import WithMentions
from ..supervisor.environment import FromEnvironment, FromFile, Plain, Value
from ..supervisor.making import OURS, stored_spec
from ..supervisor.prompts import Said
from .problems import Problem
from .shapes.sessions import (
    EnvGiven,
    EnvironmentValue,
    FileValue,
    ImagePart,
    PlainValue,
    PromptGiven,
    SecretValue,
    TextPart,
)

LONGEST_NAME = 200
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
#: These have fields of their own in what makes a session.
_APART = ("model", "permission_mode")


def prompt_of(given: PromptGiven) -> Said:
    if isinstance(given, str):
        return given
    match [_part(part) for part in given]:
        case [str(text)]:
            return text
        case parts:
            return parts


def _part(part: TextPart | ImagePart) -> ImageBlock | str:
    if isinstance(part, TextPart):
        return WithMentions(part.text) if part.mentions else part.text
    try:
        base64.b64decode(part.data, validate=True)
    except (binascii.Error, ValueError) as error:
        words = f"The data of a picture is no base64: {error}."
        raise Problem(400, "invalid_body", words, "Send it as base64, in one line.") from None
    if part.media_type not in PICTURES:
        words = f"There is no picture of the type {part.media_type[:80]!r}."
        raise Problem(400, "invalid_body", words, f"Send one of {', '.join(PICTURES)}.")
    return ImageBlock(Base64Source(part.data, part.media_type))


def env_of(given: Mapping[str, EnvGiven]) -> dict[str, Value]:
    return {_variable(name): _value(value) for name, value in given.items()}


def plain_env(given: Mapping[str, str]) -> dict[str, str]:
    return {_variable(name): _text(value) for name, value in given.items()}


def _variable(name: str) -> str:
    if not name or "=" in name or "\0" in name:
        words = f"A variable can't be called {name[:80]!r}."
        raise Problem(400, "invalid_body", words, "Give another name.")
    return name


def _text(value: str) -> str:
    if "\0" in value:
        raise Problem(400, "invalid_body", "A variable's value has a NUL in it.", "Leave it out.")
    return value


def _value(given: EnvGiven) -> Value:
    match given:
        case PlainValue(value=value):
            return Plain(_text(value))
        case SecretValue(value=value):
            return _text(value)
        case EnvironmentValue(name=name):
            return FromEnvironment(name)
        case FileValue(path=path):
            return FromFile(path)
    raise TypeError(f"{given!r} is no value of a variable")


def name_of(given: str) -> str:
    """A session's name: it is a part of addresses."""
    if len(given) > LONGEST_NAME or not given.isprintable() or "/" in given or given in (".", ".."):
        words = f"A name has at most {LONGEST_NAME} characters, all printable, and no slash."
        raise Problem(400, "invalid_name", words, "Give another name.")
    return given


def folder_of(given: str) -> str:
    """A folder on the server's machine; `~` is the home of whoever runs the server."""
    path = path_of(given)
    if path is None:
        remedy = "Give it from the root, or from `~`."
        raise Problem(400, "invalid_folder", "A folder must be an absolute path.", remedy)
    if not _is(Path.is_dir, path):
        words = f"There is no folder {given[:200]!r} on the server's machine."
        raise Problem(400, "invalid_folder", words, "Make it first, or give another one.")
    return str(path)


def path_of(given: str) -> Path | None:
    """None for one that is not absolute."""
    try:
        path = Path(given).expanduser()
    except RuntimeError:  # the home of somebody who is not known
        return None
    return path if path.is_absolute() else None


def is_file(path: Path) -> bool:
    return _is(Path.is_file, path)


def _is(what: Callable[[Path], bool], path: Path) -> bool:
    """What can't be looked at, because of its length or a NUL in it, is nothing."""
    try:
        return what(path)
    except (OSError, ValueError):
        return False


def launch_of(given: Mapping[str, Any], model: str | None, mode: str | None) -> dict[str, Any]:
    """Options of a launch by their names: InvalidLaunch for one that there is not."""
    options = stored_spec(given)
    apart = next((name for name in _APART if name in options), None)
    if apart:
        field = apart.removeprefix("permission_")
        words = f"`launch` has no `{apart}` here."
        raise Problem(400, "unknown_field", words, f"Give `{field}` beside `launch`.")
    try:
        msgspec.convert(options, _OPTIONS)
    except msgspec.ValidationError as error:
        words = f"`launch`: {error}."
        remedy = "docs/sessions.md has what each option takes."
        raise Problem(400, "invalid_body", words, remedy) from None
    chosen = {"model": model, "permission_mode": mode}
    return options | {name: value for name, value in chosen.items() if value is not None}


def _options_type() -> type[msgspec.Struct]:
    """The options that can be given, each with its type. In JSON a path is a text."""
    hints = get_type_hints(LaunchSpec, localns={"StrPath": str})
    names = [name for name in hints if name not in (*OURS, *_APART)]
    fields = [(name, hints[name], None) for name in names]
    return msgspec.defstruct("LaunchGiven", fields, kw_only=True, forbid_unknown_fields=True)


_OPTIONS = _options_type()
