"""The states of a session, as tables that anybody can read.

A state is never remembered: it follows from `Facts`, by the first row of `TABLE` that holds. Owns
the states, what can be done in each, and which can follow which; does not know whence the facts
come (`record` does).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from ..errors import NotPossible
from ..views.stream import LaunchEnd, PauseCause, State

#: `elsewhere`: somebody else has started it, and it is there until it is told to stop.
Phase: TypeAlias = Literal["none", "starting", "ready", "ended", "elsewhere"]
#: What came of the latest turn. `lost`: the process went away in the middle of it.
Outcome: TypeAlias = Literal["none", "running", "complete", "failed", "cancelled", "lost"]
Operation: TypeAlias = Literal[
    "send",
    "interrupt",
    "stop",
    "start",
    "resume",
    "fork",
    "pause",
    "unpause",
    "set policy",
    "delete",
]

STATES: tuple[State, ...] = get_args(State)
OPERATIONS: tuple[Operation, ...] = get_args(Operation)


class Facts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that a state follows from. `how`, `code`, `signal` and `is_cut_off` are of a launch that
    has ended: whether a turn was running then."""

    is_queued: bool = False
    phase: Phase = "none"
    how: LaunchEnd | None = None
    code: int | None = None
    signal: int | None = None
    is_cut_off: bool = False
    #: A prompt was written that has no result yet, or a turn began by itself.
    is_turn_running: bool = False
    #: How many approvals are waited for.
    pending: int = 0
    pauses: tuple[PauseCause, ...] = ()
    is_limited: bool = False
    limited_until: float | None = None
    needs_login: bool = False
    is_stop_asked: bool = False

    @property
    def has_process(self) -> bool:
        return self.phase in ("starting", "ready")

    @property
    def is_there(self) -> bool:
        """Somebody is, who may ask: our own process, or one that we did not start."""
        return self.has_process or (self.phase == "elsewhere" and not self.is_stop_asked)

    @property
    def is_over(self) -> bool:
        """Nothing runs, and nothing is to run."""
        return not self.is_queued and not self.is_there

    @property
    def is_meant(self) -> bool:
        """That it is over is what somebody wanted."""
        return self.is_stop_asked or self.how == "stopped" or self.phase == "none"

    @property
    def went_wrong(self) -> bool:
        return self.how != "exited" or self.code != 0 or self.is_cut_off


class Row(Struct, frozen=True):
    """A state, when it holds (unless an earlier row does), and what it means to people."""

    state: State
    when: str
    holds: Callable[[Facts], bool]
    meaning: str


#: The first row that holds is the state. docs/states.md says why in this order.
TABLE: tuple[Row, ...] = (
    Row(
        "stopping",
        "it is to stop, and there is a process",
        lambda f: f.is_stop_asked and f.has_process,
        "it was asked to stop and has not ended yet",
    ),
    Row(
        "lost",
        "no process, none is wanted; it went while nobody looked, and was not to stop",
        lambda f: f.is_over and not f.is_meant and f.how == "vanished",
        "the process is gone, and nothing tells how",
    ),
    Row(
        "failed",
        "no process, none is wanted; not started, a code, a signal, or in a turn; was not to stop",
        lambda f: f.is_over and not f.is_meant and f.went_wrong,
        "the process could not be started, or ended with an error or in the middle of a turn",
    ),
    Row(
        "stopped",
        "no process, none is wanted",
        lambda f: f.is_over,
        "nothing runs, and nothing went wrong",
    ),
    Row(
        "paused",
        "there is a cause to pause",
        lambda f: bool(f.pauses),
        "nothing new is written to it: a person, a budget or a full disk holds it",
    ),
    Row(
        "needs login",
        "the service wants a login",
        lambda f: f.needs_login,
        "the service refuses until somebody logs in",
    ),
    Row(
        "awaiting approval",
        "there is a process, and an approval is pending",
        lambda f: f.pending > 0 and f.is_there,
        "somebody must decide before it can go on",
    ),
    Row(
        "rate limited",
        "the service refuses for a time",
        lambda f: f.is_limited,
        "the service refuses for a time; `until` says how long, if that is known",
    ),
    Row(
        "queued",
        "there is no process yet",
        lambda f: not f.is_there,
        "it is to run, and waits for a place",
    ),
    Row(
        "starting",
        "the handshake is not done",
        lambda f: f.phase == "starting",
        "its process is being started",
    ),
    Row(
        "running",
        "a turn is running",
        lambda f: f.is_turn_running,
        "it works",
    ),
    Row("idle", "none of these", lambda _: True, "it waits for a prompt"),
)

#: Nothing runs in these, and nothing will unless somebody asks.
ENDED: frozenset[State] = frozenset({"failed", "lost", "stopped"})
#: In these there may be a process, and nothing holds it.
_AT_WORK: frozenset[State] = frozenset(
    {"starting", "idle", "running", "awaiting approval", "rate limited", "needs login"}
)
#: The time in these counts for a budget: not the time in which it waits for a place, or is paused.
CLOCKED: frozenset[State] = _AT_WORK | {"stopping"}
_LIVE: frozenset[State] = frozenset(STATES) - ENDED


