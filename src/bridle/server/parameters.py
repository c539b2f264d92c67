"""A guard against parameters of an address that nobody reads: one that is misspelt would choose
nothing, and its caller would take all for what was asked.

Owns which parameters a route has. What stands in them is the routes' own.
"""

from __future__ import annotations

import difflib
from functools import cache
from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.params import QueryParameter

from .problems import Problem


def check_parameters(
    connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler
) -> None:
    """The guard of every route of the API."""
    if connection.scope.get("method") == "OPTIONS":
        return  # it has the address of what somebody wants to ask next
    known = _known(handler)
    for name in connection.query_params:
        if name not in known:
            raise _unknown(name, known)


@cache
def _known(handler: BaseRouteHandler) -> tuple[str, ...]:
    told = handler.parsed_fn_signature.parameters.items()
    found = [(name, field.kwarg_definition) for name, field in told]
    return tuple(given.name or name for name, given in found if isinstance(given, QueryParameter))


def _unknown(name: str, known: tuple[str, ...]) -> Problem:
    near = difflib.get_close_matches(name, known, 1, 0.5)
    if near:
        remedy = f"Do you mean `{near[0]}`?"
    elif known:
        remedy = f"There are {', '.join(f'`{one}`' for one in known)}."
    else:
        remedy = "Leave it out: this address has none."
    detail = f"There is no parameter `{name[:100]}` here."
    return Problem(400, "unknown_parameter", detail, remedy, {"field": name[:100]})
