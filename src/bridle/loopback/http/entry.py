"""Who may go through which door. That the token counts, and is of the right kind, is known before:
here it is looked at whose it is. Owns the last check, and nothing behind it."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import UnknownSession
from ...supervisor import SessionRecord, Supervisor
from ...supervisor.states import is_live
from .asgi import App, Receive, Scope, Send, refuse

Check = Callable[[SessionRecord], str]


def session_in(scope: Scope) -> str:
    """The session of whoever calls."""
    return str(scope["user"].session)


def for_runners(supervisor: Supervisor, app: App) -> App:
    """For sessions that have the tools by which agents run others."""

    def why_not(record: SessionRecord) -> str:
        return "" if record.loopback else "has not the tools by which agents run others"

    return _checked(supervisor, why_not, "`bridle mcp token` makes a token that has them.", app)


def for_permits(supervisor: Supervisor, app: App) -> App:
    """For sessions that only ask."""

    def why_not(record: SessionRecord) -> str:
        return "" if record.external == "permit" else "is none that asks here"

    return _checked(supervisor, why_not, "`bridle mcp token --permit` makes one for it.", app)


def _checked(supervisor: Supervisor, why_not: Check, remedy: str, app: App) -> App:
    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            record = supervisor.get(session_in(scope))
        except UnknownSession:
            words = "The session of this token is gone."
            await refuse(send, 403, "forbidden", words, remedy)
            return
        why = why_not(record) or ("" if is_live(record.state) else f"is {record.state}")
        if why:
            words = f"The session of this token {why}."
            await refuse(send, 403, "forbidden", words, remedy)
            return
        await app(scope, receive, send)

    return call
