"""What a launch's settings hold it back with, beside its rules: for one that is to have no more.

Owns the merge of settings, in the order in which the CLI has them: a folder's, its local ones, and
those of the launch. The user's own are read by every CLI that has the user's as a source.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ..errors import InvalidLaunch
from ..process.spec import LaunchSpec
from .folder import bytes_of

#: By source, the weakest first.
FILES = {"project": ".claude/settings.json", "local": ".claude/settings.local.json"}
#: What the settings of a folder hold back that is not read for the other launch.
RESTRICTING = ("sandbox",)


def restricting_settings(spec: LaunchSpec) -> dict[str, Any]:
    """The settings of this launch, with what those of its folder that are among its sources hold it
    back with. InvalidLaunch where they can't be read: nobody knows what they restrict."""
    folder = Path(spec.cwd or ".")
    found: dict[str, Any] = {}
    for source, name in FILES.items():
        if source in (spec.setting_sources or ()):
            told = _read(folder / name, is_needed=False)
            found = merged(found, {key: told[key] for key in RESTRICTING if key in told})
    match spec.settings:
        case None:
            given: Mapping[str, Any] = {}
        case str() as text if text.lstrip().startswith("{"):
            given = _decoded(text.encode(), "the settings of the launch")
        case str() as file:
            given = _read(folder / file, is_needed=True)
        case settings:
            given = settings
    return merged(found, given)


def merged(weak: Mapping[str, Any], strong: Mapping[str, Any]) -> dict[str, Any]:
    """As the CLI does it: tables by their keys, lists one behind the other, else the strong one."""
    found = dict(weak)
    for key, value in strong.items():
        other = found.get(key)
        if isinstance(other, Mapping) and isinstance(value, Mapping):
            found[key] = merged(other, value)
        elif isinstance(other, list) and isinstance(value, list):
            found[key] = other + [one for one in value if one not in other]
        else:
            found[key] = value
    return found


def _read(file: Path, *, is_needed: bool) -> dict[str, Any]:
    try:
        return _decoded(bytes_of(file), f"the settings {file}")
    except (FileNotFoundError, NotADirectoryError):
        if not is_needed:
            return {}
        raise InvalidLaunch(f"the settings {file} are not there any more") from None
    except OSError as error:
        raise InvalidLaunch(f"the settings {file} can't be read: {error}") from error


def _decoded(text: bytes, source: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidLaunch(f"{source} can't be read: {error}") from error
