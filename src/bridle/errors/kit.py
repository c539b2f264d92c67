"""The testing kit."""

from __future__ import annotations

from .root import BridleError


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
