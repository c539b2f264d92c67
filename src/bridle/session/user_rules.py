"""What the user's own settings deny, or want asked: it holds at the gate, too.

Old CLIs forget such rules where a hook allows a call, and Bridle's hook answers every call. Owns
which settings count; the rules of a folder are `folder`'s work.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec

from ..errors import InvalidRule
from ..policy.rules import Rule, parse_rule
from ..policy.verdicts import Behavior
from ..process.spec import LaunchSpec
from ..protocol.permissions import PermissionMode
from .folder import bytes_of
from .policies import homes_of

#: What an administrator sets for all users of the machine.
MANAGED = (
    Path("/etc/claude-code/managed-settings.json"),
    Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
)
MODES = frozenset(get_args(PermissionMode))
_RESTRICTING: tuple[Behavior, ...] = ("deny", "ask")

_log = logging.getLogger("bridle.session")


def user_rules(spec: LaunchSpec) -> list[Rule]:
    """The deny and ask rules of the settings that the CLI would read beside the folder's."""
    rules = [rule for file in _users(spec) for rule in _rules_of(_read(file), str(file))]
    return [*rules, *_rules_of(_given(spec), "the settings of the launch")]


def with_mode(spec: LaunchSpec) -> LaunchSpec:
    """The launch in a mode that is said: without one, 2.1.300 begins in `auto`, where it decides by
    itself. A mode that settings name is the CLI's to take from there."""
    if spec.permission_mode or spec.dangerously_skip_permissions:
        return spec
    told = (_given(spec), *map(_read, (*_users(spec), *_folders(spec))))
    if any(isinstance(one, Mapping) and _names_a_mode(one) for one in told):
        return spec
    return msgspec.structs.replace(spec, permission_mode="default")


def _names_a_mode(settings: Mapping[str, Any]) -> bool:
    permissions = settings.get("permissions")
    return isinstance(permissions, Mapping) and permissions.get("defaultMode") in MODES


def _users(spec: LaunchSpec) -> list[Path]:
    files = list(MANAGED)
    if spec.setting_sources is None or "user" in spec.setting_sources:
        homes = homes_of(spec)
        claude = homes["claude_home"] or f"{homes['home'] or Path.home()}/.claude"
        files.append(Path(claude) / "settings.json")
    return files


def _folders(spec: LaunchSpec) -> list[Path]:
    here = Path(spec.cwd or ".") / ".claude"
    names = {"project": "settings.json", "local": "settings.local.json"}
    sources = names if spec.setting_sources is None else spec.setting_sources
    return [here / name for source, name in names.items() if source in sources]


def _read(file: Path) -> Any:
    try:
        return msgspec.json.decode(bytes_of(file))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _log.warning("the rules of %s are not used: %s", file, error)
        return None


def _given(spec: LaunchSpec) -> Any:
    settings = spec.settings
    if not isinstance(settings, str):
        return settings
    if settings.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(settings)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None  # the launch will say so
    return _read(Path(spec.cwd or ".") / settings)


def _rules_of(settings: Any, source: str) -> list[Rule]:
    permissions = settings.get("permissions") if isinstance(settings, Mapping) else None
    if not isinstance(permissions, dict):
        return []
    found: list[Rule] = []
    for behavior in _RESTRICTING:
        texts = permissions.get(behavior)
        for text in texts if isinstance(texts, list) else ():
            try:
                found.append(parse_rule(text, behavior, source))
            except InvalidRule as error:
                _log.warning("a rule of %s is not used: %s", source, error)
    return found
