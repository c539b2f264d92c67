"""Policies that can't be used."""

from __future__ import annotations

from .root import BridleError


class PolicyError(BridleError):
    """A policy can't be used."""


class InvalidRule(PolicyError):
    """A rule that says nothing, or not what was meant."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(f"{rule!r} is no rule: {reason}")
        self.rule = rule
        self.reason = reason


class InvalidPolicy(PolicyError):
    """A policy file with a mistake in it."""

    def __init__(self, source: str, line: int | None, reason: str) -> None:
        where = f"{source}:{line}" if line else source
        super().__init__(f"{where}: {reason}")
        self.source = source
        self.line = line
        self.reason = reason
