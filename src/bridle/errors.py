"""Every error that Bridle raises, in one tree, split by whose fault it is.

    BridleError
    ├── ProtocolError
    │   ├── LocalError                 our side broke the rules; nothing was written
    │   │   ├── InvalidRequest         a request that the CLI would not survive or understand
    │   │   ├── InvalidAnswer          an answer of the wrong shape for its request
    │   │   ├── NotPending             no such request waits for an answer
    │   │   │   ├── AlreadyAnswered
    │   │   │   └── AlreadyWithdrawn
    │   │   ├── InvalidState           a saved connection that can't be restored
    │   │   └── ConnectionEnded        the CLI's output has ended
    │   └── ControlFailed              the CLI refused what we asked of it
    └── KitError                       the testing kit was given something it can't work with
        ├── InvalidScript              a scenario, model script or recording with a mistake in it
        ├── PortInUse
        ├── CliUnavailable             the CLI is not there and could not be installed
        ├── UnexpectedTraffic          a replayed or scripted peer was sent something else
        └── TimedOut                   what a test waited for did not come

The errors of the protocol carry their data as attributes, so that callers need not parse text.
"""

from __future__ import annotations


class BridleError(Exception):
    """The root of everything that Bridle raises on purpose."""


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


class KitError(BridleError):
    """The testing kit was given something that it can't work with; the text says what to do."""


class InvalidScript(KitError):
    """A scenario, a model's script or a recording has a mistake in it."""


class PortInUse(KitError):
    """Another program listens on the port that was asked for."""


class CliUnavailable(KitError):
    """The Claude Code CLI is not there and could not be installed."""


class UnexpectedTraffic(KitError):
    """A scripted or replayed peer was sent something that its script does not have."""


class TimedOut(KitError):
    """What a test waited for did not come in its time."""
