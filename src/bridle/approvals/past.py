"""Calls of the past, from the trail: what a policy can be tried on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec

from ..journal import Event, Journal
from ..policy.trial import Past
from ..policy.verdicts import Allowed, Behavior, Call
from .events import DECIDED, JUDGED, REQUESTED, Ended, Judged
from .fold import status_after
from .model import Requested

PAGE = 500

_JUDGED = msgspec.json.Decoder(Judged)
_REQUESTED = msgspec.json.Decoder(Requested)
_ENDED = msgspec.json.Decoder(Ended)


async def past_calls(journal: Journal, sessions: Sequence[str] | None = None) -> list[Past]:
    """The tool calls of these sessions (of all, where none are named), with what was decided.

    One that was not decided has no decision: it can't be answered differently.
    """
    names = sessions
    if names is None:
        names = [stream.name for stream in await journal.log.streams()]
    return [past for name in names async for past in _of_session(journal, name)]


async def _of_session(journal: Journal, session: str) -> AsyncIterator[Past]:
    asked: dict[str, Call] = {}
    after = 0
    while events := await journal.log.read(session, after, PAGE):
        after = events[-1].seq
        for event in events:
            if past := await _past(journal, event, asked):
                yield past
    for call in asked.values():
        yield Past(call)


async def _past(journal: Journal, event: Event, asked: dict[str, Call]) -> Past | None:
    if event.kind not in (JUDGED, REQUESTED, DECIDED):
        return None
    body = await journal.payload(event)
    if event.kind == JUDGED:
        judged = _JUDGED.decode(body)
        how: Behavior = "allow" if isinstance(judged.verdict, Allowed) else "deny"
        return Past(Call(judged.tool, judged.input), how)
    if event.kind == REQUESTED:
        requested = _REQUESTED.decode(body)
        if requested.kind == "tool":
            asked[requested.id] = Call(requested.tool, requested.input)
        return None
    ended = _ENDED.decode(body)
    call = asked.pop(ended.id, None)
    if call is None:
        return None
    return Past(call, "allow" if status_after(ended.ending) == "allowed" else "deny")
