"""Who may go through which door, how many at a time, and until when. That the token counts, and is
of the right kind, is known before: here it is looked at whose it is. Owns the last check, and
nothing behind it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from ...errors import UnknownSession
from ...supervisor import SessionRecord, Supervisor
from ...supervisor.states import is_live
from .asgi import App, Receive, Scope, Send, refuse
from .ending import Reason, ends_with
from .waiting import ended

#: So many calls of one session may be under way at each door: others want to come in, too.
MOST_CALLS = 64

Check = Callable[[SessionRecord], str]


def session_in(scope: Scope) -> str:
    """The session of whoever calls."""
    return str(scope["user"].session)


def for_runners(supervisor: Supervisor, app: App) -> App:
    """For sessions that have the tools by which agents run others."""
    remedy = "`bridle mcp token` makes a token that has them."

    def why_not(record: SessionRecord) -> str:
        return "" if record.loopback else "has not the tools by which agents run others"

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        # It may wait for long, or be many calls: none is made for one that has ended meanwhile.
        over = asyncio.Event()
        watching = asyncio.ensure_future(_watch(supervisor, session_in(scope), why_not, over))
        reason = Reason(403, "forbidden", "The session of this token has ended.", remedy)
        try:
            await ends_with(over, app, reason)(scope, receive, send)
        finally:
            await ended(watching)

    return _checked(supervisor, why_not, remedy, call)


def for_permits(supervisor: Supervisor, app: App) -> App:
    """For sessions that only ask. Where one ends, what it asks is answered with a no."""

    def why_not(record: SessionRecord) -> str:
        return "" if record.external == "permit" else "is none that asks here"

    return _checked(supervisor, why_not, "`bridle mcp token --permit` makes one for it.", app)


def _checked(supervisor: Supervisor, why_not: Check, remedy: str, app: App) -> App:
    under_way: Counter[str] = Counter()

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        session = session_in(scope)
        if why := _refusal(supervisor, session, why_not):
            words = f"The session of this token {why}."
            await refuse(send, 403, "forbidden", words, remedy)
            return
        if under_way[session] >= MOST_CALLS:
            words = f"{MOST_CALLS} calls of this session wait here already."
            await refuse(send, 429, "too_many_calls", words, "Wait until one is answered.")
            return
        under_way[session] += 1
        try:
            await app(scope, receive, send)
        finally:
            under_way[session] -= 1
            if not under_way[session]:
                del under_way[session]

    return call


def _refusal(supervisor: Supervisor, session: str, why_not: Check) -> str:
    """Why a session may not come in; "" if it may."""
    try:
        record = supervisor.get(session)
    except UnknownSession:
        return "is gone"
    return why_not(record) or ("" if is_live(record.state) else f"is {record.state}")


async def _watch(supervisor: Supervisor, session: str, why_not: Check, over: asyncio.Event) -> None:
    """Until it might not come in any more."""
    with supervisor.listening([session]) as listener:
        while not _refusal(supervisor, session, why_not):
            await listener.heard()
    over.set()
