"""How the server and its agents are; letting all go on; whether the log is what it was."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from litestar import Request, get, post
from litestar.params import JSONBody

from ... import __version__
from ...errors import BridleError, words_of
from ...journal import Verdict, verify_all
from ..access import caller_of, takes
from ..house import House, TheHouse
from ..shapes.house import (
    AcceptedView,
    Accepting,
    Alive,
    AnchorsView,
    AuditView,
    JournalHealth,
    Released,
    VerdictView,
    Verifying,
    Well,
)


@get("/health", opt=takes())
async def health(request: Request[Any, Any, Any], house: TheHouse) -> Well | Alive:
    """That it is up; for those who have a token, also how it is."""
    caller = caller_of(request)
    if caller is None or caller.is_agent:
        return Alive(version=__version__)
    supervisor = house.supervisor
    states = Counter(record.state for record in supervisor.list())
    pending = await supervisor.approvals.list(status="pending")
    return Well(
        version=__version__,
        home=str(house.home),
        uptime=max(house.now() - house.started_at, 0.0),
        is_asleep=supervisor.is_asleep,
        sessions=dict(states),
        running=supervisor.running,
        queued=states["queued"],
        approvals=len(pending),
        disk_free=house.disk_free(),
        journal=await _journal(house),
        held=supervisor.held,
    )


async def _journal(house: House) -> JournalHealth:
    problem = ""
    try:
        await house.supervisor.journal.log.info("supervisor")
    except BridleError as error:
        problem = words_of(error)
    size = await asyncio.to_thread(house.journal_size)
    return JournalHealth(
        is_writable=not house.supervisor.is_stuck, size_bytes=size, problem=problem
    )


@post("/fleet/release", status_code=200)
async def release(house: TheHouse) -> Released:
    """Let all go on that was held back: somebody has logged in, or a limit is lifted."""
    was_held = house.supervisor.held is not None
    house.supervisor.logged_in()
    return Released(was_held=was_held)


@post("/audit/verify", status_code=200, opt=takes("person", "reader"))
async def verify_audit(house: TheHouse, data: JSONBody[Verifying | None] = None) -> AuditView:
    """Whether what people decided stands in the log as it was written, for each stream."""
    asked = data or Verifying()
    only = None if asked.session is None else house.supervisor.get(asked.session).id
    copy = None if asked.anchors is None else asked.anchors.encode()
    audit = await verify_all(house.supervisor.journal, copy, only=only)
    fault = audit.fault
    anchors = AnchorsView(
        is_intact=fault is None,
        reason=fault.reason if fault else "",
        remedy=fault.remedy if fault else "",
        command=audit.command,
    )
    streams = [_view(verdict) for verdict in audit.verdicts]
    return AuditView(is_intact=audit.is_intact, streams=streams, anchors=anchors)


@post("/audit/accept", status_code=200)
async def accept_audit(
    request: Request[Any, Any, Any], house: TheHouse, data: JSONBody[Accepting | None] = None
) -> AcceptedView:
    """Say that the log is, on purpose, not what was anchored: an older copy was put in place. What
    was sealed and changed is not accepted by that."""
    caller = caller_of(request)
    name = caller.name if caller else ""
    stream = data.stream if data else None
    found = await house.supervisor.journal.anchors.accept(name, stream)
    return AcceptedView(accepted=found)


def _view(verdict: Verdict) -> VerdictView:
    return VerdictView(
        stream=verdict.stream,
        sealed=verdict.sealed,
        is_intact=verdict.is_intact,
        broken_at=verdict.broken_at,
        reason=verdict.reason,
        remedy=verdict.remedy,
    )


HANDLERS = [health, release, verify_audit, accept_audit]
