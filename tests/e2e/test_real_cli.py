"""The whole way through, with the real CLI: a scripted model, one approval, one file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bridle.protocol import Allow, Deny
from bridle.protocol.content import session_id_of
from bridle.protocol.requests import Initialize
from bridle.testing import InstalledCli, PipedCli, ScriptedModel, Turn, tool_use

BASH = tool_use("Bash", command="touch t.txt && echo hi > x.txt", description="write")


@pytest.mark.parametrize(("answer", "written"), [(Allow(), True), (Deny("no"), False)])
async def test_the_decision_decides_whether_the_tool_runs(
    real_cli: InstalledCli,
    scripted_model: Callable[..., Awaitable[ScriptedModel]],
    piped_cli: Callable[..., Awaitable[PipedCli]],
    tmp_path: Path,
    answer: Allow | Deny,
    written: bool,
) -> None:
    model = await scripted_model([Turn("Running.", BASH), "Done."])
    cli = await piped_cli(real_cli.command, model=model)
    await cli.ask(Initialize())
    assert cli.connection.capabilities.version == real_cli.version
    cli.prompt("go")
    cli.answer(await cli.request(), answer)
    result = await cli.result()
    assert result.result == "Done."
    assert session_id_of(result)
    assert (tmp_path / "work" / "x.txt").exists() is written


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "last"),
    [([], "Hello from a bridled agent."), (["--deny"], "was not written")],
)
def test_the_demo_turn_shows_what_happened(
    real_cli: InstalledCli,
    flags: list[str],
    last: str,
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bridle.testing.demo", "--version", real_cli.version, *flags],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith(last)
    assert "asked whether Bash may run" in done.stdout
