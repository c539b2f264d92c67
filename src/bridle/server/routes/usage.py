"""What was used: by all sessions, by one, by model."""

from __future__ import annotations

from typing import Annotated

from litestar import Response, get
from litestar.params import FromPath, QueryParameter

from ...supervisor import SessionRecord
from ...views import ModelUse, Tokens, Usage
from ...views.costs import plus
from ...views.usage import usage_of
from ..access import HttpRequest, takes
from ..house import House, TheHouse
from ..shapes.house import SessionTotal, Total, UsageView
from ..shown import Reveal, shown

ByModel = Annotated[
    bool,
    QueryParameter(description="Also by model. All events of all sessions are read for that."),
]


@get("/usage", opt=takes("person", "reader"))
async def usage(
    request: HttpRequest, house: TheHouse, models: ByModel = False, reveal: Reveal = False
) -> Response[UsageView]:
    """What the sessions that there are have used, in all and each."""
    now = house.now()
    records = house.supervisor.list()
    sessions = [_total(record, now) for record in records]
    total = Total(
        turns=sum(one.turns for one in sessions),
        cost_usd=sum(one.cost_usd for one in sessions),
        tokens=sum((one.tokens for one in sessions), Tokens()),
        seconds=sum(one.seconds for one in sessions),
    )
    by_model = await _by_model(house, records) if models else None
    view = UsageView(total=total, sessions=sessions, models=by_model)
    return shown(house, request.user, reveal, view)


def _total(record: SessionRecord, now: float) -> SessionTotal:
    return SessionTotal(
        id=record.id,
        name=record.name,
        state=record.state,
        turns=record.turns,
        cost_usd=record.cost_usd,
        tokens=record.usage.tokens,
        seconds=record.worked(now),
    )


async def _by_model(house: House, records: list[SessionRecord]) -> dict[str, ModelUse]:
    found: dict[str, ModelUse] = {}
    for record in records:
        found = plus(found, (await _usage(house, record)).models)
    return found


@get("/sessions/{session:str}/usage", opt=takes("person", "reader", "agent"))
async def session_usage(
    request: HttpRequest, house: TheHouse, session: FromPath[str], reveal: Reveal = False
) -> Response[Usage]:
    """What a session has used, in all, for each run of its process and for each model."""
    record = house.supervisor.get(session)
    request.user.check_sees(record)
    return shown(house, request.user, reveal, await _usage(house, record))


async def _usage(house: House, record: SessionRecord) -> Usage:
    with house.streams.story(record.id) as story:
        await story.reached(record.seq)
        return usage_of(story.usage)


HANDLERS = [usage, session_usage]
