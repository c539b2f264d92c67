"""What came of a session: its latest result, how it stands, and who there is. Changes nothing."""

from __future__ import annotations

import msgspec

from ..supervisor.states import is_live
from ..views.detail import Detail
from .arguments import List, OneSession, Result
from .calls import NOTICE, Call, Json, about


async def result(call: Call, arguments: Result) -> Json:
    return await result_of(call, call.named(arguments).id, arguments.detail)


async def result_of(call: Call, session: str, detail: Detail) -> Json:
    """The end of its latest turn that has one."""
    record, fold = await call.looked(session)
    told: Json = {"type": "ok", **about(record, fold.tail.place), "result": None}
    if fold.tail.ended >= 0:
        page = await fold.read(fold.tail.ended, 1, detail)
        for ended in page.found:
            told |= {"turn": msgspec.to_builtins(ended), "result": getattr(ended, "result", "")}
    tokens = record.usage.tokens
    told["tokens"] = {"input": tokens.input, "output": tokens.output, "total": tokens.total}
    return {**told, "notice": NOTICE}


async def get(call: Call, arguments: OneSession) -> Json:
    record, fold = await call.looked(call.named(arguments).id)
    more = {
        "outcome": record.outcome,
        "limits": msgspec.to_builtins(record.limits),
        "model": record.spec.get("model"),
        "forked_from": record.forked_from,
        "total_events": fold.tail.count,
        "waiting_prompts": len(record.waiting),
        "can_have_children": record.loopback,
    }
    return {"type": "ok", **about(record, fold.tail.place), **more}


async def listed(call: Call, arguments: List) -> Json:
    """Those below the caller, the newest first."""
    records = call.all_below()[::-1]
    if arguments.live_only:
        records = [record for record in records if is_live(record.state)]
    shown = [about(record) for record in records[: arguments.limit]]
    return {
        "type": "ok",
        "sessions": shown,
        "total": len(records),
        "has_more": len(records) > len(shown),
    }
