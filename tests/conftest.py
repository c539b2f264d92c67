"""What holds for all tests: as many examples as their level says, and no skips on CI."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import settings

from tests.levels import tries

ON_CI = bool(os.environ.get("CI"))
#: The recordings beside the repo are not a part of it: these tests alone may be skipped on CI.
MAY_SKIP = "test_transcripts.py"

settings.register_profile("bridle", max_examples=tries(100, 10_000, 100_000), deadline=None)
settings.load_profile("bridle")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if ON_CI and report.skipped and item.path.name != MAY_SKIP:
        report.outcome = "failed"
        report.longrepr = f"skipped, and on CI nothing may be: {report.longrepr}"
    return report


def pytest_configure() -> None:
    """No test reads the settings of whoever runs it. And a shell has what it runs in the background
    ignore some signals, as would all that we start."""
    os.environ["CLAUDE_CONFIG_DIR"] = os.devnull + "/claude"
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Thousands of tests are held until the end: the collector need not look at them each time,
    nor after every 700 objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)
