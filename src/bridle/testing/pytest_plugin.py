"""Fixtures of the testing kit: `pytest_plugins = ["bridle.testing.pytest_plugin"]`.

| fixture | gives |
|---|---|
| `cli_home` | an empty home for a CLI, below `tmp_path` |
| `fake_cli` | `fake_cli(steps, …)` -> a `FakeCli` that plays a scenario |
| `scripted_model` | `await scripted_model(script, …)` -> a running `ScriptedModel` |
| `real_cli` | the real CLI of `--bridle-cli VERSION`; skipped where npm is missing, not on CI |
| `piped_cli` | `await piped_cli(command, …)` -> a running `PipedCli`; stopped when the test ends |
| `recorder` | `recorder(name)` -> an open `Recorder` for a file below `tmp_path` |
| `replay` | `await replay(path)` -> a running `PipedCli` whose CLI is a recording |
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ..errors import CliUnavailable
from ..process.recording import Recorder
from ..protocol.capabilities import TESTED_VERSIONS
from .environment import cli_environment
from .fake import FakeCli
from .install import InstalledCli, install_cli
from .model import ScriptedModel
from .node import find_node
from .pipe import PipedCli
from .replay import Replay

NOWHERE = "http://127.0.0.1:9"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--bridle-cli",
        default=TESTED_VERSIONS[-1],
        metavar="VERSION",
        help="the Claude Code version for the real_cli fixture (default: %(default)s)",
    )


@pytest.fixture
def cli_home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture
def fake_cli(tmp_path: Path) -> Callable[..., FakeCli]:
    made: list[FakeCli] = []

    def make(steps: Sequence[dict[str, Any]], **settings: Any) -> FakeCli:
        made.append(FakeCli(steps, tmp_path / "fake", f"fake-{len(made)}", **settings))
        return made[-1]

    return make


@pytest_asyncio.fixture
async def scripted_model() -> AsyncIterator[Callable[..., Awaitable[ScriptedModel]]]:
    async with AsyncExitStack() as stack:

        async def start(*scripts: Any, port: int = 0) -> ScriptedModel:
            return await stack.enter_async_context(ScriptedModel(*scripts, port=port))

        yield start


@pytest.fixture
def real_cli(request: pytest.FixtureRequest) -> InstalledCli:
    try:
        return install_cli(str(request.config.getoption("--bridle-cli")))
    except CliUnavailable as error:
        if find_node() is None and not os.environ.get("CI"):
            pytest.skip(str(error))
        raise


@pytest_asyncio.fixture
async def piped_cli(
    tmp_path: Path,
    cli_home: Path,
    # These two must outlive the CLI, so they are set up before it.
    scripted_model: object,  # noqa: ARG001
    recorder: object,  # noqa: ARG001
) -> AsyncIterator[Callable[..., Awaitable[PipedCli]]]:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    async with AsyncExitStack() as stack:

        async def start(
            command: Sequence[str] | InstalledCli,
            *,
            model: ScriptedModel | None = None,
            **options: Any,
        ) -> PipedCli:
            env = model.environment(cli_home) if model else _offline(cli_home)
            settings = {"env": env, "cwd": work, **options}
            return await stack.enter_async_context(PipedCli(command, **settings))

        yield start


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Callable[[str], Recorder]]:
    with ExitStack() as stack:

        def start(name: str) -> Recorder:
            return stack.enter_context(Recorder(tmp_path / f"{name}.ndjson"))

        yield start


@pytest.fixture
def replay(
    piped_cli: Callable[..., Awaitable[PipedCli]],
) -> Callable[[Path], Awaitable[PipedCli]]:
    return lambda path: piped_cli(Replay(path).command)


def _offline(home: Path) -> dict[str, str]:
    return cli_environment(home, base_url=NOWHERE)
