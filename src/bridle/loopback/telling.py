"""What agents tell those below them: at once, after what they do now, or in place of it.

Owns that each call tells it once, also when the answer was lost and its turn is over since; and
that nobody waits for an agent that waits for them.
"""

from __future__ import annotations

import time

from msgspec import Struct

from ..errors import NotPossible
from ..supervisor import SessionRecord
from ..supervisor.states import ENDED
from ..views import stream
from .arguments import Chat
from .calls import AGENT, Call, Json
from .cursors import cursor_of
from .folds import PAGE
from .intents import Intent, name_of
from .refusals import Refusal
from .results import result_of
from .status import is_at_work

#: How long a turn that is interrupted has to end.
INTERRUPT_SECONDS = 30.0
_HELD_BY: dict[stream.PauseCause, str] = {
    "budget": "a limit of its own, or of one above it, is used up",
    "person": "a person holds it",
    "disk": "the disk is nearly full",
}


class _Told(Struct, frozen=True):
    record: SessionRecord
    turn: str
    count: int


async def chat_async(call: Call, arguments: Chat) -> Json:
    told = await _tell(call, call.named(arguments), arguments)
    return {
        "type": "started",
        "session_id": told.record.id,
        "turn_id": told.turn,
        "cursor": cursor_of({told.record.id: told.count}),
    }


async def chat(call: Call, arguments: Chat) -> Json:
    """Tell it, and wait for what comes of it."""
    record = call.named(arguments)
    if record.asks_above:
        words = (
            "it may ask you before it goes on, and you could not answer while you wait for it: use "
            "claudecode_chat_async, then claudecode_poll (or create it with loopback_enabled=false)"
        )
        raise Refusal("would_deadlock", words)
    told = await _tell(call, record, arguments)
    await _turn_over(call, told)
    return await result_of(call, told.record.id, "normal")


async def _turn_over(call: Call, told: _Told) -> None:
    with call.supervisor.listening([told.record.id]) as listener:
        while True:
            record = call.below(told.record.id)
            waits = told.turn in record.unanswered or any(
                one.uuid == told.turn for one in record.waiting
            )
            # Its record has the prompt since it was told: without it the turn has ended.
            if not waits or not is_at_work(record):
                return
            await listener.heard()


async def _tell(call: Call, record: SessionRecord, arguments: Chat) -> _Told:
    key = arguments.idempotency_key
    name = name_of(call.caller, record.id, "key", key) if key else call.id(record.id)
    async with call.means.intents.turn(name):
        intent = await call.means.intents.get(name)
        if intent and await _is_told(call, intent, name):
            return _Told(record, name, intent.count)
        if arguments.on_busy != "queue":
            _check_held(record)
        if is_at_work(record):
            await _make_way(call, record, arguments)
        record, fold = await call.looked(record.id)
        count = intent.count if intent else fold.tail.count
        if intent is None:
            intent = Intent(session=record.id, at=time.time(), seq=record.seq, count=count)
            await call.means.intents.begin(name, intent)
        await _awake(call, record)
        # What an agent may not read it must not have another one read for it.
        await call.supervisor.send(
            record.id, arguments.prompt, by=call.by, uuid=name, is_verbatim=True
        )
        last = (await call.supervisor.journal.log.info(record.id)).last_seq
        await call.supervisor.wait(record.id, lambda now: now.seq >= last)
        return _Told(record, name, count)


async def _is_told(call: Call, intent: Intent, uuid: str) -> bool:
    """Whether its stream has the prompt, after where it ended when it was first to be told."""
    after, log = intent.seq, call.supervisor.journal.log
    while events := await log.read(intent.session, after, PAGE):
        for event in events:
            if event.kind == stream.PROMPTED and f'"uuid":"{uuid}"'.encode() in event.body[:100]:
                return True
        after = events[-1].seq
    return False


async def _make_way(call: Call, record: SessionRecord, arguments: Chat) -> None:
    match arguments.on_busy:
        case "error":
            words = (
                "it is still at work: poll it until its turn is over, or call again with on_busy "
                "'queue' or 'interrupt'"
            )
            raise Refusal("busy", words)
        case "interrupt":
            try:
                await call.supervisor.interrupt(record.id, timeout=INTERRUPT_SECONDS)
            except NotPossible:
                return  # its turn has just ended, or has not begun
        case "queue":
            return


def _check_held(record: SessionRecord) -> None:
    """Who is told something and is let do nothing looks busy, and would be polled for ever."""
    if record.state == "paused":
        causes = [_HELD_BY[cause] for cause in record.facts.pauses]
        words = (
            f"it is paused: {', '.join(causes)}; a person lets it go on ('bridle set', 'bridle "
            "unpause'). With on_busy 'queue' it is told when it goes on"
        )
        raise Refusal("not_possible", words)


async def _awake(call: Call, record: SessionRecord) -> None:
    """One that has ended goes on where it was."""
    if record.state not in ENDED:
        return
    if record.stopped_by and not record.stopped_by.startswith(AGENT):
        words = "a person has stopped it, and only a person starts it again: leave it, or ask them"
        raise Refusal("stopped_by_person", words)
    if record.claude_session_id:
        await call.supervisor.resume(record.id)
    else:
        await call.supervisor.start(record.id)
