"""What the CLI of a session tells of itself, and answers when it is asked."""

from __future__ import annotations

from litestar import Response, get
from litestar.params import FromPath

from ...protocol.answers import ContextUsage, Initialized, McpServers
from ...session.session import Session
from ..access import HttpRequest, takes
from ..house import House, TheHouse
from ..shown import Reveal, shown


@get("/sessions/{session:str}/info", opt=takes("person", "reader", "agent"))
async def info(
    request: HttpRequest, house: TheHouse, session: FromPath[str], reveal: Reveal = False
) -> Response[Initialized]:
    """What the CLI that runs told of itself: its commands, models and agents."""
    return shown(house, request.user, reveal, _live(house, request, session).info)


@get("/sessions/{session:str}/context", opt=takes("person", "reader", "agent"))
async def context(
    request: HttpRequest, house: TheHouse, session: FromPath[str], reveal: Reveal = False
) -> Response[ContextUsage]:
    """What fills the model's context."""
    told = await _live(house, request, session).context_usage()
    return shown(house, request.user, reveal, told)


@get("/sessions/{session:str}/mcp", opt=takes("person", "reader", "agent"))
async def mcp(
    request: HttpRequest, house: TheHouse, session: FromPath[str], reveal: Reveal = False
) -> Response[McpServers]:
    """The MCP servers of the CLI that runs, and how they are."""
    told = await _live(house, request, session).mcp_status()
    return shown(house, request.user, reveal, told)


def _live(house: House, request: HttpRequest, session: str) -> Session:
    request.user.check_sees(house.supervisor.get(session))
    return house.supervisor.live(session)


HANDLERS = [info, context, mcp]
