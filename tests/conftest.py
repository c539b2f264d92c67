"""How hard the tests try: many examples and no skips on CI, few examples while developing."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator

import pytest
from hypothesis import settings

ON_CI = bool(os.environ.get("CI"))
#: The recordings beside the repo are not a part of it: these tests alone may be skipped on CI.
MAY_SKIP = "test_transcripts.py"

settings.register_profile("ci", max_examples=10_000, deadline=None)
settings.register_profile("dev", max_examples=200, deadline=None)
settings.load_profile("ci" if ON_CI else "dev")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if ON_CI and report.skipped and item.path.name != MAY_SKIP:
        report.outcome = "failed"
        report.longrepr = f"skipped, and on CI nothing may be: {report.longrepr}"
    return report


def pytest_collection_finish() -> None:
    """Thousands of tests are held until the end: the collector need not look at them each time."""
    gc.collect()
    gc.freeze()
