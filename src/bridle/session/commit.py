"""The one seam between what the CLI said and what is done about it.

`commit(batch, then)` makes a batch durable and then calls `then(batch, None)`; where it can't, it
calls `then(batch, error)`. In the order of the batches, each once, now or later. In the library
there is nothing to make durable; under a supervisor it is the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..protocol.events import Event

Batch: TypeAlias = Sequence[Event]
Then: TypeAlias = Callable[[Batch, BaseException | None], None]
Commit: TypeAlias = Callable[[Batch, Then], None]


def at_once(batch: Batch, then: Then) -> None:
    """Nothing to make durable."""
    then(batch, None)
