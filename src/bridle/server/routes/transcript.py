"""Views of one session that are folded from its events: transcript, files, timeline."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, get
from litestar.params import FromPath, QueryParameter
from msgspec import Raw, Struct

from ..access import HttpRequest, takes
from ..house import TheHouse
from ..shapes.events import TranscriptPage
from ..shapes.views import FilesView, TimelinePage
from ..shown import Reveal, answered
from ..streams.asking import (
    After,
    LastEventId,
    Limit,
    Live,
    cursor_of,
    is_stream,
    want_of,
)

LIMIT = 100
#: A page has so many bytes of entries, about.
MAX_PAGE_BYTES = 1024 * 1024

Before = Annotated[
    int | None, QueryParameter(ge=1, le=1 << 40, description="Only what is before this position.")
]


class _Encoded(Struct, frozen=True, kw_only=True):
    """A `TranscriptPage` whose entries are encoded already."""

    entries: list[Raw]
    count: int
    seq: int


@get("/sessions/{session:str}/transcript", opt=takes("person", "reader", "agent"))
async def transcript(
    request: HttpRequest,
    house: TheHouse,
    session: FromPath[str],
    after: After = "",
    before: Before = None,
    limit: Limit = None,
    live: Live = True,
    reveal: Reveal = False,
    last_event_id: LastEventId = None,
) -> Response[TranscriptPage]:
    """What happened, for people: the last entries, those before a position, or those after one.

    With `Accept: text/event-stream`, a stream of entries as they come and change; `after` is then
    the number of an event, as `seq` of a page is, and all entries come that changed after it.
    """
    record = house.supervisor.get(session)
    request.user.check_sees(record)
    want = want_of(request.user, house.redactor, live=live, reveal=reveal)
    with house.streams.story(record.id) as story:
        await story.reached(record.seq)
        if is_stream(request):
            cursor = cursor_of(last_event_id, after, story.seq)
            return house.streams.transcript(request.user, record.id, cursor, want, limit)
        position = cursor_of(None, after, len(story.transcript)) if after else None
        entries = story.transcript.page(after=position, before=before, limit=limit or LIMIT)
        page = _Encoded(
            entries=_fitting(entries, from_end=position is None),
            count=len(story.transcript),
            seq=story.seq,
        )
    return answered(want.hide(msgspec.json.encode(page)))


def _fitting(entries: list[Any], *, from_end: bool) -> list[Raw]:
    """So many of them as a page has room for, and at least one."""
    found: list[Raw] = []
    size = 0
    for entry in reversed(entries) if from_end else entries:
        encoded = msgspec.json.encode(entry)
        size += len(encoded)
        if found and size > MAX_PAGE_BYTES:
            break
        found.append(Raw(encoded))
    return found[::-1] if from_end else found


@get("/sessions/{session:str}/files", opt=takes("person", "reader", "agent"))
async def files(
    request: HttpRequest, house: TheHouse, session: FromPath[str], reveal: Reveal = False
) -> Response[FilesView]:
    """The files that the agent's tools have read and changed."""
    record = house.supervisor.get(session)
    request.user.check_sees(record)
    want = want_of(request.user, house.redactor, reveal=reveal)
    with house.streams.story(record.id) as story:
        await story.reached(record.seq)
        state = story.files
        view = FilesView(
            changed=list(state.changed.values()),
            read=list(state.read.values()),
            more=state.more,
            seq=state.seq,
        )
    return answered(want.hide(msgspec.json.encode(view)))


@get("/sessions/{session:str}/timeline", opt=takes("person", "reader", "agent"))
async def timeline(
    request: HttpRequest,
    house: TheHouse,
    session: FromPath[str],
    after: Annotated[int | None, QueryParameter(ge=0, le=1 << 40)] = None,
    before: Before = None,
    limit: Limit = None,
    reveal: Reveal = False,
) -> Response[TimelinePage]:
    """When each tool call began and ended; without `after`, the last ones."""
    record = house.supervisor.get(session)
    request.user.check_sees(record)
    want = want_of(request.user, house.redactor, reveal=reveal)
    with house.streams.story(record.id) as story:
        await story.reached(record.seq)
        spans = story.timeline.page(after=after, before=before, limit=limit or LIMIT)
        page = TimelinePage(spans=spans, count=len(story.timeline), seq=story.timeline.state.seq)
    return answered(want.hide(msgspec.json.encode(page)))


HANDLERS = [transcript, files, timeline]
