"""Events of a session, as a page or as a stream; one of them, whole; the stream of everything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from litestar import Response, get
from litestar.params import FromPath
from litestar.response import Stream
from msgspec import Raw

from ...journal import Event
from ...journal.events import MAX_SEQ
from ..access import HttpRequest, takes
from ..house import House, TheHouse
from ..problems import Problem
from ..shapes.events import EventView
from ..shapes.pages import Page
from ..shown import JSON, Reveal, answered
from ..streams.asking import (
    After,
    Kinds,
    LastEventId,
    Limit,
    Live,
    cursor_of,
    is_stream,
    place_in,
    want_of,
)
from ..streams.frames import view_of
from ..streams.wants import Want

LIMIT = 100
#: A page has so many bytes of bodies, about, and so many events are looked through for it.
MAX_PAGE_BYTES = 1024 * 1024
MAX_SCANNED = 5_000
READ = 500
#: What is larger is searched for secrets in a thread, and sent in parts.
LARGE = 256 * 1024


@get("/sessions/{session:str}/events", opt=takes("person", "reader", "agent"))
async def events(
    request: HttpRequest,
    house: TheHouse,
    session: FromPath[str],
    after: After = "",
    limit: Limit = None,
    kinds: Kinds = "",
    live: Live = True,
    reveal: Reveal = False,
    last_event_id: LastEventId = None,
) -> Response[Page[EventView]]:
    """The session's events after a number; with `Accept: text/event-stream` as a stream.

    A page may have fewer events than `limit`, even none, and more behind it: `next` tells.
    """
    record = house.supervisor.get(session)
    request.user.check_sees(record)
    want = want_of(request.user, house.redactor, kinds=kinds, live=live, reveal=reveal)
    if is_stream(request):
        cursor = cursor_of(last_event_id, after, record.seq)
        return house.streams.events(request.user, record.id, cursor, want, limit)
    cursor = cursor_of(None, after, record.seq)
    page = await _page(house, record.id, cursor, limit or LIMIT, want)
    return answered(want.hide(msgspec.json.encode(page)))


async def _page(house: House, session: str, after: int, limit: int, want: Want) -> Page[EventView]:
    log, size, scanned = house.supervisor.journal.log, 0, 0
    items: list[EventView] = []
    last = (await log.info(session)).last_seq
    while after < last and len(items) < limit and size < MAX_PAGE_BYTES and scanned < MAX_SCANNED:
        for event in await log.read(session, after, READ):
            if len(items) == limit or size >= MAX_PAGE_BYTES:
                break
            after, scanned = event.seq, scanned + 1
            if want.kinds.has(event.kind):
                items.append(view_of(event))
                size += len(event.body)
        else:
            continue
        break
    return Page(items=items, next=str(after) if after < last else None)


@get("/sessions/{session:str}/events/{seq:int}", opt=takes("person", "reader", "agent"))
async def event(
    request: HttpRequest,
    house: TheHouse,
    session: FromPath[str],
    seq: FromPath[int],
    reveal: Reveal = False,
) -> Response[EventView]:
    """One event, whole, however large it is."""
    record = house.supervisor.get(session)
    request.user.check_sees(record)
    want = want_of(request.user, house.redactor, reveal=reveal)
    journal = house.supervisor.journal
    found = await journal.log.read(record.id, seq - 1, 1) if 1 <= seq <= MAX_SEQ else []
    if not found or found[0].seq != seq:
        raise Problem(
            404,
            "unknown_event",
            f"The session has no event {seq}.",
            f"Its events have numbers up to {record.seq}.",
        )
    whole = _whole(found[0], await journal.payload(found[0]))
    if found[0].blob is None:
        return answered(want.hide(whole))
    whole = await asyncio.to_thread(want.hide, whole)
    headers = {"content-length": str(len(whole))}
    parts: Any = Stream(_parts(whole), media_type=JSON, headers=headers)
    return parts  # type: ignore[no-any-return]


def _whole(event: Event, payload: bytes) -> bytes:
    view = EventView(seq=event.seq, at=event.at, kind=event.kind, body=Raw(payload))
    return msgspec.json.encode(view)


async def _parts(whole: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(whole), LARGE):
        yield whole[start : start + LARGE]


@get("/events", opt=takes("person", "reader"), media_type="text/event-stream")
async def everything(
    request: HttpRequest,
    house: TheHouse,
    reveal: Reveal = False,
    last_event_id: LastEventId = None,
) -> Response[bytes]:
    """All sessions, approvals and the fleet, as a stream: the present, then what changes."""
    want = want_of(request.user, house.redactor, reveal=reveal)
    return house.streams.board(request.user, place_in(last_event_id), want)


HANDLERS = [events, event, everything]
