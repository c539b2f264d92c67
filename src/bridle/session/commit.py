"""The seams between a session and its CLI: in the library there is nothing in between.

`commit(batch, then)` makes what the CLI said durable and then calls `then(batch, None)`; where it
can't, it calls `then(batch, error)`. In the order of the batches, each once, now or later. Under a
supervisor it is the journal. The way out is `send` (see `outgoing`). `begin` is waited for before a
handler is called that may change something: it is then not called again for the same request,
whatever happens to us meanwhile. `halt` ends the agent at once: something ran that nobody allowed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from ..protocol.events import Event
from .outgoing import Send

Batch: TypeAlias = Sequence[Event]
Then: TypeAlias = Callable[[Batch, BaseException | None], None]
Commit: TypeAlias = Callable[[Batch, Then], None]
Begin: TypeAlias = Callable[[str], Awaitable[None]]


def at_once(batch: Batch, then: Then) -> None:
    """Nothing to make durable."""
    then(batch, None)


class Seams(Struct, frozen=True):
    """What stands between a session and its CLI; without `send` the transport itself."""

    commit: Commit = at_once
    send: Send | None = None
    begin: Begin | None = None
    halt: Callable[[str], None] | None = None


NOTHING_BETWEEN = Seams()
