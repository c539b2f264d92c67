"""What work costs, counted instead of timed: the same on every machine, whatever else it does."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

T = TypeVar("T")


class TooMany(Exception):
    """More operations than it may take."""


def operations(work: Callable[[], object], most: float = float("inf")) -> int:
    """How many functions it calls, those written in C too. TooMany ends it soon."""
    count = 0

    def profile(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")
        if count > most:
            sys.setprofile(None)
            raise TooMany(f"more than {most} operations")

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def grows_as_its_size(work: Callable[[T], object], small: T, large: T) -> bool:
    """Whether ten times as much takes about ten times as long, and not a hundred times.

    For what one function written in C does alone, which can't be counted: both are timed in one
    run, in time of the processor.
    """
    return _seconds(work, large) < 40 * max(_seconds(work, small), 0.002)


def _seconds(work: Callable[[T], object], on: T) -> float:
    took = []
    for _ in range(2):
        start = time.process_time()
        work(on)
        took.append(time.process_time() - start)
    return min(took)
