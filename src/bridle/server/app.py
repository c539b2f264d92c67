"""The application: its routes, its guards and its errors, put together.

It does not know who calls: the `door` finds that out before a request comes here. Served without
one, it refuses everybody.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import ModuleType

from litestar import Litestar, Router
from litestar.di import Provide
from litestar.types import ASGIApp, ControllerRouterHandler, Receive, Scope, Send

from .access import Caller, check_role
from .answers import answer
from .bodies import bounded
from .house import House
from .metrics import counted
from .mounts import Mount, Place, mounted
from .openapi import description_route
from .parameters import check_parameters
from .routes import (
    approvals,
    controls,
    conversations,
    events,
    identity,
    metrics,
    policies,
    sessions,
    telling,
    transcript,
    trust,
    usage,
)
from .routes import house as house_routes

PREFIX = "/api/v1"

#: Each has its routes in `HANDLERS`, below the prefix, or in `ROOT_HANDLERS`.
MODULES: tuple[ModuleType, ...] = (
    identity,
    sessions,
    controls,
    conversations,
    telling,
    events,
    transcript,
    approvals,
    policies,
    trust,
    usage,
    house_routes,
    metrics,
)


def make_app(
    house: House, caller: Caller | None = None, *, mounts: Sequence[Mount] = ()
) -> ASGIApp:
    """The application of one house. `mounts` are served beside it, behind the same guards.

    With a `caller`, every request is theirs: for a program that has the house in its own process.
    """
    app = routed(tuple(mount.place for mount in mounts))
    state = {"house": house, "mounts": {mount.path: mount.app for mount in mounts}}

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {}).update(state)
        if caller:
            scope["user"] = caller
        await app(scope, receive, send)

    return call


@functools.cache
def routed(places: tuple[Place, ...] = ()) -> Litestar:
    """All routes, for whichever house a request brings along in its state.

    It takes a tenth of a second: houses in one process share it.
    """
    described = description_route(api_routes())
    return Litestar(
        route_handlers=[
            *api_routes(),
            Router(PREFIX, route_handlers=[described]),
            *map(mounted, places),
        ],
        guards=[check_role],
        dependencies={"house": Provide(_house_of, sync_to_thread=False)},
        exception_handlers={Exception: answer},
        middleware=[counted, bounded],
        request_max_body_size=None,  # `bodies` has it
        openapi_config=None,
        logging_config=None,
    )


def _house_of(scope: Scope) -> House:
    house: House = scope["state"]["house"]
    return house


def api_routes() -> list[ControllerRouterHandler]:
    """All but the one that describes them."""
    api = [handler for module in MODULES for handler in getattr(module, "HANDLERS", ())]
    root = [handler for module in MODULES for handler in getattr(module, "ROOT_HANDLERS", ())]
    return [Router(PREFIX, route_handlers=api, guards=[check_parameters]), *root]
