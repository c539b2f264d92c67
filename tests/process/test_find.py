"""Which program is the CLI: the order of the search, and what the disk tells of its version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from bridle.errors import CliNotFound, CliTooOld, InvalidLaunch
from bridle.process.child import ChildProcess
from bridle.process.find import (
    FoundCli,
    Source,
    check_age,
    find_cli,
    version_in,
    version_on_disk,
    which,
)
from bridle.process.spec import LaunchSpec
from bridle.protocol.capabilities import TESTED_VERSIONS

from .children import program

HOW_TO = r"npm install -g @anthropic-ai/claude-code"
NOTHING = "#!/bin/sh\n"


@pytest.fixture
def path(tmp_path: Path) -> dict[str, str]:
    """An environment whose PATH has nothing in it yet."""
    (tmp_path / "bin").mkdir()
    return {"PATH": str(tmp_path / "bin")}


def add(path: dict[str, str], name: str) -> str:
    return program(Path(path["PATH"]) / name, NOTHING)


@pytest.fixture
def elsewhere(tmp_path: Path) -> str:
    return program(tmp_path / "else where" / "my-claude", NOTHING)


def test_a_command_that_is_given_comes_first(path: dict[str, str], elsewhere: str) -> None:
    add(path, "claude")
    env = {**path, "BRIDLE_CLAUDE": "claude"}
    found = find_cli(LaunchSpec(command=[elsewhere, "--x"], router="1.0"), env)
    assert found == FoundCli((elsewhere, "--x"), "explicit")
    assert found.path == elsewhere


def test_then_the_router(path: dict[str, str]) -> None:
    add(path, "claude")
    npx = add(path, "npx")
    found = find_cli(LaunchSpec(router="1.0.60"), {**path, "BRIDLE_CLAUDE": "claude"})
    words = (npx, "--prefix=/", "-y", "@musistudio/claude-code-router@1.0.60", "code")
    assert found == FoundCli(words, "router")


def test_then_the_variable_before_the_path(path: dict[str, str], elsewhere: str) -> None:
    add(path, "claude")
    env = {**path, "BRIDLE_CLAUDE": f"'{elsewhere}' --flag"}
    assert find_cli(LaunchSpec(), env) == FoundCli((elsewhere, "--flag"), "BRIDLE_CLAUDE")


def test_then_the_path(path: dict[str, str]) -> None:
    claude = add(path, "claude")
    add(path, "npx")
    found = find_cli(LaunchSpec(), {**path, "BRIDLE_CLAUDE": ""})
    assert found == FoundCli((claude,), "PATH")


def test_the_last_resort_is_npx_with_a_pinned_version(path: dict[str, str]) -> None:
    npx = add(path, "npx")
    newest = TESTED_VERSIONS[-1]
    words = (npx, "--prefix=/", "-y", f"@anthropic-ai/claude-code@{newest}")
    assert find_cli(LaunchSpec(), path) == FoundCli(words, "npx", newest)


def test_npx_takes_nothing_of_the_current_folder(tmp_path: Path) -> None:
    """An agent could put a package there that calls itself Claude Code."""
    places = (os.environ["PATH"], str(Path(sys.executable).parent))
    npx = which("npx", {"PATH": os.pathsep.join(places)})
    assert npx, "make installs it"
    package = tmp_path / "node_modules" / "@anthropic-ai" / "claude-code"
    package.mkdir(parents=True)
    named = {"name": "@anthropic-ai/claude-code", "version": TESTED_VERSIONS[-1]}
    (package / "package.json").write_bytes(msgspec.json.encode({**named, "bin": "cli.js"}))
    (package / "cli.js").write_text("#!/usr/bin/env node\nconsole.log('planted')\n")
    (package / "cli.js").chmod(0o755)
    (tmp_path / ".npmrc").write_text(f"cache={tmp_path / 'cache'}\n")
    env = {**os.environ, "HOME": str(tmp_path / "user"), "npm_config_offline": "true"}
    found = find_cli(LaunchSpec(), {"PATH": str(Path(npx).parent)})
    assert found.source == "npx"
    done = subprocess.run(found.command, cwd=tmp_path, env=env, capture_output=True, check=False)
    assert b"planted" not in done.stdout
    assert not (tmp_path / "cache").exists()


def test_nothing_of_the_current_folder_is_a_program(
    path: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    planted = tmp_path / "planted" / "claude"
    planted.parent.mkdir()
    for file in (planted, tmp_path / "claude"):
        program(file, NOTHING)
    npx = add(path, "npx")
    for ahead in (".", "", "planted", "./planted"):
        env = {"PATH": f"{ahead}:{path['PATH']}:{ahead}"}
        assert find_cli(LaunchSpec(), env).path == npx
    assert which("claude", {"PATH": "."}) is None
    assert which("claude", {"PATH": str(tmp_path)}) == str(tmp_path / "claude")


def test_a_command_may_be_a_string_and_is_split_as_a_shell_would(
    path: dict[str, str], elsewhere: str
) -> None:
    found = find_cli(LaunchSpec(command=f"'{elsewhere}' 'a b' c"), path)
    assert found.command == (elsewhere, "a b", "c")


def test_a_command_is_looked_for_on_the_path_of_the_child(path: dict[str, str]) -> None:
    mine = add(path, "mine")
    assert find_cli(LaunchSpec(command="mine"), path).command == (mine,)


@pytest.mark.parametrize("command", ["", "   ", [], [""]])
def test_an_empty_command_is_refused(path: dict[str, str], command: str | list[str]) -> None:
    with pytest.raises(InvalidLaunch, match="the command is empty: give a program"):
        find_cli(LaunchSpec(command=command), path)


def test_a_command_with_an_open_quote_is_refused(path: dict[str, str]) -> None:
    with pytest.raises(InvalidLaunch, match=r"claude 'oops.*can't be split: No closing quotation"):
        find_cli(LaunchSpec(command="claude 'oops"), path)


@pytest.mark.parametrize(
    ("spec", "env", "says"),
    [
        (LaunchSpec(), {}, r"no `claude` on the PATH, and no npx"),
        (LaunchSpec(router="1"), {}, r"no npx to run claude-code-router"),
        (LaunchSpec(command="no-such"), {}, r"no program 'no-such' \(explicit\)"),
        (LaunchSpec(), {"BRIDLE_CLAUDE": "no-such"}, r"no program 'no-such' \(BRIDLE_CLAUDE\)"),
    ],
)
def test_what_is_not_found_is_told_with_how_to_install_it(
    path: dict[str, str], spec: LaunchSpec, env: dict[str, str], says: str
) -> None:
    with pytest.raises(CliNotFound, match=f"{says}.*{HOW_TO}.*BRIDLE_CLAUDE"):
        find_cli(spec, {**path, **env})


def test_a_file_that_is_not_executable_is_not_a_program(
    path: dict[str, str], tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    plain.write_text(NOTHING)
    with pytest.raises(CliNotFound, match="no program"):
        find_cli(LaunchSpec(command=[str(plain)]), path)


def test_a_cli_that_is_not_there_is_told_before_anything_starts(path: dict[str, str]) -> None:
    child = ChildProcess(LaunchSpec(), path)
    with pytest.raises(CliNotFound):
        child.find()
    assert child.version is None


@pytest.mark.parametrize("version", ["1.0.128", "0.2.9", "1.9.9 (Claude Code)"])
def test_a_cli_that_is_too_old_is_refused_with_how_to_install_a_new_one(version: str) -> None:
    with pytest.raises(CliTooOld, match=rf"claude is Claude Code .* needs 2\.0\.0 .*{HOW_TO}"):
        check_age(FoundCli(("claude",), "PATH", version))


@pytest.mark.parametrize("version", ["2.0.0", "2.1.325", "10.0.0", None, "nightly"])
def test_a_cli_that_is_new_enough_or_of_unknown_age_is_taken(version: str | None) -> None:
    found = FoundCli(("claude",), "PATH", version)
    assert check_age(found) is found


def package(folder: Path, name: str, version: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(json.dumps({"name": name, "version": version}))


@pytest.mark.parametrize("inside", ["cli.js", "bin/claude.exe"])
def test_the_version_is_read_from_the_package_beside_the_program(
    tmp_path: Path, inside: str
) -> None:
    home = tmp_path / "node_modules" / "@anthropic-ai" / "claude-code"
    package(home, "@anthropic-ai/claude-code", "2.1.12")
    target = program(home / inside, NOTHING)
    link = tmp_path / "bin" / "claude"
    link.parent.mkdir()
    link.symlink_to(target)
    assert version_on_disk(str(link)) == "2.1.12"


def test_the_version_is_read_from_a_folder_of_versions(tmp_path: Path) -> None:
    target = program(tmp_path / "share" / "claude" / "versions" / "2.1.325", NOTHING)
    link = tmp_path / "claude"
    link.symlink_to(target)
    assert version_on_disk(str(link)) == "2.1.325"


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "another", "version": "9.9.9"}',
        '{"name": "@anthropic-ai/claude-code"}',
        '{"name": 1, "version": 2}',
        "not json",
        "\xff\xfe",
        None,
    ],
)
def test_a_package_that_is_another_or_unreadable_tells_no_version(
    tmp_path: Path, text: str | None
) -> None:
    if text is not None:
        (tmp_path / "package.json").write_text(text, encoding="latin-1")
    assert version_on_disk(program(tmp_path / "claude", NOTHING)) is None


@pytest.mark.parametrize("source", ["explicit", "BRIDLE_CLAUDE"])
def test_a_script_that_is_run_by_another_program_brings_its_version(
    tmp_path: Path, path: dict[str, str], source: Source
) -> None:
    package(tmp_path / "p", "@anthropic-ai/claude-code", "2.0.75")
    command = [sys.executable, str(tmp_path / "p" / "cli.js")]
    if source == "explicit":
        found = find_cli(LaunchSpec(command=command), path)
    else:
        found = find_cli(LaunchSpec(), {**path, "BRIDLE_CLAUDE": " ".join(command)})
    assert found == FoundCli(tuple(command), source, "2.0.75")


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("2.1.325 (Claude Code)\n", "2.1.325"),
        ("warning: x\nclaude v2.0.75\n", "2.0.75"),
        ("2.2.0-beta.1\n", "2.2.0-beta.1"),
        ("command not found", None),
        ("", None),
    ],
)
def test_the_version_is_found_in_what_a_cli_prints(output: str, version: str | None) -> None:
    assert version_in(output) == version
