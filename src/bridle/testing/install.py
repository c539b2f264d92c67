"""Real CLIs of given versions, installed from npm into a cache folder outside of any repo.

Owns the cache: a version is there only if it was installed whole and answered `--version` with
its own number; two processes that want the same one wait for each other.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from ..errors import CliUnavailable
from .node import ADVICE, Node, find_node

PACKAGE = "@anthropic-ai/claude-code"
STAMP = "installed.json"
INSTALL_SECONDS = 600


class InstalledCli(Struct, frozen=True):
    """A CLI that can be run: `command` before its arguments."""

    version: str
    command: list[str]


class _Stamp(Struct):
    version: str
    program: str
    size: int


def cache_folder() -> Path:
    """`BRIDLE_CACHE`, else the user's cache folder."""
    given = os.environ.get("BRIDLE_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "bridle"


def install_cli(
    version: str, cache: Path | str | None = None, *, tell: Callable[[str], None] | None = None
) -> InstalledCli:
    """The CLI of this version: from the cache, or installed now (seconds to a minute).

    `tell` is told when that takes time, for whoever waits.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise CliUnavailable(f"{version!r} is not a version; give one such as '2.1.12'")
    shelf = Path(cache or cache_folder()) / "cli"
    folder = shelf / version
    try:
        shelf.mkdir(parents=True, exist_ok=True)
        with _locked(shelf / f"{version}.lock"):
            found = _installed(folder)
            if found:
                return found
            if tell:
                tell(f"installing Claude Code {version} into {shelf} (once)")
            # What an installation that was killed has left, and what is no longer whole.
            for stale in [folder, *shelf.glob(f"{version}-*")]:
                shutil.rmtree(stale, ignore_errors=True)
            _install(version, folder)
            found = _installed(folder)
    except OSError as error:
        raise CliUnavailable(
            f"the cache {shelf} can't be used: {error}; BRIDLE_CACHE names another folder"
        ) from error
    if found is None:
        raise CliUnavailable(f"{folder} was filled and is not readable; delete it and try again")
    return found


def _installed(folder: Path) -> InstalledCli | None:
    try:
        stamp = msgspec.json.decode((folder / STAMP).read_bytes(), type=_Stamp)
        program = folder / stamp.program
        if program.stat().st_size == stamp.size:
            return InstalledCli(stamp.version, _command(program))
    except (OSError, msgspec.DecodeError):
        pass
    return None


def _command(program: Path) -> list[str]:
    """A script is run by node, wherever node is; a native binary by itself."""
    with program.open("rb") as file:
        is_script = file.read(2) == b"#!" and b"node" in file.readline()
    node = find_node() if is_script else None
    return [node.node, str(program)] if node else [str(program)]


def _install(version: str, folder: Path) -> None:
    node = find_node()
    if node is None:
        raise CliUnavailable(ADVICE)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{version}-") as scratch:
        home = Path(scratch) / "package"
        home.mkdir()
        # A folder with a package.json of its own is never taken for a part of one above it.
        (home / "package.json").write_text('{"private": true}\n')
        _npm_install(node, version, home)
        program = _working_program(node, home, version)
        stamp = _Stamp(version, str(program.relative_to(home)), program.stat().st_size)
        (home / STAMP).write_bytes(msgspec.json.encode(stamp))
        home.rename(folder)


def _npm_install(node: Node, version: str, home: Path) -> None:
    command = [*node.npm, "install", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        done = subprocess.run(
            [*command, f"{PACKAGE}@{version}"],
            cwd=home,
            env={**os.environ, "PATH": node.path},
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CliUnavailable(f"npm did not install {version} in {INSTALL_SECONDS} s") from error
    if done.returncode == 0:
        return
    if "ETARGET" in done.stderr or "E404" in done.stderr:
        raise CliUnavailable(
            f"npm has no Claude Code {version}; `npm view {PACKAGE} versions` lists what there is"
        )
    raise CliUnavailable(f"npm could not install Claude Code {version}: {_gist(done.stderr)}")


def _working_program(node: Node, home: Path, version: str) -> Path:
    """The program that runs and says that it is this version."""
    modules = home / "node_modules"
    # The second is the native binary itself: npm may have been told not to run install scripts.
    candidates = [modules / ".bin" / "claude", *modules.glob("@anthropic-ai/claude-code-*/claude")]
    said = "it has no program"
    for program in candidates:
        said = _version_of(node, program, home)
        if said.split(" ")[0] == version:
            return program
    raise CliUnavailable(f"Claude Code {version} was installed but does not run: {said}")


def _version_of(node: Node, program: Path, home: Path) -> str:
    environment = {"PATH": node.path, "HOME": str(home)}
    try:
        done = subprocess.run(
            [str(program), "--version"],
            env={**environment, "DISABLE_AUTOUPDATER": "1"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout.strip() or _gist(done.stderr)


def _gist(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return " / ".join(lines[:3]) or "it said nothing"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    """`python -m bridle.testing.install VERSION…`: have these versions in the cache."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.stderr.write("usage: python -m bridle.testing.install VERSION…, such as 2.1.325\n")
        return 2
    for version in sys.argv[1:]:
        try:
            cli = install_cli(version, tell=_say)
        except CliUnavailable as error:
            sys.stderr.write(f"bridle: {error}\n")
            return 1
        _say(f"Claude Code {cli.version}: {shlex.join(cli.command)}")
    return 0


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
