"""Launching a CLI, and what goes wrong in a session."""

from __future__ import annotations

from .root import BridleError


class LaunchError(BridleError):
    """The CLI could not be started; the text says what to do."""


class InvalidLaunch(LaunchError):
    """An option, a command or a folder with which no CLI can be started."""


class CliNotFound(LaunchError):
    """There is no CLI where it was looked for."""


class CliTooOld(LaunchError):
    """The CLI that was found is too old to be controlled."""


class LaunchFailed(LaunchError):
    """The system would not start the CLI."""


class SessionError(BridleError):
    """Something went wrong in a session."""


class SessionEnded(SessionError):
    """The CLI is gone, and with it what was waited for (`request`, where that was a request)."""

    def __init__(
        self,
        how: str,
        *,
        exit_code: int | None = None,
        signal: int | None = None,
        stderr: str = "",
        request: str | None = None,
    ) -> None:
        what = f"{request}: " if request else ""
        words = stderr.strip()[-1000:]
        super().__init__(f"{what}the CLI {how}" + (f"; its last words: {words}" if words else ""))
        self.how = how
        self.exit_code = exit_code
        self.signal = signal
        self.stderr = stderr
        self.request = request

    def while_asking(self, request: str) -> SessionEnded:
        """The same for one request that got no answer."""
        return SessionEnded(
            self.how,
            exit_code=self.exit_code,
            signal=self.signal,
            stderr=self.stderr,
            request=request,
        )


class SessionClosed(SessionError):
    """The session was stopped by us: nothing more can be sent or asked."""


class RequestTimedOut(SessionError, TimeoutError):
    """The CLI did not answer a request in its time. The request was taken back."""

    def __init__(self, subtype: str, seconds: float, stderr: str = "") -> None:
        super().__init__(f"{subtype}: the CLI did not answer in {seconds:g} s")
        self.subtype = subtype
        self.seconds = seconds
        self.stderr = stderr


class NotSupported(SessionError):
    """This version of the CLI never answers such a request; nothing was written."""

    def __init__(self, subtype: str, version: str | None, since: str) -> None:
        super().__init__(f"{subtype}: Claude Code {version} does not know it; use {since} or newer")
        self.subtype = subtype
        self.version = version
        self.since = since


class UnreadableAnswer(SessionError):
    """The CLI answered a request with something of another shape; `raw` is what it was."""

    def __init__(self, subtype: str, reason: str, raw: bytes) -> None:
        super().__init__(f"{subtype}: the answer can't be read: {reason}")
        self.subtype = subtype
        self.reason = reason
        self.raw = raw


class TurnFailed(SessionError):
    """A turn that ended in an error. `result` is the CLI's own word on it (None: unreadable)."""

    def __init__(self, reason: str, result: object = None, raw: bytes = b"") -> None:
        super().__init__(reason)
        self.result = result
        self.raw = raw


class PromptCancelled(SessionError):
    """A queued prompt was taken back before its turn began."""


class CommitFailed(SessionError):
    """What happened could not be written down, so nobody may act on it."""


class InvalidTool(SessionError):
    """A Python function that can't be offered to the model as a tool."""


class InvalidTranscript(SessionError):
    """A stored session that is not there, or that can't be read."""
