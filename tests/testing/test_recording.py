"""Recordings keep the wire exactly, and are played back by a CLI that checks what it is sent."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

import pytest
from msgspec import UNSET, UnsetType

from bridle.errors import InvalidScript
from bridle.protocol import Allow, Deny
from bridle.protocol.events import LineMalformed
from bridle.protocol.hooks import HookMatcher
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


async def test_what_depends_on_the_version_of_a_cli_may_be_left_out_when_it_is_played_back(
    fake_cli: MakeFake, tmp_path: Path, piped_cli: Start
) -> None:
    def hello(tool: str, on_failure: Literal["block"] | UnsetType = UNSET) -> Initialize:
        matchers = [HookMatcher(["h1"], tool, 5.0, on_failure), HookMatcher(["h2"])]
        return Initialize(hooks={"PreToolUse": matchers})

    path = tmp_path / "wire.ndjson"
    with Recorder(path) as recorder:
        fake = fake_cli([{"prompt": True}, {"init": {}}, {"result": "Done."}])
        async with PipedCli(fake.command, env={}, cwd=tmp_path, recorder=recorder) as cli:
            await cli.ask(hello("Bash", "block"))
            cli.prompt("go", uuid=PROMPT_ID)
            await cli.result()
    again = await piped_cli(Replay(path).command)
    await again.ask(hello("Bash"))
    again.prompt("go", uuid=PROMPT_ID)
    assert (await again.result()).result == "Done."
    other = await piped_cli(Replay(path).command)
    asking = asyncio.ensure_future(other.ask(hello("Edit")))
    assert await other.exit_code() == 3
    await asyncio.wait([asking])
    assert asking.exception()


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


async def test_a_crash_is_played_back_as_it_was(
    fake_cli: MakeFake, tmp_path: Path, piped_cli: Start
) -> None:
    fake = fake_cli([{"say": "Hi."}, {"raw": '{"type":"as'}, {"die": "SIGKILL"}])
    with Recorder(str(tmp_path / "crash.ndjson")) as recorder:
        async with PipedCli(fake.command, env={}, cwd=tmp_path, recorder=recorder) as cli:
            assert await cli.exit_code() == -9
    assert [entry.torn for entry in load_recording(recorder.path) if entry.dir == "out"] == [
        False,
        True,
    ]
    again = await piped_cli(Replay(str(recorder.path)).command)
    assert await again.exit_code() == -9
    assert [e.raw for e in again.events[:-1]] == [e.raw for e in cli.events[:-1]]  # type: ignore[union-attr]


async def test_lines_of_any_length_and_with_cr_inside_are_recorded(tmp_path: Path) -> None:
    with Recorder(tmp_path / "odd.ndjson") as recorder:
        recorder.received(b'{"type":"x",\r"a":1}\n{"half')
        recorder.received(b'":"' + b"x" * 100_000 + b'"}\n')
    first, second = load_recording(recorder.path)
    assert first.line == b'{"type":"x",\r"a":1}'
    assert len(second.line) > 100_000
    recorder.close()


def test_a_line_without_its_newline_is_kept_of_both_sides_when_a_recording_ends(
    tmp_path: Path,
) -> None:
    with Recorder(tmp_path / "torn.ndjson") as recorder:
        recorder.sent(b'{"a":1}\n{"sent')
        recorder.received(b'{"b":2}\n{"received')
    assert [(entry.dir, entry.line, entry.torn) for entry in load_recording(recorder.path)] == [
        ("in", b'{"a":1}', False),
        ("out", b'{"b":2}', False),
        ("in", b'{"sent', True),
        ("out", b'{"received', True),
    ]


async def test_another_id_than_the_learnt_one_is_told(tmp_path: Path, piped_cli: Start) -> None:
    ask = {"type": "control_request", "request_id": "req_1_old", "request": {"subtype": "x"}}
    take_back = {"type": "control_cancel_request", "request_id": "req_1_old"}
    with Recorder(tmp_path / "ids.ndjson") as recorder:
        for message in (ask, take_back):
            recorder.sent(json.dumps(message).encode() + b"\n")
    for id_, code in (("req_1_new", 0), ("req_9_wrong", 3)):
        cli = await piped_cli(Replay(recorder.path).command)
        for message, its_id in ((ask, "req_1_new"), (take_back, id_)):
            cli.write(json.dumps({**message, "request_id": its_id}).encode() + b"\n")
        cli.close_stdin()
        assert await cli.exit_code() == code


def test_a_place_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidScript, match="can't record to"):
        Recorder(tmp_path / "file" / "x").__enter__()


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


def test_blank_lines_in_a_recording_mean_nothing(tmp_path: Path) -> None:
    path = tmp_path / "wire.ndjson"
    path.write_text(
        '\n{"t": 0, "dir": "out", "msg": {"a": 1}}\n  \n{"t": 1, "dir": "err", "msg": ""}\n'
    )
    assert [(entry.t, entry.dir) for entry in load_recording(path)] == [(0, "out"), (1, "err")]


@pytest.mark.parametrize("code", [0, 4])
async def test_a_cli_that_ended_by_itself_does_so_again_with_its_code(
    tmp_path: Path, piped_cli: Start, code: int
) -> None:
    path = tmp_path / "wire.ndjson"
    lines = [
        {"t": 0, "dir": "out", "msg": {"type": "keep_alive"}},
        {"t": 1, "dir": "note", "msg": "just a word"},
        {"t": 2, "dir": "note", "msg": {"exit": code}},
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    cli = await piped_cli(Replay(path).command)
    # Its stdin is open all the time.
    assert await cli.exit_code() == code
