"""All checks, one after the other. One that fails in itself is a finding, too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from ...config import Settings
from ...errors import words_of

Level: TypeAlias = Literal["ok", "warn", "fail"]


class Finding(Struct, frozen=True, omit_defaults=True):
    """`remedy` is what to do, where something is to be done."""

    about: str
    level: Level
    words: str
    remedy: str = ""


class Patient(Struct, frozen=True):
    """What is looked at. `root` is where the system's files are: another one in tests."""

    settings: Settings
    environ: Mapping[str, str]
    root: Path = Path("/")

    def file(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def read(self, path: str) -> str:
        """What a file of the system says; nothing if it can't be read."""
        try:
            return self.file(path).read_text(errors="replace")
        except OSError:
            return ""


Check: TypeAlias = Callable[[Patient], Awaitable[list[Finding]] | list[Finding]]


async def examine(patient: Patient) -> list[Finding]:
    from . import agents, home, machine, survival

    checks: list[Check] = [
        machine.python,
        machine.sqlite,
        machine.git,
        machine.descriptors,
        machine.inotify,
        home.folder,
        home.secrets,
        home.file_system,
        home.space,
        home.server,
        agents.claude,
        agents.login,
        survival.logout,
        survival.unit,
        survival.container,
    ]
    findings: list[Finding] = []
    for check in checks:
        try:
            found = check(patient)
            findings += found if isinstance(found, list) else await found
        except Exception as error:  # noqa: BLE001 - the other checks are wanted all the same
            words = f"it could not be looked at: {words_of(error)}"
            findings.append(Finding(check.__name__.replace("_", " "), "warn", words))
    return findings
