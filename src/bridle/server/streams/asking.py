"""What a client asks for, as its address and its headers say it."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from litestar.params import HeaderParameter, QueryParameter

from ...journal.events import MAX_SEQ
from ..access import Caller, HttpRequest, forbidden
from ..problems import Problem
from ..redaction import Redactor
from .board import Place, place_of
from .sending import MEDIA_TYPE
from .wants import Want, kinds_of

#: The word for a cursor at the end: only what is new is wanted.
TIP = "tip"

LastEventId: TypeAlias = Annotated[
    str | None,
    HeaderParameter(
        name="Last-Event-ID",
        description="The id of the last event of the stream that the client has; it wins over"
        " `after`. Browsers send it by themselves when they connect again.",
    ),
]
After: TypeAlias = Annotated[
    str,
    QueryParameter(
        pattern=rf"^(|{TIP}|[0-9]{{1,15}})$",
        description="The number of the last event that the client has; `tip` is the end, now.",
    ),
]
Kinds: TypeAlias = Annotated[
    str,
    QueryParameter(
        max_length=1_000,
        description="Which kinds of events, with commas between; `agent.*` is all that begin so.",
    ),
]
Limit: TypeAlias = Annotated[int | None, QueryParameter(ge=1, le=1_000)]
Live: TypeAlias = Annotated[
    bool,
    QueryParameter(description="Whether a stream also has pieces of what is still being made."),
]


def is_stream(request: HttpRequest) -> bool:
    return MEDIA_TYPE in request.headers.get("accept", "")


def cursor_of(last_event_id: str | None, after: str, tip: int) -> int:
    """Where to go on. A cursor that can't be is a mistake worth telling."""
    if last_event_id:
        return _number("Last-Event-ID", last_event_id)
    return tip if after == TIP else _number("after", after or "0")


def place_in(last_event_id: str | None) -> Place | None:
    """The same for the board; None is its present."""
    if not last_event_id:
        return None
    place = place_of(last_event_id)
    if place is None:
        raise _invalid("Last-Event-ID", last_event_id)
    return place


def want_of(
    caller: Caller, redactor: Redactor, *, kinds: str = "", live: bool = True, reveal: bool = False
) -> Want:
    """Pieces are for people alone: a secret that comes in pieces is not seen as one, and readers
    and agents are shown none."""
    if reveal and caller.role != "person":
        raise forbidden(caller, ("person",))
    veil = None if reveal else redactor.bytes
    return Want(kinds_of(kinds), veil, live and caller.role == "person")


def _number(where: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise _invalid(where, text)
    return min(int(text), MAX_SEQ)


def _invalid(where: str, text: str) -> Problem:
    return Problem(
        400,
        "invalid_cursor",
        f"{where} is no id of an event here: {text[:40]!r}.",
        "Send the id of the last event that you have, or leave it out to begin anew.",
    )
