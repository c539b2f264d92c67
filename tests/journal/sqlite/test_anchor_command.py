"""The user's command that keeps anchors elsewhere: what it is given, and that nobody waits."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from pathlib import Path

import pytest

from bridle.journal import Audit, Durability, NewEvent, SqliteJournal, verify_all
from bridle.journal.anchors import DECODER, Line
from bridle.journal.sqlite import anchor_command
from bridle.journal.sqlite.anchor_command import AnchorCommand
from bridle.journal.sqlite.store import open_journal

from .gates import LIMIT

SEALED = [NewEvent("k", b"x", is_sealed=True)]


def keeps(file: Path) -> str:
    return f"sh -c {shlex.quote(f'cat >> {shlex.quote(str(file))}')}"


def kept_in(file: Path) -> list[Line]:
    return [DECODER.decode(line) for line in file.read_bytes().splitlines()]


async def append(journal: SqliteJournal, stream: str, count: int) -> None:
    last = (await journal.log.info(stream)).last_seq
    for number in range(last, last + count):
        await journal.log.append(stream, SEALED, number, Durability.POWER)


async def test_a_command_has_all_anchors_when_the_journal_is_closed(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "kept"
    for _ in range(2):
        async with open_journal(home, anchor_command=keeps(file)) as journal:
            await append(journal, "a", 50)
            await append(journal, "b", 1)
    lines = kept_in(file)
    heads = {line.stream: line.head for line in lines}
    assert heads["a"]
    assert heads["a"].last == 100
    # The newest of each: not one for each of the appends.
    assert len(lines) < 30
    async with open_journal(home) as journal:
        assert (await verify_all(journal, file.read_bytes())).is_intact


async def test_it_is_run_at_most_once_in_a_while(home: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    command = f"sh -c {shlex.quote(f'cat > /dev/null; echo >> {shlex.quote(str(runs))}')}"
    async with open_journal(home, anchor_command=command) as journal:
        for _ in range(10):
            await append(journal, "a", 10)
            await journal.anchor()
    assert runs.read_text().count("\n") <= 2


async def told(journal: SqliteJournal) -> Audit:
    async with asyncio.timeout(LIMIT):
        while not (found := await verify_all(journal)).command:
            pass
    return found


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("sh -c 'echo no disk >&2; exit 3'", "the anchor command failed (3): no disk"),
        ("sh -c 'exit 1'", "the anchor command failed (1): it said nothing"),
        ("/no/such/program", "the anchor command can't be run"),
        ("no-such-program", "the anchor command can't be run: no-such-program is not on the PATH"),
        ("sh -c 'what", "the anchor command can't be run: No closing quotation"),
    ],
)
async def test_a_command_that_fails_is_told_and_holds_up_nobody(
    home: Path, command: str, words: str
) -> None:
    async with open_journal(home, anchor_command=command) as journal:
        await append(journal, "a", 3)
        found = await told(journal)
        assert found.command.startswith(words)
        assert found.is_intact  # the log is: what is kept elsewhere is not its part


async def test_a_command_that_hangs_is_killed_and_holds_up_nobody(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anchor_command, "SECONDS", 0.2)
    hangs = f"{sys.executable} -c 'import time; time.sleep(1000)'"
    async with asyncio.timeout(LIMIT), open_journal(home, anchor_command=hangs) as journal:
        await append(journal, "a", 100)
        assert "did not end" in (await told(journal)).command


async def test_nothing_of_the_current_folder_is_run(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("keep", "sh"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\ntouch ran\n")
        program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".::{os.environ['PATH']}")
    for command in ("keep", "./keep", "sh -c 'touch right'"):
        async with open_journal(home, anchor_command=command) as journal:
            await append(journal, "a", 1)
    assert not (tmp_path / "ran").exists()
    assert (home / "right").exists()  # it runs in the home


def until_it_fails(command: AnchorCommand) -> None:
    while not command.problem:
        time.sleep(0.001)


async def test_what_a_command_did_not_take_it_gets_again(tmp_path: Path) -> None:
    gate, file = tmp_path / "gate", tmp_path / "kept"
    script = f"test -e {gate} && cat >> {file}"
    command = AnchorCommand(f"sh -c {shlex.quote(script)}", tmp_path, every=0.01)
    command.offer([Line(1, 1.0, "start"), Line(2, 1.0, "anchor", "a")])
    command.start()
    async with asyncio.timeout(LIMIT):
        await asyncio.to_thread(until_it_fails, command)
        command.offer([Line(3, 1.0, "anchor", "a"), Line(4, 1.0, "deleting", "a")])
        gate.touch()
        await asyncio.to_thread(command.stop)
    assert [line.number for line in kept_in(file)] == [1, 3, 4]
    assert command.problem == ""
