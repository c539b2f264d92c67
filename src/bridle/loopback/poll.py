"""What has happened in sessions, and what they ask: given at once, or waited for.

Owns when a poll is answered and what is in the answer. It waits for changes of those sessions
alone, and costs nothing while there are none. Without a cursor it goes on where the caller was, and
moves that once it is about to answer.
"""

from __future__ import annotations

import asyncio

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import JournalClosed
from ..supervisor import SessionRecord
from ..supervisor.audience import Listener
from ..views.happenings import Happening
from .approvals import Asked, asked_of
from .arguments import Poll, Until
from .calls import NOTICE, Call, Json
from .cursors import cursor_of, places_in
from .folds import Fold, Page, Room
from .positions import Position, Span
from .refusals import Refusal
from .status import is_at_work, status_of

#: More than any answer has.
EVERYTHING = 1 << 30


class _Reader(Struct):
    """One session of a poll. `again` is what the same poll gave before."""

    session: str
    start: int
    position: Position | None
    again: Span | None
    turns: int
    room: Room


class _Seen(Struct, frozen=True):
    """How it stands: the record and what was read are of the same event."""

    record: SessionRecord
    fold: Fold
    asked: Asked


async def poll(call: Call, arguments: Poll) -> Json:
    sessions = _sessions(call, arguments)
    readers = await _readers(call, arguments, sessions)
    deadline = asyncio.get_running_loop().time() + arguments.wait_ms / 1000
    with call.supervisor.listening(sessions) as listener:
        while True:
            seen = await _looks(call, readers)
            if any(reader.again for reader in readers) or _is_due(readers, seen, arguments):
                break
            if not await _woken(call, readers, arguments.until, listener, deadline):
                seen = await _looks(call, readers)
                break
    return await _answer(call, arguments, readers, seen)


def _sessions(call: Call, arguments: Poll) -> list[str]:
    """Which are meant, each once, in the order given."""
    if arguments.from_seq is not None and arguments.cursor is not None:
        raise Refusal("invalid_arguments", "give from_seq or cursor, not both")
    if arguments.session_ids is None:
        return [call.named(arguments).id]
    if arguments.session_id is not None or arguments.name is not None:
        raise Refusal("invalid_arguments", "give session_id or session_ids, not both")
    return list(dict.fromkeys(call.below(one).id for one in arguments.session_ids))


async def _readers(call: Call, arguments: Poll, sessions: list[str]) -> list[_Reader]:
    places = places_in(arguments.cursor, sessions) if arguments.cursor is not None else {}
    readers, room = [], Room.of("normal", len(sessions))
    for session in sessions:
        position, again = None, None
        if arguments.from_seq is not None:
            start = arguments.from_seq
        elif session in places:
            start = places[session]
        else:
            position = await call.means.positions.get(session, call.caller)
            again = position.given(call.key)
            start = again.start if again else position.read
        turns = call.below(session).turns
        readers.append(_Reader(session, start, position, again, turns, room))
    return readers


# --- waiting


async def _looks(call: Call, readers: list[_Reader]) -> list[_Seen]:
    if len(readers) == 1:
        return [await _look(call, readers[0])]
    return await asyncio.gather(*(_look(call, reader) for reader in readers))


async def _look(call: Call, reader: _Reader) -> _Seen:
    record, fold = await call.looked(reader.session)
    return _Seen(record, fold, await asked_of(call, record, reader.room))


def _is_due(readers: list[_Reader], seen: list[_Seen], arguments: Poll) -> bool:
    """Whether there is what was waited for, or nothing more to wait for."""
    if not any(is_at_work(one.record) for one in seen):
        return True
    pairs = list(zip(readers, seen, strict=True))
    if arguments.until == "any":
        return any(one.fold.tail.count > reader.start for reader, one in pairs)
    has_ended = any(one.fold.tail.ended >= reader.start for reader, one in pairs)
    return has_ended or any(one.asked.is_callers for one in seen)


async def _woken(
    call: Call, readers: list[_Reader], until: Until, listener: Listener, deadline: float
) -> bool:
    """Until there may be what is waited for; False when the time is up.

    While agents work there are changes all the time: what is not waited for costs a look at the
    record, and nothing is read.
    """
    try:
        async with asyncio.timeout_at(deadline):
            while True:
                await listener.heard()
                if until == "any" or any(_may_be_due(call, reader) for reader in readers):
                    return True
    except TimeoutError:
        return False
    except JournalClosed:
        raise Refusal("unavailable", "the server is closing; call it again in a moment") from None


def _may_be_due(call: Call, reader: _Reader) -> bool:
    record = call.below(reader.session)
    return bool(record.approvals) or record.turns != reader.turns or not is_at_work(record)


# --- answering


async def _answer(call: Call, arguments: Poll, readers: list[_Reader], seen: list[_Seen]) -> Json:
    room = Room.of(arguments.detail, len(readers))
    told, places = [], {}
    for reader, one in zip(readers, seen, strict=True):
        start, limit = min(reader.start, one.fold.tail.count), arguments.limit
        left = replace(room, all=room.all - len(msgspec.json.encode(one.asked.shown)))
        if reader.again:  # all that it gave before, whatever is asked meanwhile
            limit, left = reader.again.end - start, replace(room, all=EVERYTHING)
        page = await one.fold.read(start, limit, arguments.detail, left)
        if reader.position is not None and not reader.again and page.found:
            span = Span(call.key, page.start, page.end)
            state = one.fold.kept(page.end)
            await call.means.positions.advance(reader.session, call.caller, span, state)
        told.append(_one(reader, one, page))
        places[reader.session] = page.end
    if arguments.session_ids is None:
        return {"type": "ok", **told[0], "cursor": cursor_of(places), "notice": NOTICE}
    return {"type": "ok", "sessions": told, "cursor": cursor_of(places), "notice": NOTICE}


def _one(reader: _Reader, seen: _Seen, page: Page) -> Json:
    record, total = seen.record, seen.fold.tail.count
    position = reader.position.read if reader.position else None
    return {
        "session_id": record.id,
        "name": record.name,
        "status": status_of(record),
        "state": record.state,
        "events": [_event(number, one) for number, one in enumerate(page.found, page.start)],
        "pending_approvals": seen.asked.shown,
        "more_pending": seen.asked.left_out,
        "waiting_for_others": seen.asked.waits_for_others,
        "read_position": page.end if position is None else max(position, page.end),
        "total_events": total,
        "has_more": page.end < total,
    }


def _event(number: int, happening: Happening) -> Json:
    return {"seq": number, "event": msgspec.to_builtins(happening)}
