"""The recorder that stands between a controller and its CLI changes nothing and misses nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bridle.protocol import Allow
from bridle.protocol.requests import Initialize
from bridle.testing import FakeCli, PipedCli, Replay, load_recording

MakeFake = Callable[..., FakeCli]
Start = Callable[..., Awaitable[PipedCli]]
RECORD = [sys.executable, "-m", "bridle.testing.record"]


async def converse(cli: PipedCli) -> None:
    await cli.ask(Initialize())
    cli.prompt("go")
    cli.answer(await cli.request(), Allow())
    assert (await cli.result()).result == "Done."
    cli.close_stdin()
    assert await cli.exit_code() == 0


async def test_what_passes_is_recorded_and_can_be_played_back(
    fake_cli: MakeFake, piped_cli: Start, tmp_path: Path
) -> None:
    ask = {"ask": {"tool_name": "Bash", "input": {"command": "ls"}}}
    fake = fake_cli([{"prompt": True}, ask, {"stderr": "oh\n"}, {"result": "Done."}])
    path = tmp_path / "tee.ndjson"
    cli = await piped_cli([*RECORD, str(path), "--", *fake.command])
    await converse(cli)
    assert cli.stderr == "oh\n"
    assert [e.dir for e in load_recording(path)].count("in") == len(fake.told()) == 3
    await converse(await piped_cli(Replay(path).command))


async def test_signals_are_passed_on(fake_cli: MakeFake, piped_cli: Start, tmp_path: Path) -> None:
    path = tmp_path / "killed.ndjson"
    fake = fake_cli([{"say": "Hi."}, {"stall": 600}])
    cli = await piped_cli([*RECORD, str(path), "--", *fake.command])
    await cli.expect(lambda _: True)
    cli.signal(signal.SIGTERM)
    assert await cli.exit_code() == -signal.SIGTERM
    assert load_recording(path)[-1].value() == {"exit": -15}


async def test_it_ends_as_the_cli_does_in_the_middle_of_a_line_too(
    fake_cli: MakeFake, piped_cli: Start, tmp_path: Path
) -> None:
    path = tmp_path / "torn.ndjson"
    fake = fake_cli([{"say": "Hi."}, {"raw": '{"half'}, {"die": "SIGKILL"}])
    cli = await piped_cli([*RECORD, str(path), "--", *fake.command])
    assert await cli.exit_code() == -signal.SIGKILL
    entries = load_recording(path)
    assert [entry.torn for entry in entries if entry.dir == "out"] == [False, True]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "usage: "),
        (["wire.ndjson", "claude"], "usage: "),
        (["/dev/null/x", "--", "true"], "can't record to"),
        (["wire.ndjson", "--", "/no/such/claude"], "can't start /no/such/claude: No such file"),
    ],
)
def test_a_wrong_start_is_one_clear_line(arguments: list[str], why: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [*RECORD, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
