"""What the API says of a session, and what it is told to make one.

Owns the shapes on the wire, and how a record becomes one. What is given by callers refuses fields
that are not known.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct

from ...protocol.permissions import PermissionMode
from ...supervisor import Limits, OrphanRule, Outcome, SessionRecord, State
from ...supervisor.record import Launch
from ...supervisor.states import Operation, possible_elsewhere, possible_in
from ...views import Tokens
from ...views.stream import External


class LaunchView(Struct, frozen=True, kw_only=True):
    """The latest run of the agent's process; `how` it ended, where it has."""

    id: str
    at: float
    pid: int | None
    version: str | None
    ready_at: float | None
    ended_at: float | None
    how: str | None
    code: int | None
    signal: int | None
    words: str
    stderr: str


class SessionView(Struct, frozen=True, kw_only=True):
    """A session as it is now. `approvals` are those that it waits for, `operations` what can be
    done with it."""

    id: str
    name: str
    folder: str
    state: State
    until: float | None
    outcome: Outcome
    labels: dict[str, str]
    created_at: float
    by: str
    parent: str | None
    lineage: tuple[str, ...]
    forked_from: str | None
    #: What it is launched with.
    model: str | None
    mode: str | None
    #: The digest of the policy that it is under.
    policy: str
    limits: Limits
    orphans: OrphanRule
    #: Whether it has the tools by which agents run others, and whether what it asks goes to those
    #: above it before it goes to people.
    loopback: bool
    asks_above: bool
    #: What it does for a process that is not ours; null for those that we run.
    external: External | None
    turns: int
    cost_usd: float
    tokens: Tokens
    #: How long it was at work.
    seconds: float
    approvals: list[str]
    #: How many prompts wait to be told.
    waiting: int
    claude_session_id: str | None
    launches: int
    launch: LaunchView | None
    last_at: float
    #: The last event that is in it.
    seq: int
    operations: tuple[Operation, ...]


def view_of(record: SessionRecord, now: float) -> SessionView:
    return SessionView(
        id=record.id,
        name=record.name,
        folder=record.folder,
        state=record.state,
        until=record.until,
        outcome=record.outcome,
        labels=record.labels,
        created_at=record.created_at,
        by=record.by,
        parent=record.parent,
        lineage=record.lineage,
        forked_from=record.forked_from,
        model=record.spec.get("model"),
        mode=record.spec.get("permission_mode"),
        policy=record.policy,
        limits=record.limits,
        orphans=record.orphans,
        loopback=record.loopback,
        asks_above=record.asks_above,
        external=record.external,
        turns=record.turns,
        cost_usd=record.cost_usd,
        tokens=record.usage.tokens,
        seconds=record.worked(now),
        approvals=record.approvals,
        waiting=len(record.waiting),
        claude_session_id=record.claude_session_id,
        launches=record.launches,
        launch=_launch(record.launch) if record.launch else None,
        last_at=record.last_at,
        seq=record.seq,
        operations=(possible_elsewhere if record.external else possible_in)(record.state),
    )


def _launch(launch: Launch) -> LaunchView:
    return LaunchView(
        id=launch.id,
        at=launch.at,
        pid=launch.pid,
        version=launch.version,
        ready_at=launch.ready_at,
        ended_at=launch.ended_at,
        how=launch.how,
        code=launch.code,
        signal=launch.signal,
        words=launch.words,
        stderr=launch.stderr,
    )


# --- what is given


class TextPart(Struct, frozen=True, tag="text", forbid_unknown_fields=True):
    """`mentions`: the CLI may read the files that the text mentions (`@path`), without asking."""

    text: str
    mentions: bool = False


class ImagePart(Struct, frozen=True, tag="image", forbid_unknown_fields=True):
    """`data` is base64."""

    media_type: str
    data: str


PromptGiven: TypeAlias = str | list[TextPart | ImagePart]


class PlainValue(Struct, frozen=True, tag="plain", forbid_unknown_fields=True):
    """No secret: it is stored."""

    value: str


class SecretValue(Struct, frozen=True, tag="secret", forbid_unknown_fields=True):
    """Used while the server lives, and written nowhere."""

    value: str


class EnvironmentValue(Struct, frozen=True, tag="env", forbid_unknown_fields=True):
    """What a variable of the server's own environment has at the launch."""

    name: str


class FileValue(Struct, frozen=True, tag="file", forbid_unknown_fields=True):
    """What a file holds at the launch."""

    path: str


EnvGiven: TypeAlias = PlainValue | SecretValue | EnvironmentValue | FileValue


Count: TypeAlias = Annotated[int, Meta(ge=0, le=10**12)]
Amount: TypeAlias = Annotated[float, Meta(ge=0, le=1e12)]


class LimitsGiven(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a session and all below it may use; what is left out, or null, is not limited."""

    turns: Count | None = None
    cost_usd: Amount | None = None
    seconds: Amount | None = None
    tokens: Count | None = None
    concurrency: Count | None = None


class NewSession(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A session to be made. `launch` are further options of a launch, by the names that
    docs/sessions.md has; `policy` is a preset, a stored policy's name or a file's path."""

    folder: str
    prompt: PromptGiven | None = None
    name: str = ""
    labels: dict[str, str] = {}
    model: str | None = None
    mode: PermissionMode | None = None
    policy: str = "ask"
    limits: LimitsGiven = LimitsGiven()
    parent: str | None = None
    orphans: OrphanRule = "stop"
    #: Whether it may run others, and whether what it asks goes to those above it first.
    loopback: bool = False
    asks_above: bool = True
    env: dict[str, EnvGiven] = {}
    launch: dict[str, Any] = {}
    #: A conversation of Claude Code's own, of that folder, with which it goes on.
    resume: str | None = None
    #: Whether it is started as soon as there is room.
    start: bool = True


class Prompting(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `send`."""

    prompt: PromptGiven


class Restarting(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `start` and `resume`; `env` are values that were given by hand."""

    prompt: PromptGiven | None = None
    env: dict[str, str] = {}


class Forking(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    prompt: PromptGiven | None = None
    name: str = ""


class Stopping(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`words` is why, for the log."""

    words: str = ""


class Sent(Struct, frozen=True):
    """The uuid of the prompt, once it is written down."""

    uuid: str


class Moding(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `mode`. A mode never loosens what the policy says."""

    mode: PermissionMode


class Modelling(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `model`; null goes back to the CLI's default."""

    model: str | None


class ModeView(Struct, frozen=True, kw_only=True):
    """The mode that the CLI has confirmed; null where it does not say. `note` is what to know of
    it: that the policy is stricter, for example."""

    mode: str | None
    note: str = ""


class ModelView(Struct, frozen=True, kw_only=True):
    """The model that the CLI has confirmed; null where it does not say."""

    model: str | None


class Rewinding(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Put files back as they were at the prompt with this uuid; a dry run only tells which."""

    uuid: str
    dry_run: bool = False


class RewoundView(Struct, frozen=True, kw_only=True):
    """What the CLI answered: whether it can, and what changed, or would."""

    can_rewind: bool
    error: str | None
    files_changed: list[str]
    insertions: int
    deletions: int


class InterruptedView(Struct, frozen=True, kw_only=True):
    """Prompts that are queued in the CLI all the same, and those that went with the turn, as far as
    it tells them."""

    still_queued: list[str]
    cancelled: list[str]
