"""The fixtures work in a project that has nothing of Bridle's but the plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridle.testing import pytest_plugin

CONFTEST = 'pytest_plugins = ["bridle.testing.pytest_plugin"]\n'
INI = "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
TESTS = """
from bridle.protocol.requests import Initialize
from bridle.testing import load_recording


async def test_fake(fake_cli, piped_cli, recorder, tmp_path):
    fake = fake_cli([{"prompt": "go"}, {"result": "Done."}])
    cli = await piped_cli(fake.command, recorder=recorder("wire"))
    cli.prompt("go")
    assert (await cli.result()).result == "Done."
    cli.close_stdin()
    assert await cli.exit_code() == 0
    assert len(load_recording(tmp_path / "wire.ndjson")) == 4


async def test_replay(replay, recorder):
    with recorder("wire") as wire:
        wire.received(b'{"type":"result","subtype":"success","is_error":false,"result":"Hi."}\\n')
    cli = await replay(wire.path)
    assert (await cli.result()).result == "Hi."


async def test_model(scripted_model, cli_home):
    model = await scripted_model(["Hello."])
    assert model.environment(cli_home)["HOME"] == str(cli_home)


def test_version(request):
    assert request.config.getoption("--bridle-cli") == "2.0.75"


def test_real(real_cli):
    raise AssertionError("there is no npm: this must be skipped")
"""


@pytest.mark.slow
def test_the_fixtures_work_for_users_and_a_missing_npm_skips_with_one_clear_line(
    tmp_path: Path,
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text(INI)
    (tmp_path / "test_it.py").write_text(TESTS)
    env = {key: value for key, value in os.environ.items() if key != "CI"}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rs",
            "-p",
            "no:cacheprovider",
            "--bridle-cli=2.0.75",
        ],
        cwd=tmp_path,
        env={**env, "PATH": str(tmp_path), "BRIDLE_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "4 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "npm is not installed" in done.stdout


def test_every_fixture_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
    rows = [line for line in (pytest_plugin.__doc__ or "").splitlines() if line.startswith("| `")]
    assert len(rows) == 7
    for row in rows:
        assert row.split(" | ")[0] in page
