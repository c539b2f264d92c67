"""The application: its routes, its guards and its errors, put together."""

from __future__ import annotations

from litestar import Litestar
from litestar.di import Provide

from .access import check_role
from .house import House


def make_app(house: House) -> Litestar:
    """One application for one house; it may be served once."""
    return Litestar(
        route_handlers=[],
        guards=[check_role],
        dependencies={"house": Provide(lambda: house, sync_to_thread=False)},
        openapi_config=None,
    )
