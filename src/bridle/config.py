"""Settings: what can be set, where a value may come from, and where it did come from.

Owns the table `SETTINGS` and the order: flags, then the environment (`BRIDLE_…`), then bridle.toml,
then the defaults. The file lies in Bridle's home, or where `--config` or `BRIDLE_CONFIG` say, and
is looked for nowhere else: a repository must not be able to loosen anything. Loads little, since
every command begins with it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from .errors import BridleError

FILE = "bridle.toml"

#: `text` may be left out where the default is None, and so may `seconds`.
Kind: TypeAlias = Literal["folder", "text", "number", "seconds", "bytes", "switch", "choice"]


class InvalidSetting(BridleError):
    """A value that a setting can't have, or a setting that does not exist."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason


@dataclass(frozen=True)
class Setting:
    """One row of the table. Those that are not `in_file` can be given by flag or environment."""

    name: str
    kind: Kind
    default: Any
    words: str
    choices: tuple[str, ...] = ()
    in_file: bool = True
    least: float = 0

    @property
    def variable(self) -> str:
        return f"BRIDLE_{self.name.upper()}"

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")


MB = 1024 * 1024
MODES = ("default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto")

SETTINGS: tuple[Setting, ...] = (
    Setting(
        "home",
        "folder",
        Path("~/.bridle"),
        "Where all is kept: sessions, events, tokens. The file of settings lies in it.",
        in_file=False,
    ),
    Setting(
        "url",
        "text",
        None,
        "The server that the command talks to, instead of the one of this home.",
        in_file=False,
    ),
    Setting(
        "token",
        "text",
        None,
        "The token for that server. Never shown.",
        in_file=False,
    ),
    Setting("host", "text", "127.0.0.1", "The address that the server listens on."),
    Setting("port", "number", 7717, "The port that the server listens on; 0 is any that is free."),
    Setting(
        "allow_remote",
        "switch",
        False,
        "Whether the server may listen on an address that other machines reach.",
    ),
    Setting(
        "allow_unseen",
        "switch",
        False,
        "Whether the server lets in who comes by a process of this machine that can't be seen.",
    ),
    Setting(
        "allowed_hosts",
        "text",
        None,
        "Further names of the server, separated by commas, that a browser may have in its address.",
    ),
    Setting("size", "number", 20, "How many agents run at a time; more are queued.", least=1),
    Setting("policy", "text", "ask", "The policy of a new session: a preset, a name or a file."),
    Setting("model", "text", None, "The model of a new session; without it the CLI's own."),
    Setting(
        "mode",
        "choice",
        None,
        "The permission mode of a new session's CLI.",
        choices=MODES,
    ),
    Setting(
        "claude",
        "text",
        None,
        "The command that starts Claude Code; without it `claude` on the PATH, then npx.",
    ),
    Setting(
        "expires_in",
        "seconds",
        None,
        "Seconds after which an approval that nobody decided is denied; without it, never.",
    ),
    Setting(
        "escalate_after",
        "seconds",
        120.0,
        "Seconds an agent has to decide for one below it, before the next is asked; 0: people are.",
    ),
    Setting(
        "free_bytes",
        "bytes",
        256 * MB,
        "With less than this free on the disk, agents are paused.",
    ),
    Setting(
        "stop_agents",
        "switch",
        False,
        "Whether agents end with the server; else they run on and are found again.",
    ),
    Setting(
        "anchor_command",
        "text",
        None,
        "A command that is given the anchors of the log, to keep them elsewhere; on its stdin.",
    ),
    Setting("max_body", "bytes", 32 * MB, "The largest request that the server takes.", least=1024),
    Setting(
        "timeout",
        "seconds",
        60.0,
        "How long the command waits for an answer of the server.",
        least=0.1,
    ),
)
BY_NAME: Mapping[str, Setting] = MappingProxyType({one.name: one for one in SETTINGS})


@dataclass(frozen=True)
class Settings:
    """The values that hold, one field for each row; `sources` says where each came from."""

    home: Path
    url: str | None
    token: str | None
    host: str
    port: int
    allow_remote: bool
    allow_unseen: bool
    allowed_hosts: str | None
    size: int
    policy: str
    model: str | None
    mode: str | None
    claude: str | None
    expires_in: float | None
    escalate_after: float
    free_bytes: int
    stop_agents: bool
    anchor_command: str | None
    max_body: int
    timeout: float
    #: `default`, a flag, a variable's name, or a file's path.
    sources: Mapping[str, str]
    #: The file that was read, if there was one.
    file: Path | None

    def values(self) -> dict[str, Any]:
        """By name, as JSON can have them; the token only as that there is one."""
        shown = {field.name: getattr(self, field.name) for field in fields(self)}
        shown = {name: shown[name] for name in BY_NAME}
        return shown | {"home": str(self.home), "token": "(set)" if self.token else None}


