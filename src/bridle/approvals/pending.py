"""An approval that waits: as the log has it, and what is on its way to the log."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from .fold import status_after
from .model import Approval, Ending, Requested


class Pending:
    """In memory while it is pending, and no longer."""

    __slots__ = ("approval", "askers", "claim", "ending", "error", "over", "stored", "told")

    def __init__(self, requested: Requested) -> None:
        loop = asyncio.get_running_loop()
        facts = {name: getattr(requested, name) for name in Requested.__struct_fields__}
        #: As it is in the log, cut where it is large.
        self.approval = Approval(**facts)
        #: That it is asked is in the log. Before that nobody may see it.
        self.stored: asyncio.Future[None] = loop.create_future()
        #: Who waits to tell the agent; the last to leave withdraws it.
        self.askers = 0
        #: An end is on its way to the log: until that has said yes or no, no other may go there.
        self.claim: asyncio.Future[None] | None = None
        #: An end that holds whatever the log says: nobody may decide any more.
        self.ending: Ending | None = None
        self.error: BaseException | None = None  # why it could not be asked
        #: What the agent is to be told. Only a no may come before its event is stored.
        self.told: asyncio.Future[Approval] = loop.create_future()
        #: How it ended.
        self.over: asyncio.Future[Approval] = loop.create_future()

    @property
    def is_visible(self) -> bool:
        return self.stored.done() and self.error is None

    @property
    def as_told(self) -> Approval:
        """With the end that holds already, whether the log has it or not."""
        if self.ending is None:
            return self.approval
        return replace(self.approval, status=status_after(self.ending), ending=self.ending)

    def tell(self, approval: Approval) -> None:
        if not self.told.done():
            self.told.set_result(approval)

    def end(self, approval: Approval) -> None:
        self.tell(approval)
        if not self.over.done():
            self.over.set_result(approval)

    def fail(self, error: BaseException) -> None:
        """Those who wait get the error."""
        self.error = error
        for future in (self.stored, self.told, self.over):
            if not future.done():
                future.set_exception(error)
                future.exception()  # that nobody waits is no mistake
