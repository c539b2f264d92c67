"""The tools as an in-process MCP server of a session that Bridle has started.

No port and no token: who calls is the session whose pipe the call came by. A controller that takes
the agent up later may get a call that an earlier one had begun: it is made again, and does then
what was not done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ..session.tools import Json, OneTool, ToolCall
from ..supervisor import SessionRecord, Supervisor
from ..supervisor.means import LaunchTools
from .registry import METHODS, Method
from .service import Loopback, loopback_of

#: The server's name: for the model a tool is `mcp__bridle__NAME`.
SERVER = "bridle"


class LoopbackTool:
    """One method for one launch of one session."""

    is_repeatable = True

    def __init__(self, loopback: Loopback, method: Method, session: str, launch: str) -> None:
        self._loopback = loopback
        self._method = method
        self._session = session
        self._launch = launch
        self.name = method.name

    def listed(self) -> Json:
        return self._method.listed()

    async def call(self, arguments: Json, which: ToolCall) -> Json:
        key = f"{self._launch}:{which.request_id}"
        given = await self._loopback.call(self._session, self.name, arguments, key)
        return content_of(given)


def content_of(given: Json) -> Json:
    """A result of MCP: the JSON of what was given, as a text."""
    text = msgspec.json.encode(given).decode()
    return {"content": [{"type": "text", "text": text}], "isError": given["type"] == "error"}


def tools_of(supervisor: Supervisor) -> LaunchTools:
    """For `open_supervisor(loopback=tools_of)`."""
    loopback = loopback_of(supervisor)

    def tools(record: SessionRecord, launch: str) -> Mapping[str, Sequence[OneTool]]:
        """None for one that is not to have them: it may be too deep for children."""
        if not record.loopback:
            return {}
        made = [LoopbackTool(loopback, one, record.id, launch) for one in METHODS.values()]
        return {SERVER: made}

    return tools