def load(
    flags: Mapping[str, object] = MappingProxyType({}),
    environ: Mapping[str, str] = os.environ,
    config: str | os.PathLike[str] | None = None,
) -> Settings:
    """What holds now. Flags that are None were not given. InvalidSetting says what is wrong."""
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}

    def put(setting: Setting, value: object, source: str, where: str) -> None:
        if setting.name not in values:
            values[setting.name] = _read(setting, value, where)
            sources[setting.name] = source

    for name, value in flags.items():
        if value is not None:
            setting = BY_NAME[name]
            put(setting, value, f"flag {setting.flag}", setting.flag)
    for setting in SETTINGS:
        # One that is set to nothing is as good as none.
        if environ.get(setting.variable):
            put(setting, environ[setting.variable], setting.variable, setting.variable)
    home = values.get("home", Path(BY_NAME["home"].default).expanduser())
    file = _find(home, config or environ.get("BRIDLE_CONFIG"))
    for name, value in (_table(file) if file else {}).items():
        put(_known(name, file), value, str(file), f"{file}: {name}")
    for setting in SETTINGS:
        put(setting, setting.default, "default", setting.name)
    return Settings(**values, sources=sources, file=file)


def _find(home: Path, named: str | os.PathLike[str] | None) -> Path | None:
    if named is None:
        return home / FILE if (home / FILE).is_file() else None
    path = Path(named).expanduser()
    if not path.exists():
        raise InvalidSetting(str(path), "there is no such file of settings")
    return path


def _table(file: Path) -> dict[str, Any]:
    import tomllib  # here, since most homes have no file

    try:
        with file.open("rb") as opened:
            _check_private(file, os.fstat(opened.fileno()))
            return tomllib.load(opened)
    except OSError as error:
        raise InvalidSetting(str(file), f"it can't be read: {error.strerror}") from error
    except ValueError as error:
        raise InvalidSetting(str(file), f"it is no TOML: {error}") from error


def _check_private(file: Path, found: os.stat_result) -> None:
    """Whoever writes it chooses the program that is run as us."""
    if not stat.S_ISREG(found.st_mode):
        return  # a pipe, or /dev/null
    if found.st_uid not in (os.geteuid(), 0):
        reason = f"it belongs to another user ({found.st_uid}); make it your own"
        raise InvalidSetting(str(file), reason)
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InvalidSetting(str(file), f"others can write to it; `chmod go-w {file}`")


def _known(name: str, file: Path | None) -> Setting:
    setting = BY_NAME.get(name)
    if setting is None:
        raise InvalidSetting(f"{file}", f"there is no setting {name!r}{_nearest(name)}")
    if not setting.in_file:
        reason = f"{name} can't be set in a file: use {setting.flag} or {setting.variable}"
        raise InvalidSetting(f"{file}", reason)
    return setting


def _nearest(name: str) -> str:
    import difflib

    in_file = [setting.name for setting in SETTINGS if setting.in_file]
    near = difflib.get_close_matches(name.replace("-", "_"), in_file, 1, 0.5)
    return f"; did you mean {near[0]!r}?" if near else f": use {', '.join(in_file)}"


# --- reading a value

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_SWITCH = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


def _read(setting: Setting, value: object, where: str) -> Any:
    """The value as its kind has it. Texts are from flags and variables; a file has types."""
    if value is None and setting.default is None:
        return None
    read = _READERS[setting.kind](value)
    if read is None:
        wanted = ", ".join(setting.choices) or _WANTED[setting.kind]
        raise InvalidSetting(where, f"{value!r} will not do: it takes {wanted}")
    if setting.choices and read not in setting.choices:
        raise InvalidSetting(where, f"{value!r} will not do: use {', '.join(setting.choices)}")
    if isinstance(read, int | float) and not isinstance(read, bool) and read < setting.least:
        raise InvalidSetting(where, f"{value!r} is too little: {setting.least:g} is the least")
    if setting.name == "port" and read > 65535:
        raise InvalidSetting(where, f"{value!r} is no port: the last is 65535")
    return read


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _folder(value: object) -> Path | None:
    return Path(value).expanduser().absolute() if isinstance(value, str | Path) else None


def _number(value: object) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"-?\d+", value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _seconds(value: object) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and value == value else None  # type: ignore[arg-type]


def _bytes(value: object) -> int | None:
    if isinstance(value, str):
        found = _SIZE.fullmatch(value.strip())
        return int(float(found[1]) * _UNITS[found[2].lower()]) if found else None
    return _number(value)


def _switch(value: object) -> bool | None:
    if isinstance(value, str):
        return _SWITCH.get(value.lower())
    return value if isinstance(value, bool) else None


_READERS: dict[Kind, Any] = {
    "folder": _folder,
    "text": _text,
    "number": _number,
    "seconds": _seconds,
    "bytes": _bytes,
    "switch": _switch,
    "choice": _text,
}
_WANTED: dict[Kind, str] = {
    "folder": "a folder",
    "text": "a text",
    "number": "a whole number",
    "seconds": "a number of seconds",
    "bytes": "a number of bytes, or one with a unit (256MB)",
    "switch": "true or false",
    "choice": "one of its words",
}
