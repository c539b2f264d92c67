"""Whence the variables of an agent come, and that secret ones are written nowhere."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from bridle.errors import MissingVariables
from bridle.supervisor import FromEnvironment, FromFile, Plain, SessionRecord, Supervisor
from bridle.supervisor.environment import Value, resolve, secrets, sources

from .homes import ASKS, LIMIT, ME, TURN, WORKS, Home, asked, until

SECRET = "s3cr3t-b3aver-0000"

#: A CLI that keeps the values of some variables before it becomes the fake one.
KEEPS = """
import os, sys
with open(sys.argv[1], "a") as file:
    file.write("|".join(os.environ.get(n, "-") for n in sys.argv[2].split(",")) + "\\n")
os.execv(sys.executable, [sys.executable, *sys.argv[3:]])
"""


class Keeper:
    """A fake CLI, and the values that each of its processes has seen."""

    def __init__(self, home: Home, folder: Path, *names: str) -> None:
        self._file = folder / "seen"
        cli = home.cli(*TURN)
        words = [sys.executable, "-I", "-S", "-c", KEEPS, str(self._file), ",".join(names)]
        self.command = [*words, *cli.command[1:]]

    def seen(self) -> list[list[str]]:
        """Of launches, not of those that only told their version."""
        lines = self._file.read_text().split("\n")[:-1]
        return [line.split("|") for line in lines]


def hold(folder: Path, words: bytes) -> list[Path]:
    """All files below a folder in which these bytes are."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_fifo()]
    return [path for path in files if words in path.read_bytes()]


async def ended(supervisor: Supervisor, session: str) -> SessionRecord:
    is_done = lambda r: r.turns == r.launches > 0 and not r.facts.is_queued  # noqa: E731
    await supervisor.wait(session, is_done, LIMIT)
    await supervisor.stop(session)
    return await until(supervisor, session, "stopped")


async def test_a_secret_is_used_and_is_nowhere_in_the_home(home: Home, tmp_path: Path) -> None:
    cli = Keeper(home, tmp_path, "TOKEN")
    async with home.open() as supervisor:
        made: dict[str, Any] = {"cwd": home.work, "by": ME, "command": cli.command}
        record = await supervisor.create(env={"TOKEN": SECRET}, prompt="go", name="a", **made)
        await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        assert record.env == {"TOKEN": "given"}
        assert hold(home.folder, b"TOKEN"), "its name is there"
        assert hold(home.folder, SECRET.encode()) == []
        # Neither when it was stopped, resumed and forked.
        await ended(supervisor, "a")
        await supervisor.resume("a", prompt="again")
        await ended(supervisor, "a")
        await supervisor.fork("a", by=ME, name="b", prompt="fork")
        await ended(supervisor, "b")
        assert hold(home.folder, SECRET.encode()) == []
    assert hold(home.folder, SECRET.encode()) == []
    assert {line[0] for line in cli.seen()} == {SECRET}


async def test_a_later_supervisor_has_no_secret_and_says_which(home: Home, tmp_path: Path) -> None:
    cli = Keeper(home, tmp_path, "TOKEN")
    made: dict[str, Any] = {"cwd": home.work, "by": ME, "command": cli.command}
    async with home.open() as supervisor:
        await supervisor.create(env={"TOKEN": SECRET}, prompt="go", name="a", **made)
        await ended(supervisor, "a")
    async with home.open() as supervisor:
        with pytest.raises(MissingVariables, match="env=") as missing:
            await supervisor.resume("a")
        assert list(missing.value.names) == ["TOKEN"]
        assert supervisor.get("a").state == "stopped"
        await supervisor.resume("a", env={"TOKEN": "another"}, prompt="again")
        await ended(supervisor, "a")
    assert cli.seen()[-1] == ["another"]


async def test_what_is_no_secret_or_is_read_when_needed_survives(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("PLAIN", "INHERITED", "READ")
    cli, file = Keeper(home, tmp_path, *names), tmp_path / "token"
    file.write_text("first\n")
    monkeypatch.setenv("OURS", "one")
    env: dict[str, Value] = {
        "PLAIN": Plain("p:q"),
        "INHERITED": FromEnvironment("OURS"),
        "READ": FromFile(str(file)),
    }
    made: dict[str, Any] = {"cwd": home.work, "by": ME, "command": cli.command}
    async with home.open() as supervisor:
        await supervisor.create(env=env, prompt="go", name="a", **made)
        await ended(supervisor, "a")
    assert cli.seen()[-1] == ["p:q", "one", "first"]
    file.write_text("second")
    monkeypatch.setenv("OURS", "two")
    async with home.open() as supervisor:
        await supervisor.resume("a", prompt="again")
        await ended(supervisor, "a")
        assert cli.seen()[-1] == ["p:q", "two", "second"]
        file.unlink()
        with pytest.raises(MissingVariables, match="No such file"):
            await supervisor.resume("a")


async def test_one_that_waits_for_a_place_without_its_secret_fails_with_words(home: Home) -> None:
    async with home.open(size=0) as supervisor:
        await home.start(supervisor, *TURN, env={"TOKEN": SECRET}, name="a")
    async with home.open() as supervisor:
        record = await until(supervisor, "a", "failed")
        assert record.launch
        assert "TOKEN" in record.launch.words
        await supervisor.resume("a", env={"TOKEN": SECRET})
        await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
    assert hold(home.folder, SECRET.encode()) == []


async def test_nobody_else_can_read_what_is_in_a_home(home: Home) -> None:
    before = os.umask(0)
    try:
        async with home.open() as supervisor:
            await home.start(supervisor, *WORKS, name="a")
            await until(supervisor, "a", "running")
            await home.start(supervisor, *ASKS, name="b")
            await asked(supervisor, supervisor.get("b").id)
            found = {path: path.lstat().st_mode for path in [home.folder, *home.folder.rglob("*")]}
    finally:
        os.umask(before)
    assert sum(stat.S_ISFIFO(mode) for mode in found.values()) == 2, "the spools are among them"
    for path, mode in found.items():
        assert stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600), path


def test_what_is_stored_of_an_environment_has_no_secret() -> None:
    env: dict[str, Value] = {
        "A": "x",
        "B": Plain("y"),
        "C": FromEnvironment("D"),
        "E": FromFile("~/f"),
    }
    stored = sources(env)
    assert stored == {"A": "given", "B": "plain:y", "C": "env:D", "E": "file:~/f"}
    assert secrets(env) == {"A": "x"}


def test_a_plain_value_may_hold_anything() -> None:
    for value in ("", "a:b:c", "given", "line\nline", "env:X"):
        assert resolve(sources({"A": Plain(value)}), {}, {}) == {"A": value}


def test_all_that_is_missing_is_named_with_its_reason(tmp_path: Path) -> None:
    env: dict[str, Value] = {
        "A": "x",
        "B": FromEnvironment("NO"),
        "C": FromFile(str(tmp_path / "no")),
    }
    with pytest.raises(MissingVariables) as missing:
        resolve(sources(env), {}, {})
    assert set(missing.value.names) == {"A", "B", "C"}
    assert "by hand" in missing.value.names["A"]
    assert "NO is not" in missing.value.names["B"]
    assert "No such file" in missing.value.names["C"]


def test_a_file_that_is_no_text_is_missing_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MissingVariables, match="A"):
        resolve(sources({"A": FromFile(str(tmp_path / "f"))}), {}, {})


def test_what_is_no_value_is_refused() -> None:
    with pytest.raises(TypeError, match="no text"):
        sources({"A": 3})  # type: ignore[dict-item]
