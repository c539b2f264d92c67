"""Many sessions: what can't be done with one now, and which limit is in the way."""

from __future__ import annotations

from .root import BridleError


class SupervisorError(BridleError):
    """Something can't be done with a session. Nothing was stored."""


class UnknownSession(SupervisorError):
    """There is no session with this id or name."""

    def __init__(self, session: str) -> None:
        super().__init__(f"there is no session {session}; list the sessions to see their names")
        self.session = session


class NameTaken(SupervisorError):
    """Another session has this name."""

    def __init__(self, name: str, session: str) -> None:
        super().__init__(f"session {session} has the name {name!r}; choose another one")
        self.name = name
        self.session = session


class NotPossible(SupervisorError):
    """What was asked makes no sense in the session's state; `hint` says what to do instead."""

    def __init__(self, operation: str, state: str, hint: str, session: str = "") -> None:
        who = f"session {session}" if session else "a session"
        super().__init__(f"{operation}: not possible while {who} is {state}; {hint}")
        self.operation = operation
        self.state = state
        self.hint = hint
        self.session = session


class LimitReached(SupervisorError):
    """There would be too many sessions below one. `limit` is which limit, `session` whose."""

    def __init__(self, limit: str, value: int, session: str, hint: str) -> None:
        super().__init__(f"session {session} has reached its limit: {limit} {value}; {hint}")
        self.limit = limit
        self.value = value
        self.session = session
        self.hint = hint


class WiderThanParent(SupervisorError):
    """An agent wants to give a session below it more than it has itself. `what` is that, `asked`
    what was wanted and `given` what the parent has."""

    def __init__(self, what: str, asked: str, given: str) -> None:
        super().__init__(
            f"the {what} {asked!r} is wider than what its parent has ({given}): ask for that or "
            "less, or have a person start the session"
        )
        self.what = what
        self.asked = asked
        self.given = given


class BudgetTooSmall(SupervisorError):
    """What a session wants does not fit into what is left above it. Numbers are in the unit of
    the measure: turns, dollars, seconds, tokens, sessions."""

    def __init__(
        self, measure: str, wanted: float | None, left: float, session: str, words: str
    ) -> None:
        super().__init__(words)
        self.measure = measure
        self.wanted = wanted
        self.left = left
        self.session = session


class InvalidLimit(SupervisorError):
    """A limit that can't be: a negative one, or no number."""

    def __init__(self, measure: str, value: float, reason: str) -> None:
        super().__init__(f"a limit of {value} for {measure}: {reason}")
        self.measure = measure
        self.value = value


class HomeInUse(SupervisorError):
    """Another process looks after the sessions in this home."""

    def __init__(self, home: str, pid: int | None) -> None:
        who = f"process {pid}" if pid else "another process"
        super().__init__(f"{home} is in use by {who}; use that one, stop it, or give another home")
        self.home = home
        self.pid = pid


class HomeNotPrivate(SupervisorError):
    """Others could change what is in this home: who is let in, and what agents may do."""

    def __init__(self, home: str, reason: str) -> None:
        super().__init__(f"{home} is not used: {reason}")
        self.home = home
        self.reason = reason


class Asleep(SupervisorError):
    """Nobody looks after the agents of this home now: what is stored can be read, and no more."""

    def __init__(self) -> None:
        super().__init__("no server is up: start one with `bridle up`")


class MissingVariables(SupervisorError):
    """Variables of a launch that can't be found. `names` has the reason of each."""

    def __init__(self, names: dict[str, str]) -> None:
        told = "; ".join(f"{name} ({reason})" for name, reason in names.items())
        super().__init__(f"variables are missing: {told}; give them with env=… when you resume it")
        self.names = names


class ForeignInput(SupervisorError):
    """Somebody else has written to an agent's input: it is not answered any more, and stopped."""
