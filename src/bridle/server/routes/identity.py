"""Who the caller is."""

from __future__ import annotations

from litestar import get

from ..access import Caller, HttpRequest, takes


@get("/me", opt=takes("person", "reader", "agent"))
async def me(request: HttpRequest) -> Caller:
    """Who you are to the server."""
    return request.user


HANDLERS = [me]
