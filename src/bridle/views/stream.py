"""What a session's stream holds: the kinds of its events and their bodies (JSON).

Owns the words alone; who writes them is the supervisor, and `approvals` adds its own. A line of the
wire is kept as it is. Nothing here is ever renamed: old streams are read by it too.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct

from .bounds import Ceiling as Ceiling
from .bounds import Limits as Limits

# --- the session itself

CREATED = "session.created"
PROMPTED = "session.prompted"
QUEUED = "session.queued"
PAUSED = "session.paused"
UNPAUSED = "session.unpaused"
LIMITED = "session.limited"
UNLIMITED = "session.unlimited"
STOP_ASKED = "session.stop_asked"
STATE = "session.state"
BUDGET = "session.budget"
HANDED_OVER = "session.handed_over"
CHILD_CREATED = "session.child_created"
SECRET_SAID = "session.secret_said"

# --- the supervisor, in a stream of its own

SUPERVISOR = "supervisor"
OPENED = "supervisor.opened"
HELD = "supervisor.held"
RELEASED = "supervisor.released"
CLOSED = "supervisor.closed"

# --- one run of the agent's process

INTENDED = "launch.intended"
STARTED = "launch.started"
READY = "launch.ready"
TAKEN_UP = "launch.taken_up"
RESYNCED = "launch.resynced"
ENDED = "launch.ended"

# --- the wire, line by line

SAID = "agent.said"
ASKED = "agent.asked"
UNREADABLE = "agent.unreadable"
WITHDREW = "agent.withdrew"
ANSWERED = "agent.answered"
IGNORED = "agent.ignored"
MALFORMED = "agent.malformed"
OVERSIZED = "agent.oversized"
STDERR = "agent.stderr"
WROTE = "bridle.wrote"
BEGUN = "request.begun"

#: Never stored: a piece of a message that is still being made.
DELTA = "agent.delta"

State: TypeAlias = Literal[
    "queued",
    "starting",
    "idle",
    "running",
    "awaiting approval",
    "rate limited",
    "needs login",
    "paused",
    "stopping",
    "failed",
    "lost",
    "stopped",
]
#: Why an agent stands still: each is lifted by itself.
PauseCause: TypeAlias = Literal["budget", "disk", "person"]
#: What came of a launch. `vanished`: gone while nobody looked, and nothing tells how.
LaunchEnd: TypeAlias = Literal["exited", "stopped", "killed", "vanished", "not started"]
#: What becomes of the children of a session that is stopped.
OrphanRule: TypeAlias = Literal["stop", "hand over"]
#: A session whose process somebody else has started: `root` has our tools, `permit` asks only.
External: TypeAlias = Literal["root", "permit"]


class Created(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`spec` are the fields of a `LaunchSpec` that were given, without the environment; `env` has
    the name of each variable that was given, and whence its value comes. Never a secret."""

    id: str
    name: str
    folder: str
    at: float
    labels: dict[str, str] = {}
    spec: dict[str, Any] = {}
    env: dict[str, str] = {}
    #: The digest of the policy that it is under, and the files that this was read from.
    policy: str = ""
    guarded: tuple[str, ...] = ()
    #: The folders that the agent's environment names, for the policy.
    homes: dict[str, str] = {}
    parent: str | None = None
    #: The ancestors, the root first; the parent is the last.
    lineage: tuple[str, ...] = ()
    limits: Limits = Limits()
    orphans: OrphanRule = "stop"
    by: str = ""
    #: The session of which this one is a fork, if it is.
    forked_from: str | None = None
    #: The conversation of the CLI's own with which it begins, if it does.
    resumes: str | None = None
    #: Whether it has the tools by which agents run others.
    loopback: bool = False
    #: Whether its ancestors may be asked what it wants to do; else people alone are.
    asks_above: bool = True
    #: What those above it may delegate, root first: it may not do more by itself.
    ceilings: tuple[Ceiling, ...] = ()
    #: For one whose process is not ours: a `root` that has our tools, or one that only asks.
    external: External | None = None


class Prompted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody wants the agent to be told this. `line` is what will be written, when it can be."""

    uuid: str
    line: Raw
    at: float
    by: str = ""


class Queued(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """It is to run, and waits for a place. `resume` is the conversation to go on with, `node` the
    message of it with which to begin, where that is not the last one."""

    at: float
    resume: str | None = None
    fork: bool = False
    node: str | None = None


class Paused(Struct, frozen=True, kw_only=True, omit_defaults=True):
    cause: PauseCause
    at: float
    words: str = ""


class Unpaused(Struct, frozen=True, kw_only=True, omit_defaults=True):
    cause: PauseCause
    at: float
    by: str = ""


class Limited(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The service refuses: `until` a time (unix seconds), or until somebody logs in."""

    at: float
    until: float | None = None
    needs_login: bool = False
    words: str = ""


class Unlimited(Struct, frozen=True, kw_only=True, omit_defaults=True):
    at: float


class StopAsked(Struct, frozen=True, kw_only=True, omit_defaults=True):
    at: float
    by: str = ""
    words: str = ""


