"""What is known of one session, as a document.

Owns its shape, and how its state follows from new facts. Pure: times are given. `fold` makes it
from the session's stream.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from ..views.stream import Ceiling, External, LaunchEnd, Limits, OrphanRule, State, StateChanged
from .lines import Usage
from .states import CLOCKED, Facts, Outcome, state_of

#: Raise it when the fold or the Struct changes: records are then made again.
VERSION = 3


class Waiting(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A prompt that was not written yet. Without a `line` it is too long to be kept here: it is in
    the event `seq`."""

    uuid: str
    seq: int
    at: float
    by: str = ""
    line: Raw = Raw()


class Launch(Struct, kw_only=True, omit_defaults=True):
    """The latest run of the process, and how much of what it wrote is in the stream."""

    id: str
    at: float
    resume: str | None = None
    fork: bool = False
    node: str | None = None
    rules: tuple[tuple[str, str], ...] = ()
    pid: int | None = None
    born: float | None = None
    boot: str = ""
    version: str | None = None
    ready_at: float | None = None
    ended_at: float | None = None
    how: LaunchEnd | None = None
    code: int | None = None
    signal: int | None = None
    had_result: bool = False
    words: str = ""
    stderr: str = ""
    survivors: tuple[int, ...] = ()
    #: Where what was read of its output and of its stderr ends.
    output_end: int = 0
    stderr_end: int = 0


class SessionRecord(Struct, kw_only=True, omit_defaults=True):
    """`state`, `until` and `outcome` follow from the rest; they are here for those who read it."""

    id: str
    name: str = ""
    folder: str = ""
    labels: dict[str, str] = {}
    created_at: float = 0
    by: str = ""
    spec: dict[str, Any] = {}
    env: dict[str, str] = {}
    policy: str = ""
    guarded: tuple[str, ...] = ()
    homes: dict[str, str] = {}
    parent: str | None = None
    #: The ancestors, the root first; the parent is the last.
    lineage: tuple[str, ...] = ()
    orphans: OrphanRule = "stop"
    forked_from: str | None = None
    limits: Limits = Limits()
    loopback: bool = False
    asks_above: bool = True
    ceilings: tuple[Ceiling, ...] = ()
    external: External | None = None

    facts: Facts = Facts()
    state: State = "stopped"
    until: float | None = None
    outcome: Outcome = "none"
    #: The state that the stream says it is in: the latest `session.state`.
    published: State = "stopped"

    #: Since when it waits for a place, and the conversation that its next launch goes on with.
    queued_at: float = 0
    resume: str | None = None
    is_fork: bool = False
    #: The message of it with which to begin, where that is not the last one.
    node: str | None = None
    launch: Launch | None = None
    launches: int = 0
    #: The CLI's own id of the conversation.
    claude_session_id: str | None = None
    #: Whether the next message may bring another one.
    is_id_open: bool = False
    waiting: list[Waiting] = []
    #: Uuids of prompts that were written and have no result yet; of those, which are in the turn.
    unanswered: list[str] = []
    joined: list[str] = []
    #: A turn has begun and has no result yet.
    is_turn_open: bool = False
    #: Who wanted it to stop, if it was not its parent's end: a person's name, or `agent ID`.
    stopped_by: str = ""
    #: Whether anything was ever remembered for it.
    has_rules: bool = False
    #: Ids of approvals that are waited for.
    approvals: list[str] = []

    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    #: How long it was at work (`states.CLOCKED`), and since when it is, if it is.
    seconds: float = 0
    clocked_since: float | None = None
    last_at: float = 0
    #: Variables whose values were to be kept from view, and stand in its stream.
    secrets_said: list[tuple[str, str]] = []
    #: The last event that is in it, and how many could not be read.
    seq: int = 0
    unreadable: int = 0

    @property
    def is_created(self) -> bool:
        return self.created_at > 0

    @property
    def cost_usd(self) -> float:
        return self.usage.micros / 1_000_000

    def launch_with(self, name: str) -> Launch | None:
        """The latest launch, if this is its id: an earlier one has no more to say."""
        return self.launch if self.launch and self.launch.id == name else None

    def worked(self, now: float) -> float:
        """How many seconds it was at work until now."""
        running = now - self.clocked_since if self.clocked_since is not None else 0
        return self.seconds + max(running, 0)


def blank(session: str = "") -> SessionRecord:
    """A session of which no event is known yet."""
    return SessionRecord(id=session)


_decode_record = msgspec.json.Decoder(SessionRecord).decode


def snapshot(record: SessionRecord) -> bytes:
    """As it is now, in JSON."""
    return msgspec.json.encode(record)


def restored(kept: bytes) -> SessionRecord:
    return _decode_record(kept)


def changes(before: State, record: SessionRecord, at: float, why: str = "") -> StateChanged | None:
    """What must be written down, if the state is another one than before.

    With `record.published` it is what a crash kept from being written.
    """
    if before == record.state:
        return None
    return StateChanged(was=before, now=record.state, at=at, why=why, until=record.until)


def know(record: SessionRecord, at: float, **facts: Any) -> None:
    """Take new facts, and what follows from them."""
    record.facts = replace(record.facts, **facts)
    state = state_of(record.facts)
    record.until = record.facts.limited_until if state == "rate limited" else None
    if record.facts.is_turn_running:
        record.outcome = "running"
    if state == record.state:
        return
    if record.clocked_since is not None and state not in CLOCKED:
        record.seconds = record.worked(at)
        record.clocked_since = None
    elif record.clocked_since is None and state in CLOCKED:
        record.clocked_since = at
    record.state = state
