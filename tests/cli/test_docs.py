"""Every command, flag, setting and exit code is in docs/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from bridle.cli import errors
from bridle.cli.main import app
from bridle.config import SETTINGS

from .test_main import LEAVES

DOCS = Path(__file__).resolve().parents[2] / "docs"
COMMAND = (DOCS / "command.md").read_text()
SETTINGS_PAGE = (DOCS / "configuration.md").read_text()
#: Said once for all of them.
EVERYWHERE = {"--json", "--help", "-h"}


def flags(command: Any) -> set[str]:
    return {
        flag
        for param in command.params
        if param.param_type_name == "option" and not param.hidden
        for flag in (*param.opts, *param.secondary_opts)
    }


def words_in(text: str) -> set[str]:
    """The flags between backticks."""
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", " ".join(re.findall(r"`([^`]+)`", text))))


def section(path: tuple[str, ...]) -> str:
    """What the page says of a command: its section, or the row of a group's."""
    _, _, rest = COMMAND.partition(f"### `bridle {path[0]}`\n")
    assert rest, f"bridle {path[0]} has no section"
    found = re.split(r"\n##", rest)[0]
    if len(path) == 1:
        return found
    rows = [row for row in found.splitlines() if f"`bridle {' '.join(path)}" in row]
    assert rows, f"bridle {' '.join(path)} is not in its section"
    return rows[0]


@pytest.mark.parametrize(("path", "command"), LEAVES, ids=[" ".join(path) for path, _ in LEAVES])
def test_every_flag_is_documented_and_none_that_there_is_not(
    path: tuple[str, ...], command: Any
) -> None:
    said = words_in(section(path))
    assert flags(command) - EVERYWHERE - said == set()
    elsewhere = {flag for other, one in LEAVES if other != path for flag in flags(one)}
    known = flags(command) | elsewhere | EVERYWHERE | {"--home", "-"}
    assert said - known == set()


def test_the_options_ahead_of_a_command_are_documented() -> None:
    _, _, rest = COMMAND.partition("Options ahead of a command's name:")
    root = flags(typer.main.get_command(app))
    assert root - EVERYWHERE - words_in(rest.split("\n##")[0]) == set()


def test_every_exit_code_is_documented() -> None:
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", COMMAND, re.MULTILINE)}
    names = ("OK", "FAILED", "MISUSED", "NO_SERVER", "NOT_FOUND", "NOT_NOW", "INTERRUPTED")
    assert {getattr(errors, name) for name in names} <= told


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_is_documented_with_its_variable_and_its_default(setting: Any) -> None:
    found = re.search(rf"^\| `{setting.name}` \|(.*)$", SETTINGS_PAGE, re.MULTILINE)
    assert found, f"{setting.name} is not in docs/configuration.md"
    _variable, default, words = (cell.strip() for cell in found[1].split("|")[:3])
    assert f"`{setting.variable}`" in found[1]
    assert words
    assert bool(default) == (setting.default is not None)
    assert ("Not in the file" in words) != setting.in_file


def test_no_setting_is_documented_that_there_is_not() -> None:
    told = re.findall(r"^\| `(\w+)` \| `BRIDLE_\w+` \|", SETTINGS_PAGE, re.MULTILINE)
    assert set(told) == {setting.name for setting in SETTINGS}
    variables = set(re.findall(r"BRIDLE_[A-Z_]+", SETTINGS_PAGE))
    known = {setting.variable for setting in SETTINGS} | {"BRIDLE_CONFIG", "BRIDLE_DEMO_PACE"}
    assert variables == known
