"""Of what we read, a real shell runs nothing that we did not see."""

from __future__ import annotations

import shutil

import pytest

from bridle.policy.shell.reader import Reader
from tests.conftest import ON_CI
from tests.levels import tries

from .fuzz import Report, fuzz

pytestmark = pytest.mark.timeout(3_000)


def assert_nothing_missed(report: Report) -> None:
    print(report)  # noqa: T201 - the figures are wanted with -s
    assert not report.missed, str(report)
    # A fuzz that runs nothing finds nothing.
    assert report.accepted >= report.generated / 4, str(report)
    assert report.ran >= report.accepted / 2, str(report)
    assert report.unfinished <= max(3, report.accepted / 500), str(report)


@pytest.mark.deeper
def test_bash_runs_nothing_that_was_not_seen() -> None:
    assert_nothing_missed(fuzz(tries(100, 20_000, 1_000_000), seed=5_000_000))


@pytest.mark.slow
def test_what_wrappers_and_inner_shells_run_was_seen() -> None:
    assert_nothing_missed(fuzz(tries(400, 1_500, 50_000), seed=6_000_000, has_wrappers=True))


#: dash has no limit for functions that call themselves: it takes its time.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("shell", "count"), [("dash", tries(200, 500, 10_000)), ("zsh", tries(200, 5_000, 200_000))]
)
def test_another_shell_runs_nothing_that_was_not_seen(shell: str, count: int) -> None:
    if not ON_CI and not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    assert_nothing_missed(fuzz(count, seed=7_000_000, shell=shell))


def _skip_inner(_reader: Reader, _text: str) -> None:
    """A reader that does not look into backticks."""


def _skip_expansions(_reader: Reader) -> None:
    """A reader that does not look into the bodies of heredocs."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "hole"), [("read_inner", _skip_inner), ("expansions", _skip_expansions)]
)
def test_the_fuzz_finds_a_hole_that_is_made_on_purpose(
    name: str, hole: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Beside the reader as it is: a miss of its own must not pass for the one made here.
    as_it_is = fuzz(600, seed=5_000_000, most_misses=600)
    monkeypatch.setattr(Reader, name, hole)
    with_a_hole = fuzz(600, seed=5_000_000, most_misses=600)
    assert set(with_a_hole.missed) - set(as_it_is.missed)
