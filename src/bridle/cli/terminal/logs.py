"""`bridle logs`: what happened in a session, from the server or from the home; and what comes.

Owns the paging and the choice between the transcript and the events that it was made of.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable

import msgspec
from msgspec import Struct

from ...server.shapes.events import EventView, TranscriptPage
from ...views.entries import TranscriptEntry
from ..client import Client
from ..errors import Misused
from .attaching import Following
from .sitting import Sitting
from .words import on_one_line

PAGE = 200
#: So much of an event is shown on its line.
MOST_OF_EVENT = 2_000

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_decode_event = msgspec.json.Decoder(EventView).decode


class Wanted(Struct, frozen=True, kw_only=True):
    """What of a log is shown. `tail`: the last so many; `since` is a time (unix seconds)."""

    tail: int | None = None
    since: float = 0.0
    is_followed: bool = False


def time_of(text: str) -> float:
    """`10m`, `2h`, or a time in unix seconds."""
    ago = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if ago:
        return time.time() - float(ago[1]) * _UNITS[ago[2]]
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    raise Misused(f"{text!r} is no time", "write 30s, 10m, 2h or 1d, or unix seconds")


async def show_transcript(
    client: Client,
    session: str,
    sitting: Sitting,
    wanted: Wanted,
    is_shown: Callable[[TranscriptEntry], bool],
) -> None:
    """`is_shown` says of an entry whether anything is to be seen of it: only such are counted."""
    view = await client.sessions.get(session)
    following = Following(client, view, sitting)
    seq: int | None = None
    start = await _start(client, view.id, wanted, is_shown)
    async for page in _pages(client, view.id, start):
        # What is on an early page may change while later ones are read.
        seq = page.seq if seq is None else seq
        sitting.view.past([entry for entry in page.entries if entry.at >= wanted.since])
        await sitting.outlet.room()
    if wanted.is_followed:
        await following.go_on(seq or 0)


async def _start(
    client: Client, session: str, wanted: Wanted, is_shown: Callable[[TranscriptEntry], bool]
) -> int:
    """The position behind which the last so many are that are shown."""
    if wanted.tail is None:
        return 0
    page = await client.sessions.transcript(session, limit=PAGE)
    left = wanted.tail
    if not left:
        return page.count
    while page.entries:
        for entry in reversed(page.entries):
            left -= entry.at >= wanted.since and is_shown(entry)
            if not left:
                return entry.position - 1
        before = page.entries[0].position
        page = await client.sessions.transcript(session, before=before, limit=PAGE)
    return 0


async def _pages(client: Client, session: str, at: int) -> AsyncIterator[TranscriptPage]:
    """The oldest entries first, from behind this position."""
    while True:
        page = await client.sessions.transcript(session, after=at, limit=PAGE)
        yield page
        if not page.entries or page.entries[-1].position >= page.count:
            return
        at = page.entries[-1].position


async def show_events(
    client: Client, session: str, sitting: Sitting, wanted: Wanted, *, is_json: bool
) -> None:
    """Everything as it was written down, a line for each event."""
    view = await client.sessions.get(session)
    at = 0 if wanted.tail is None else max(view.seq - wanted.tail, 0)
    while True:
        page = await client.sessions.events(view.id, after=at, limit=PAGE)
        for event in page.items:
            at = event.seq
            if event.at >= wanted.since:
                sitting.outlet.write(_line(event, is_json=is_json))
        await sitting.outlet.room()
        if page.next is None:
            break
        at = int(page.next)
    if wanted.is_followed:
        async for told in client.sessions.follow_events(view.id, after=at):
            # A delta is in no log, and has no id; `reset` has one and is no event.
            if told.id and told.event != "reset":
                sitting.outlet.write(_line(_decode_event(told.data), is_json=is_json))
                await sitting.outlet.room()


def _line(event: EventView, *, is_json: bool) -> str:
    if is_json:
        return f"{msgspec.json.encode(event).decode()}\n"
    when = time.strftime("%H:%M:%S", time.localtime(event.at))
    body = on_one_line(
        bytes(event.body)[: 4 * MOST_OF_EVENT].decode(errors="replace"), MOST_OF_EVENT
    )
    return f"{event.seq:>6}  {when}  {event.kind:<20}  {body}\n"
