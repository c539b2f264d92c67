"""What a shell may complete, beside commands and options: names that only the server knows.

Whatever goes wrong, nothing is offered and nothing is said: somebody is typing.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ..config import load

if TYPE_CHECKING:
    from .client import Client

Offered = list[tuple[str, str]]

#: Longer than this nobody waits for a Tab.
LIMIT_SECONDS = 2.0


def session_names(incomplete: str) -> Offered:
    """The names of sessions, else their ids, with the state of each."""

    async def ask(client: Client) -> Offered:
        found = await client.sessions.list()
        return [(one.name or one.id[:8], f"{one.state} in {one.folder}") for one in found]

    return _offered(ask, incomplete)


def pending_approvals(incomplete: str) -> Offered:
    """The ids of approvals that wait, with what each is about."""

    async def ask(client: Client) -> Offered:
        found = await client.approvals.list(status="pending")
        return [(one.id, f"{one.tool} of {one.session[:8]}") for one in found]

    return _offered(ask, incomplete)


def policy_names(incomplete: str) -> Offered:
    from ..policy.presets import NAMES

    return [(name, "preset") for name in NAMES if name.startswith(incomplete)]


def _offered(ask: Callable[[Client], Awaitable[Offered]], incomplete: str) -> Offered:
    import asyncio

    async def found() -> Offered:
        from .client import open_client

        async with asyncio.timeout(LIMIT_SECONDS), open_client(load({}, os.environ)) as client:
            return await ask(client)

    try:
        return [one for one in asyncio.run(found()) if one[0].startswith(incomplete)]
    except Exception:  # noqa: BLE001 - a traceback in the middle of a line helps nobody
        return []
