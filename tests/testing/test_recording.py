"""Recordings keep the wire exactly, and are played back by a CLI that checks what it is sent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bridle.errors import InvalidScript
from bridle.protocol import Allow, Deny
from bridle.protocol.events import LineMalformed
from bridle.protocol.requests import Initialize, McpStatus
from bridle.testing import FakeCli, PipedCli, Recorder, Replay, load_recording

MakeFake = Callable[..., FakeCli]
Start = Callable[..., Awaitable[PipedCli]]

STEPS = [
    {"prompt": True},
    {"init": {}},
    {"ask": {"tool_name": "Bash", "input": {"command": "ls"}}, "id": "q"},
    {"stderr": "a warning\n"},
    {"raw": "not json \\ud800\n"},
    {"result": "Done."},
]
PROMPT_ID = "00000000-0000-4000-8000-00000000000f"


async def converse(cli: PipedCli, answer: Allow | Deny, prompt: str = "go") -> None:
    await cli.ask(Initialize())
    cli.prompt(prompt, uuid=PROMPT_ID)
    cli.answer(await cli.request(), answer)
    assert (await cli.result()).result == "Done."
    await cli.ask(McpStatus())
    cli.close_stdin()
    assert await cli.exit_code() == 0


@pytest.fixture
async def recording(fake_cli: MakeFake, tmp_path: Path) -> Path:
    path = tmp_path / "wire.ndjson"
    fake = fake_cli(STEPS)
    with Recorder(path) as recorder:
        async with PipedCli(fake.command, env={}, cwd=tmp_path, recorder=recorder) as cli:
            await converse(cli, Allow())
    return path


async def test_a_recording_has_direction_time_and_every_line(recording: Path) -> None:
    entries = load_recording(recording)
    assert [entry.t for entry in entries] == sorted(entry.t for entry in entries)
    wire = [entry.dir for entry in entries if entry.dir in ("in", "out")]
    assert wire == ["in", "out", "in", "out", "out", "in", "out", "out", "out", "in", "out"]
    assert b"not json \\ud800" in [entry.line for entry in entries]
    assert entries[-1].value() == {"exit": 0}
    assert [e.value() for e in entries if e.dir == "err"] == ["a warning\n"]


async def test_a_recording_is_played_back_to_a_controller_that_says_the_same(
    recording: Path, piped_cli: Start
) -> None:
    cli = await piped_cli(Replay(recording).command)
    await converse(cli, Allow())
    assert "a warning" in cli.stderr
    assert [e for e in cli.events if isinstance(e, LineMalformed)]


async def test_another_answer_than_the_recorded_one_is_told_and_ends_it(
    recording: Path, piped_cli: Start
) -> None:
    cli = await piped_cli(Replay(recording).command)
    await cli.ask(Initialize())
    cli.prompt("go", uuid=PROMPT_ID)
    cli.answer(await cli.request(), Deny("no"))
    assert await cli.exit_code() == 3
    assert "expected " in cli.stderr
    assert "was sent " in cli.stderr
    assert '"behavior":"deny"' in cli.stderr


async def test_silence_where_something_was_due_is_told(recording: Path, piped_cli: Start) -> None:
    cli = await piped_cli(Replay(recording).command)
    await cli.ask(Initialize())
    cli.close_stdin()
    assert await cli.exit_code() == 3
    assert "stdin was closed where" in cli.stderr


async def test_more_than_was_recorded_is_told(recording: Path, piped_cli: Start) -> None:
    cli = await piped_cli(Replay(recording).command)
    await cli.ask(Initialize())
    cli.prompt("go", uuid=PROMPT_ID)
    cli.answer(await cli.request(), Allow())
    await cli.result()
    await cli.ask(McpStatus())
    cli.prompt("and another thing")
    assert await cli.exit_code() == 3
    assert "where nothing was due" in cli.stderr


def test_what_is_not_a_recording_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.ndjson"
    path.write_text('{"t": 0, "dir": "out", "msg": {}}\n\n{"t": 0, "dir": "sideways"}\n')
    with pytest.raises(InvalidScript, match="line 3: not a recording"):
        Replay(path)
    with pytest.raises(InvalidScript, match="can't read the recording"):
        load_recording(tmp_path / "none")


@pytest.mark.parametrize(
    ("arguments", "why"), [([], "give it a recording"), (["none.ndjson"], "can't read")]
)
def test_a_wrong_start_of_the_replayer_is_one_clear_line(arguments: list[str], why: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bridle.testing.replay", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert why in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_recorder_that_is_not_open_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidScript, match="is not open"):
        Recorder(tmp_path / "x").note("too early")
