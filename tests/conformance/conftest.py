"""Every scenario runs against every tested version; what it saw is kept for the report."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bridle.errors import CliUnavailable
from bridle.testing.node import find_node

from .lab import Lab
from .report import RESULTS, Sighting
from .versions import ALL


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", type=Path, help="keep the wire of every scenario in this folder")


def pytest_itemcollected(item: pytest.Item) -> None:
    """A real CLI takes its time."""
    item.add_marker("slow")


@pytest.fixture(params=ALL)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def lab(
    version: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> Iterator[Lab]:
    try:
        lab = Lab(version, tmp_path, request.config.getoption("--record"))
    except CliUnavailable as error:
        if find_node() is None and not os.environ.get("CI"):
            pytest.skip(str(error))
        raise
    yield lab
    lost = [r.getMessage() for r in caplog.get_records("call") if "could not route" in r.message]
    assert lost == []
    assert isinstance(request.node, pytest.Function)
    title = (request.node.function.__doc__ or "").strip()
    assert title, "a scenario's docstring is its title in the report"
    area = (request.node.module.__doc__ or "").splitlines()[0]
    name = request.node.function.__name__
    passed = not getattr(request.node, "failed", False)
    sighting = Sighting(area, name, title, version, passed, lab.observations, lab.by_session)
    folder = RESULTS / version
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_bytes(msgspec.json.encode(sighting))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if report.failed:  # type: ignore[attr-defined]
        item.failed = True  # type: ignore[attr-defined]
    return report