class StateChanged(Struct, frozen=True, kw_only=True, omit_defaults=True):
    was: State
    now: State
    at: float
    why: str = ""
    until: float | None = None


class BudgetSet(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The limits of the session from now on."""

    limits: Limits
    at: float
    by: str = ""


class HandedOver(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Its parent is gone: its questions go past it, to `lineage` (root first) and to people."""

    lineage: tuple[str, ...]
    at: float
    words: str = ""


class ChildCreated(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session was made below this one."""

    session: str
    name: str = ""
    at: float


class SecretSaid(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The events after it have a value in them that was to be kept from view, of this variable. So
    it is still known when nobody has the variable any more."""

    name: str
    value: str


class Opened(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A supervisor has begun its work: the sessions whose agents it found alive, those of which it
    found how they had ended, and the approvals that wait."""

    at: float
    pid: int
    alive: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()


class Released(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Agents may be started and told things again; or the supervisor has let them go."""

    at: float


class Intended(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A process is about to be started, and will carry this id in its environment."""

    launch: str
    at: float
    resume: str | None = None
    fork: bool = False
    node: str | None = None
    #: What the folder's own settings deny, or want asked, at this launch: behaviour and rule.
    rules: tuple[tuple[str, str], ...] = ()


class Started(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The shim: its pid, its birth in ticks since the boot, and which boot that was."""

    launch: str
    pid: int
    born: float
    boot: str
    at: float
    version: str | None = None


class Ready(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The handshake is done."""

    launch: str
    at: float


class TakenUp(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Another controller goes on with it. `requests`: what it had asked and nobody had answered;
    `appended`: bytes of the inbox that were written down and not there yet."""

    launch: str
    at: float
    requests: int = 0
    appended: int = 0


class Resynced(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of what it said was lost (a full disk), and it was asked where it stands.

    `is_idle`: it says that no turn runs; None where it does not say.
    """

    launch: str
    at: float
    words: str = ""
    is_idle: bool | None = None


class LaunchEnded(Struct, frozen=True, kw_only=True, omit_defaults=True):
    launch: str
    how: LaunchEnd
    at: float
    code: int | None = None
    signal: int | None = None
    #: Whether the last turn had come to its end.
    had_result: bool = False
    words: str = ""
    stderr: str = ""
    #: Pids that outlived even SIGKILL.
    survivors: tuple[int, ...] = ()


# Inside `Line`, the name is that of a field.
_Bytes: TypeAlias = bytes


class Line(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line that the agent wrote. `end` is where the lines end, in the launch's output, that were
    stored together with it.

    `type` is the message's (`system/init` for one with a subtype), `id` a request's. What is no
    JSON is in `bytes`.
    """

    launch: str
    end: int
    type: str = ""
    id: str = ""
    reason: str = ""
    line: Raw = Raw()
    bytes: _Bytes = b""


class Stderr(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`end` is where it ends in the launch's stderr."""

    launch: str
    end: int
    text: str


Written: TypeAlias = Literal["prompt", "allow", "deny", "answer", "request", "cancel"]


class Wrote(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line for the agent, in its final bytes; `start` is where it belongs in the inbox.

    `id` is the prompt's uuid or the request's id, `type` the subtype of a request of ours.
    `is_late`: it went out first, and was written down after.
    """

    launch: str
    start: int
    what: Written
    id: str = ""
    type: str = ""
    is_late: bool = False
    line: Raw = Raw()


class Begun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A handler is about to be called for this request. It will not be called again for it."""

    launch: str
    request_id: str


BODIES: dict[str, type[Struct]] = {
    CREATED: Created,
    PROMPTED: Prompted,
    QUEUED: Queued,
    PAUSED: Paused,
    UNPAUSED: Unpaused,
    LIMITED: Limited,
    UNLIMITED: Unlimited,
    STOP_ASKED: StopAsked,
    STATE: StateChanged,
    BUDGET: BudgetSet,
    HANDED_OVER: HandedOver,
    CHILD_CREATED: ChildCreated,
    SECRET_SAID: SecretSaid,
    OPENED: Opened,
    HELD: Limited,
    RELEASED: Released,
    CLOSED: Released,
    INTENDED: Intended,
    STARTED: Started,
    READY: Ready,
    TAKEN_UP: TakenUp,
    RESYNCED: Resynced,
    ENDED: LaunchEnded,
    SAID: Line,
    ASKED: Line,
    UNREADABLE: Line,
    WITHDREW: Line,
    ANSWERED: Line,
    IGNORED: Line,
    MALFORMED: Line,
    OVERSIZED: Line,
    STDERR: Stderr,
    WROTE: Wrote,
    BEGUN: Begun,
}


class Entry(Struct, frozen=True, gc=False):
    """An event of a stream, as folds take it. `is_cut`: the body is only the head of it."""

    seq: int
    at: float
    kind: str
    body: bytes
    is_cut: bool = False


_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(body) for kind, body in BODIES.items()
}


def body_of(entry: Entry) -> Any:
    """What the event says, as its kind's Struct; None for a kind that is not in BODIES, and for one
    of which only the head is there."""
    decoder = _DECODERS.get(entry.kind)
    return decoder.decode(entry.body) if decoder and not entry.is_cut else None
