"""How the server, its agents and its log are, and what was used."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ...views import ModelUse, Tokens
from ...views.stream import Limited, State


class Alive(Struct, frozen=True, kw_only=True, tag="ok", tag_field="status"):
    """All that anybody may know."""

    version: str


class JournalHealth(Struct, frozen=True, kw_only=True):
    """`is_writable` is false while something that happened can't be stored; `problem` is why it
    can't be read, if it can't."""

    is_writable: bool
    size_bytes: int
    problem: str


class Well(Struct, frozen=True, kw_only=True, tag="ok", tag_field="status"):
    """For people and readers. `is_asleep`: nobody looks after the agents, it is only looked at what
    is stored."""

    version: str
    home: str
    uptime: float
    is_asleep: bool
    sessions: dict[State, int]
    running: int
    queued: int
    approvals: int
    disk_free: int
    journal: JournalHealth
    held: Limited | None


class Released(Struct, frozen=True, kw_only=True):
    """`was_held`: agents were held back until now."""

    was_held: bool


class Total(Struct, frozen=True, kw_only=True):
    turns: int
    cost_usd: float
    tokens: Tokens
    seconds: float


class SessionTotal(Total, frozen=True, kw_only=True):
    id: str
    name: str
    state: State


class UsageView(Struct, frozen=True, kw_only=True):
    """What all sessions that there are have used. `models` is null unless it was asked for."""

    total: Total
    sessions: list[SessionTotal]
    models: dict[str, ModelUse] | None


class Verifying(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Without a session, all streams of the home. `anchors` is a copy of the anchors that was kept
    elsewhere, as JSON lines, to compare all with."""

    session: Annotated[str, Meta(max_length=256)] | None = None
    anchors: str | None = None


class Accepting(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Without a stream, all of them, and the anchors themselves."""

    stream: Annotated[str, Meta(max_length=256)] | None = None


class AcceptedView(Struct, frozen=True, kw_only=True):
    """What did not fit, by stream; what was wrong with the anchors themselves has no name."""

    accepted: dict[str, str]


class VerdictView(Struct, frozen=True, kw_only=True):
    """`broken_at` is the number of the first event that does not fit; null where all do. `remedy`
    says what to do."""

    stream: str
    sealed: int
    is_intact: bool
    broken_at: int | None
    reason: str
    remedy: str = ""


class AnchorsView(Struct, frozen=True, kw_only=True):
    """How the anchors of the log are; `command` says why the user's own was not given them."""

    is_intact: bool
    reason: str
    remedy: str
    command: str


class AuditView(Struct, frozen=True, kw_only=True):
    is_intact: bool
    streams: list[VerdictView]
    anchors: AnchorsView
