"""The control protocol: whose fault it is shows in the branch."""

from __future__ import annotations

from .root import BridleError


class ProtocolError(BridleError):
    """Something went wrong in the control protocol."""


class LocalError(ProtocolError):
    """Our side broke the rules. Nothing was written to the CLI."""


class InvalidRequest(LocalError):
    """A control request or user message that must not be written."""

    def __init__(self, subtype: str, reason: str) -> None:
        super().__init__(f"{subtype}: {reason}")
        self.subtype = subtype
        self.reason = reason


class InvalidAnswer(LocalError):
    """An answer whose shape does not fit the request that it answers."""

    def __init__(self, request_id: str, reason: str) -> None:
        super().__init__(f"answer to {request_id}: {reason}")
        self.request_id = request_id
        self.reason = reason


class NotPending(LocalError):
    """No request with this id waits for an answer."""

    why = "was never asked"

    def __init__(self, request_id: str) -> None:
        super().__init__(f"request {request_id} {self.why}")
        self.request_id = request_id


class AlreadyAnswered(NotPending):
    """The first answer won; this one was not written."""

    why = "was already answered"


class AlreadyWithdrawn(NotPending):
    """The CLI took the request back; it must not be answered any more."""

    why = "was withdrawn by the CLI"


class InvalidState(LocalError):
    """A saved connection state that this version can't restore."""


class ConnectionEnded(LocalError):
    """The CLI's output has ended: nothing can be asked or answered any more."""


class ControlFailed(ProtocolError):
    """The CLI answered a control request with an error."""

    def __init__(self, request_id: str, subtype: str, detail: str, code: str | None = None) -> None:
        super().__init__(f"{subtype}: {detail}" + (f" ({code})" if code else ""))
        self.request_id = request_id
        self.subtype = subtype
        self.detail = detail
        self.code = code
