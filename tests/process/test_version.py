"""A CLI whose place tells no version is asked for it: once, for all, and not for ever."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from bridle.errors import CliTooOld
from bridle.process.child import ChildProcess
from bridle.process.find import FoundCli
from bridle.process.spec import LaunchSpec
from bridle.process.version import with_version

from .children import AT_ONCE, LIMIT, Heard, gone, in_time, marked, program


class Asked:
    """A CLI that writes down each time that it is asked."""

    def __init__(self, folder: Path, then: str) -> None:
        self._log = folder / "asked"
        self.program = program(
            folder / "claude", f"#!/bin/sh\necho \"$@\" >> '{self._log}'\n{then}\n"
        )
        self.found = FoundCli((self.program,), "explicit")

    @property
    def words(self) -> list[str]:
        return self._log.read_text().splitlines() if self._log.exists() else []

    def becomes(self, version: str) -> None:
        path = Path(self.program)
        path.write_text(path.read_text().replace("2.1.12", version))

    async def version(self) -> str | None:
        return (await with_version(self.found, {**os.environ})).version


@pytest.fixture
def cli(tmp_path: Path) -> Asked:
    return Asked(tmp_path, "echo '2.1.12 (Claude Code)'")


async def test_many_sessions_that_start_at_once_ask_once(cli: Asked) -> None:
    versions = await asyncio.gather(*(cli.version() for _ in range(50)))
    assert set(versions) == {"2.1.12"}
    assert cli.words == ["--version"]


async def test_what_was_asked_is_remembered_while_the_file_is_the_same(cli: Asked) -> None:
    for _ in range(3):
        assert await cli.version() == "2.1.12"
    assert len(cli.words) == 1
    cli.becomes("2.1.325")
    assert await cli.version() == "2.1.325"
    assert len(cli.words) == 2


async def test_an_asker_that_is_cancelled_does_not_keep_the_others_from_the_answer(
    cli: Asked,
) -> None:
    first = asyncio.ensure_future(cli.version())
    await asyncio.sleep(0)
    second = asyncio.ensure_future(cli.version())
    await asyncio.sleep(0)
    first.cancel()
    assert await second == "2.1.12"
    with pytest.raises(asyncio.CancelledError):
        await first
    assert len(cli.words) == 1


def test_an_answer_that_was_waited_for_by_a_loop_that_is_gone_is_asked_again(cli: Asked) -> None:
    async def give_up() -> None:
        asking = asyncio.ensure_future(cli.version())
        await asyncio.sleep(0)
        asking.cancel()

    asyncio.run(give_up())
    assert asyncio.run(cli.version()) == "2.1.12"


@pytest.mark.parametrize("how", ["exec sleep 600", "sleep 600; true", "echo 2.1.12; sleep 600"])
async def test_a_program_that_hangs_does_not_hold_us_and_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str, how: str
) -> None:
    monkeypatch.setattr("bridle.process.version.LIMIT_SECONDS", 0.3)
    cli = Asked(tmp_path, how)
    with in_time():
        assert await cli.version() == ("2.1.12" if "echo" in how else None)
    assert await gone(marked(mark), LIMIT)


async def test_a_program_whose_child_holds_the_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    cli = Asked(tmp_path, f"sleep 600 & echo $! > '{pid}'; echo 2.1.12")
    with in_time():
        assert await cli.version() == "2.1.12"
    assert await gone([int(pid.read_text())], LIMIT)


@pytest.mark.parametrize("then", ["exit 3", "echo hello", "echo 2.1.12 >&2"])
async def test_a_program_that_tells_no_version_has_none(tmp_path: Path, then: str) -> None:
    assert await Asked(tmp_path, then).version() is None


async def test_a_command_of_several_words_is_not_asked(cli: Asked) -> None:
    found = FoundCli((cli.program, "run"), "explicit")
    assert await with_version(found, {**os.environ}) is found
    assert cli.words == []


async def test_a_version_that_is_known_is_not_asked_for(cli: Asked) -> None:
    found = FoundCli((cli.program,), "explicit", "2.0.75")
    assert await with_version(found, {**os.environ}) is found
    assert cli.words == []


async def test_a_cli_that_says_that_it_is_too_old_is_refused(tmp_path: Path) -> None:
    cli = Asked(tmp_path, "echo '1.0.3 (Claude Code)'")
    with pytest.raises(CliTooOld, match=r"1\.0\.3; Bridle needs 2\.0\.0 or newer"):
        await ChildProcess(LaunchSpec(command=[cli.program])).identify()


async def test_it_is_asked_with_the_environment_of_the_launch(tmp_path: Path) -> None:
    cli = Asked(tmp_path, 'echo "$SAYS"')
    child = ChildProcess(LaunchSpec(command=[cli.program], env={"SAYS": "2.3.4"}))
    assert child.find().version is None
    await child.identify()
    assert child.version == "2.3.4"


async def test_a_cli_that_turns_out_to_be_too_old_while_it_starts_can_be_stopped(
    tmp_path: Path, mark: str
) -> None:
    cli = Asked(tmp_path, '[ "$1" = --version ] && echo 1.0.3 || exec sleep 600')
    child, heard = ChildProcess(LaunchSpec(command=[cli.program])), Heard()
    with pytest.raises(CliTooOld):
        await child.start(heard)
    assert (await child.stop(AT_ONCE)).survivors == ()
    assert heard.endings == 1
