"""What ends: a turn, a process, a session. Descendants alone do, and once for each call."""

from __future__ import annotations

import time
from contextlib import suppress

from ..errors import NotPossible, UnknownSession
from ..supervisor.states import ENDED
from .arguments import OneSession, Stop
from .calls import Call, Json
from .intents import Intent
from .status import status_of
from .telling import INTERRUPT_SECONDS


async def interrupt(call: Call, arguments: OneSession) -> Json:
    """End the turn that runs; a call that is repeated ends no later one."""
    record, name = call.named(arguments), call.id()
    intent = await call.means.intents.get(name)
    was_running = intent is None or intent.turns == record.turns
    if intent is None:
        intent = Intent(session=record.id, at=time.time(), turns=record.turns)
        await call.means.intents.begin(name, intent)
    if was_running:
        try:
            await call.supervisor.interrupt(record.id, timeout=INTERRUPT_SECONDS)
        except NotPossible:
            was_running = False  # there is nothing to interrupt
    return {"type": "ok", "session_id": record.id, "was_running": was_running}


async def stop(call: Call, arguments: Stop) -> Json:
    """End its process and all below it."""
    record = call.named(arguments)
    if record.state not in ENDED:
        with suppress(NotPossible):  # it has just ended by itself
            await call.supervisor.stop(record.id, by=call.by, words=arguments.why)
    now = call.below(record.id)
    return {"type": "ok", "session_id": now.id, "status": status_of(now), "state": now.state}


async def delete(call: Call, arguments: OneSession) -> Json:
    """Forget it, with all that was written down of it."""
    name = call.id("delete")
    intent = await call.means.intents.get(name)
    if intent is None:
        record = call.named(arguments)
        intent = Intent(session=record.id, at=time.time())
        await call.means.intents.begin(name, intent)
    with suppress(UnknownSession):  # the same call has deleted it before
        call.supervisor.get(intent.session)
        # It may have been handed to somebody else since.
        await call.supervisor.delete(call.below(intent.session).id)
    return {"type": "ok", "session_id": intent.session}