def state_of(facts: Facts) -> State:
    return next(row.state for row in TABLE if row.holds(facts))


def is_live(state: State) -> bool:
    return state not in ENDED


# --- what can be done

ALLOWED: dict[Operation, frozenset[State]] = {
    "send": _LIVE - {"stopping"},
    "interrupt": frozenset(
        {"running", "awaiting approval", "rate limited", "needs login", "paused"}
    ),
    # Asking again does no harm.
    "stop": _LIVE,
    "start": ENDED,
    "resume": ENDED,
    # Not in the middle of a turn: half of it would be in the fork.
    "fork": ENDED | {"idle", "rate limited", "needs login", "paused"},
    "pause": _LIVE - {"stopping"},
    "unpause": frozenset({"paused"}),
    # A turn is judged by one policy, from its beginning to its end.
    "set policy": ENDED | {"queued", "idle", "rate limited", "needs login", "paused"},
    "delete": ENDED,
}

_HINTS: dict[Operation, str] = {
    "send": "resume it first",
    "interrupt": "no turn is running, so there is nothing to interrupt",
    "stop": "nothing runs that could be stopped",
    "start": "it runs already, or will: send it a prompt",
    "resume": "it runs already, or will: send it a prompt",
    "fork": "wait until its turn is over, or interrupt it",
    "pause": "nothing runs that could be paused",
    "unpause": "it is not paused, so there is nothing to lift",
    "set policy": "interrupt it first, then try again",
    "delete": "stop it first",
}
#: Where something else helps than elsewhere.
_SPECIAL_HINTS: dict[tuple[Operation, State], str] = {
    ("send", "stopping"): "wait until it has stopped, then resume it",
    ("start", "stopping"): "wait until it has stopped",
    ("resume", "stopping"): "wait until it has stopped",
    ("start", "paused"): "unpause it",
    ("resume", "paused"): "unpause it",
    ("fork", "queued"): "wait until it has had a turn",
    ("fork", "starting"): "wait until it has had a turn",
    ("fork", "stopping"): "wait until it has stopped",
    ("pause", "stopping"): "it will stop: resume it afterwards if it is to go on",
    ("set policy", "starting"): "wait until it has had its turn, or stop it first",
    ("set policy", "stopping"): "wait until it has stopped",
    ("delete", "stopping"): "wait until it has stopped",
}


def check_possible(operation: Operation, state: State, session: str = "") -> None:
    """Raise `NotPossible`, which says what to do instead, unless this can be done now."""
    if state not in ALLOWED[operation]:
        raise refused(operation, state, session)


def refused(operation: Operation, state: State, session: str = "") -> NotPossible:
    hint = _SPECIAL_HINTS.get((operation, state), _HINTS[operation])
    return NotPossible(operation, state, hint, session)


def possible_in(state: State) -> tuple[Operation, ...]:
    return tuple(operation for operation in OPERATIONS if state in ALLOWED[operation])


# --- what can be done with one whose process is not ours

#: We can't speak to it, nor start it: only let it in, or not.
ELSEWHERE: tuple[Operation, ...] = ("stop", "delete")
_ELSEWHERE_HINT = "its process is not ours: stop it, and make another one with `bridle mcp token`"


def check_possible_elsewhere(operation: Operation, state: State, session: str = "") -> None:
    if operation not in ELSEWHERE:
        raise NotPossible(operation, state, _ELSEWHERE_HINT, session)
    check_possible(operation, state, session)


def possible_elsewhere(state: State) -> tuple[Operation, ...]:
    return tuple(operation for operation in possible_in(state) if operation in ELSEWHERE)


# --- what can follow

#: What holds an agent back, whatever it does.
_HELD: frozenset[State] = frozenset({"paused", "needs login", "rate limited"})

#: Which state can follow which, with one event between them.
TRANSITIONS: dict[State, frozenset[State]] = {
    "queued": _HELD | {"starting", "stopped"},
    "starting": _HELD | ENDED | {"stopping", "idle"},
    # Straight to an approval: what goes on in a process that is not ours is not known.
    "idle": _HELD | ENDED | {"stopping", "running", "awaiting approval"},
    # Not stopped: a process that ends in the middle of a turn has failed.
    "running": _HELD | {"stopping", "idle", "awaiting approval", "failed", "lost"},
    "awaiting approval": _HELD | ENDED | {"stopping", "idle", "running"},
    # Whatever it was before, and whatever it may have become meanwhile.
    "rate limited": frozenset(STATES) - {"rate limited"},
    # A login lifts the limits too.
    "needs login": frozenset(STATES) - {"needs login", "rate limited"},
    "paused": frozenset(STATES) - {"paused"},
    # Somebody may have asked meanwhile that it runs again.
    "stopping": _HELD | {"stopped", "queued"},
    "failed": _HELD | {"queued"},
    "lost": _HELD | {"queued"},
    # Idle is one whose process is not ours, once it is made: it is there already.
    "stopped": _HELD | {"queued", "idle"},
}
