"""What is shown to a caller: encoded once, without secrets unless a person wants to see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import msgspec
from litestar import Response
from litestar.params import QueryParameter

from .access import Caller, forbidden
from .house import House

JSON = "application/json"

Reveal: TypeAlias = Annotated[
    bool, QueryParameter(description="Show secrets too. For people only.")
]


def shown(
    house: House,
    caller: Caller,
    reveal: bool,
    what: object,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response[Any]:
    """For all that carries words of agents, or what they want to do."""
    encoded = msgspec.json.encode(what)
    return answered(veiled(house, caller, reveal, encoded), status, headers)


def veiled(house: House, caller: Caller, reveal: bool, encoded: bytes) -> bytes:
    if reveal and caller.role != "person":
        raise forbidden(caller, ("person",))
    return encoded if reveal else house.redactor.bytes(encoded)


def answered(
    encoded: bytes, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response[Any]:
    """JSON that is encoded already."""
    return Response(encoded, status_code=status, headers=dict(headers or {}), media_type=JSON)
