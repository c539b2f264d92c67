"""The piped driver waits with limits, answers what must be answered, and leaves nothing behind."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from bridle.errors import KitError
from bridle.protocol import Allow, RequestUnreadable
from bridle.protocol.requests import Initialize
from bridle.testing import FakeCli, PipedCli, Timeout

MakeFake = Callable[..., FakeCli]
Start = Callable[..., Awaitable[PipedCli]]


async def test_what_does_not_come_is_a_timeout_with_the_last_words(
    fake_cli: MakeFake, piped_cli: Start
) -> None:
    steps = [{"stderr": "thinking hard\n"}, {"say": "Hi."}, {"prompt": True}]
    cli = await piped_cli(fake_cli(steps).command)
    with pytest.raises(Timeout, match=r"did not come in 0\.3 s; its last events: MessageReceived"):
        await cli.result(limit=0.3)


async def test_a_cli_that_ends_early_is_told_at_once(fake_cli: MakeFake, piped_cli: Start) -> None:
    cli = await piped_cli(fake_cli([{"stderr": "out of luck\n"}, {"exit": 9}]).command)
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


async def test_leaving_ends_a_cli_that_does_not_end_by_itself(
    fake_cli: MakeFake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridle.testing.pipe.EXIT_SECONDS", 0.2)
    steps = [{"spawn": {"seconds": 600}}, {"say": "Hi."}, {"stall": 600}]
    fake = fake_cli(steps)
    async with PipedCli(fake.command, env=dict(os.environ), cwd=tmp_path) as cli:
        await cli.expect(lambda _: True)
        spawned = psutil.Process(next(e["spawned"] for e in fake.report() if "spawned" in e))
        pid = cli.process.pid
    assert not psutil.pid_exists(pid)
    assert not spawned.is_running() or spawned.status() == psutil.STATUS_ZOMBIE


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
