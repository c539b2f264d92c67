"""The piped driver waits with limits, answers what must be answered, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from bridle.errors import InvalidAnswer, KitError, TimedOut
from bridle.process.transport import StopLimits
from bridle.protocol import Allow, HookOutput, RequestReceived, RequestUnreadable
from bridle.protocol.control import Answer
from bridle.protocol.messages import Assistant
from bridle.protocol.requests import Initialize
from bridle.testing import FakeCli, InstalledCli, PipedCli, Recorder

MakeFake = Callable[..., FakeCli]
Start = Callable[..., Awaitable[PipedCli]]


async def test_what_does_not_come_is_a_timeout_with_the_last_words(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    steps = [{"stderr": "thinking hard\n"}, {"say": "Hi."}, {"prompt": True}]
    cli = await piped_cli(fake_cli(steps).command)
    with pytest.raises(
        TimedOut, match=r"did not come in 0\.3 s; its last events: Assistant; pending"
    ):
        await cli.result(limit=0.3)


async def test_a_cli_that_ends_early_is_told_at_once(fake_cli: MakeFake, piped_cli: Start) -> None:
    steps = [{"say": "Hi."}, {"stderr": "out of luck\n"}, {"exit": 9}]
    cli = await piped_cli(fake_cli(steps).command)
    with pytest.raises(KitError, match="ended before a message of type Result came"):
        await cli.result()


async def test_a_request_that_no_one_can_answer_is_refused_by_itself(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    fake = fake_cli([{"request": {"subtype": "dance"}, "id": "d"}, {"result": "danced"}])
    cli = await piped_cli(fake.command)
    await cli.result()
    assert isinstance(cli.events[0], RequestUnreadable)
    told = fake.answer_to("d")
    assert told
    assert told["subtype"] == "error"
    assert "dance" in told["error"]


async def test_a_responder_answers_at_once_and_leaves_what_it_does_not_want(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    steps = [{"ask": {"tool_name": name}} for name in ("Bash", "Read")]
    fake = fake_cli([*steps, {"result": "done"}])
    cli = await piped_cli(
        fake.command,
        respond=lambda e: Allow() if e.request.tool_name == "Bash" else None,
    )
    event = await cli.request(lambda e: e.request.tool_name == "Read")  # type: ignore[union-attr]
    cli.fail(event, "nobody is there")
    assert (await cli.result()).result == "done"


async def test_what_was_passed_over_is_named_when_it_is_waited_for(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    steps = [{"ask": {"tool_name": "Bash"}, "wait": False}, {"say": "Hi."}, {"prompt": True}]
    cli = await piped_cli(fake_cli(steps).command)
    await cli.message(Assistant)
    assert cli.said() == ["Hi."]
    with pytest.raises(TimedOut, match=r"1 such came before .*pending: CanUseTool"):
        await cli.request(limit=0.2)


@pytest.mark.parametrize("mistake", ["raises", "answers wrongly"])
async def test_what_goes_wrong_in_a_responder_comes_out_of_the_next_wait_and_denies(
    fake_cli: MakeFake, tmp_path: Path, mistake: str
) -> None:
    def respond(_: RequestReceived) -> Answer:
        if mistake == "raises":
            raise ZeroDivisionError("the responder's own")
        return HookOutput()

    fake = fake_cli([{"ask": {"tool_name": "Bash"}, "id": "q"}, {"prompt": True}])
    wrong = ZeroDivisionError if mistake == "raises" else InvalidAnswer
    cli = PipedCli(fake.command, env=dict(os.environ), cwd=tmp_path, respond=respond)
    await cli.__aenter__()
    with pytest.raises(wrong):
        await cli.result(limit=10)
    with pytest.raises(wrong):
        await cli.__aexit__(None)
    told = fake.answer_to("q")
    assert told
    assert "the responder failed" in told["error"]


async def test_a_recorder_that_can_not_write_is_told_and_not_a_silent_hang(
    fake_cli: MakeFake, tmp_path: Path
) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    fake = fake_cli([{"prompt": True}, {"say": "Hi."}])
    recorder = Recorder(tmp_path / "full")
    cli = PipedCli(fake.command, env=dict(os.environ), cwd=tmp_path, recorder=recorder)
    await cli.__aenter__()
    with recorder:
        cli.process.stdin.write(cli.connection.prompt("go"))  # type: ignore[union-attr]
        with pytest.raises(OSError, match="No space left"):
            await cli.result(limit=10)
    with pytest.raises(OSError, match="No space left"):
        await cli.__aexit__(None)
    assert cli.process.returncode == 0


async def test_what_is_wrong_with_the_pipe_hides_no_other_error(
    fake_cli: MakeFake, tmp_path: Path
) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    fake = fake_cli([{"say": "Hi."}])
    recorder = Recorder(tmp_path / "full")
    cli = PipedCli(fake.command, env=dict(os.environ), cwd=tmp_path, recorder=recorder)

    async def fail() -> None:
        async with cli:
            with recorder, pytest.raises(OSError, match="No space left"):
                await cli.result(limit=10)
            raise ValueError("the test's own")

    with pytest.raises(ValueError, match="the test's own"):
        await fail()


def spawned_by(fake: FakeCli) -> psutil.Process:
    return psutil.Process(next(e["spawned"] for e in fake.report() if "spawned" in e))


def is_gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


async def test_what_a_dead_cli_has_left_behind_is_ended(fake_cli: MakeFake, tmp_path: Path) -> None:
    fake = fake_cli([{"spawn": {"seconds": 600}}, {"die": "SIGKILL"}])
    async with PipedCli(fake.command, env=dict(os.environ), cwd=tmp_path) as cli:
        assert await cli.exit_code() == -9
        spawned = spawned_by(fake)
        assert not is_gone(spawned)
    assert is_gone(spawned)


async def test_a_cancelled_exit_still_leaves_nothing_behind(
    fake_cli: MakeFake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridle.testing.pipe.STOP", StopLimits(graceful=0.3, signal=0.2))
    fake = fake_cli([{"spawn": {"seconds": 600}}, {"stall": 600}])
    cli = PipedCli(fake.command, env=dict(os.environ), cwd=tmp_path)
    await cli.__aenter__()
    await cli.expect(lambda _: True)
    leaving = asyncio.create_task(cli.__aexit__(None))
    for _ in range(3):
        await asyncio.sleep(0)
        leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert is_gone(spawned_by(fake))
    assert not psutil.pid_exists(cli.process.pid)


async def test_leaving_does_not_wait_for_a_grandchild_that_holds_the_pipe(
    tmp_path: Path,
) -> None:
    command = ["/bin/sh", "-c", "sleep 600 & exit 0"]
    async with PipedCli(command, env=dict(os.environ), cwd=tmp_path, arguments=()):
        pass


async def test_leaving_ends_a_cli_that_does_not_end_by_itself(
    fake_cli: MakeFake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridle.testing.pipe.STOP", StopLimits(graceful=0.2, signal=0.2))
    steps = [{"spawn": {"seconds": 600}}, {"say": "Hi."}, {"stall": 600}]
    fake = fake_cli(steps)
    async with PipedCli(fake.command, env=dict(os.environ), cwd=tmp_path) as cli:
        await cli.expect(lambda _: True)
        spawned = spawned_by(fake)
        pid = cli.process.pid
    assert not psutil.pid_exists(pid)
    assert is_gone(spawned)


@pytest.mark.parametrize("command", ["claude", []])
def test_a_command_that_is_no_list_is_told(command: list[str], tmp_path: Path) -> None:
    with pytest.raises(KitError, match="a command is a list"):
        PipedCli(command, env={}, cwd=tmp_path)


async def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(KitError, match="there is no such folder"):
        await PipedCli(["true"], env={}, cwd=tmp_path / "none").__aenter__()


async def test_a_cli_that_closes_its_output_and_stays_is_told(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    cli = await piped_cli(fake_cli([{"close_stdout": True}]).command)
    with pytest.raises(TimedOut, match="closed its output and did not end"):
        await cli.exit_code(limit=0.3)


async def test_an_installed_cli_brings_its_version(fake_cli: MakeFake, piped_cli: Start) -> None:
    cli = await piped_cli(InstalledCli("2.0.75", fake_cli([]).command), flags=["--model", "x"])
    assert cli.connection.capabilities.version == "2.0.75"


async def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(KitError, match="can't start /no/such/claude: No such file"):
        async with PipedCli(["/no/such/claude"], env={}, cwd=tmp_path):
            pass


async def test_initialize_is_answered_by_a_fake_that_was_told_nothing(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    cli = await piped_cli(fake_cli([]).command)
    await cli.ask(Initialize())
    assert cli.connection.capabilities.version == "2.1.325"
