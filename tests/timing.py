"""How long work takes, on machines where others take their share without saying so."""

from __future__ import annotations

import time
from collections.abc import Callable

#: What another machine's work does to us is over after a while; what is slow is slow each time.
TRIES = 3


def quickest(work: Callable[[], object], enough: float) -> float:
    """The CPU seconds of the quickest try; the first that takes less than `enough` is the last."""
    took = []
    for _ in range(TRIES):
        start = time.process_time()
        work()
        took.append(time.process_time() - start)
        if took[-1] < enough:
            break
    return min(took)
