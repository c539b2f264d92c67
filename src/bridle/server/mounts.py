"""Applications of others that are served beside our routes: counted, bounded and guarded as those.

Owns what is to be known of one, and how it becomes a route. What it does is its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from litestar import asgi
from litestar.handlers import ASGIRouteHandler
from litestar.types import Receive, Scope, Send
from msgspec import Struct

from .access import Role, takes
from .problems import Problem

if TYPE_CHECKING:
    from .house import House

#: Called with scope, receive and send; the caller is in the scope, as `user`.
Application: TypeAlias = Callable[[Any, Any, Any], Any]
#: The path, the methods and the roles of a mount.
Place: TypeAlias = tuple[str, tuple[str, ...], tuple[Role, ...]]


class Mount(Struct, frozen=True):
    """Serves just this path, by these methods, for those who come as one of these."""

    path: str
    app: Application
    methods: tuple[str, ...]
    roles: tuple[Role, ...]

    @property
    def place(self) -> Place:
        return self.path, self.methods, self.roles


#: Opens them for a house; they are closed when it ends.
Mounts: TypeAlias = Callable[["House"], AbstractAsyncContextManager[Sequence[Mount]]]


@asynccontextmanager
async def no_mounts(_: House) -> AsyncIterator[Sequence[Mount]]:
    yield ()


def mounted(place: Place) -> ASGIRouteHandler:
    """The route to what is mounted there, which a request brings along in its state."""
    path, methods, roles = place

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        method = scope.get("method", "")
        if method not in methods:
            allowed = ", ".join(methods)
            words = f"{method} is nothing that {path} takes."
            remedy = f"It takes {allowed}."
            raise Problem(405, "method_not_allowed", words, remedy, headers={"allow": allowed})
        await scope["state"]["mounts"][path](scope, receive, send)

    return asgi(path, opt=takes(*roles), copy_scope=True)(call)
