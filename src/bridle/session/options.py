"""What a session needs to know beside its transport and its handlers."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ..process.transport import StopLimits
from ..protocol.requests import Initialize
from .folder import Survey
from .mailbox import UNREAD_BYTES
from .wirelog import WireLog

REQUEST_SECONDS = 60.0


class SessionOptions(Struct, kw_only=True):
    """What a session needs to know beside its transport and handlers."""

    initialize: Initialize
    request_seconds: float = REQUEST_SECONDS
    handshake_seconds: float = REQUEST_SECONDS
    stop: StopLimits = StopLimits()
    unread_bytes: int = UNREAD_BYTES
    shows_replays: bool = False
    on_stderr: Callable[[str], None] | None = None
    log: WireLog | None = None
    #: What the folder would have brought, and was kept out.
    withheld: Survey | None = None
