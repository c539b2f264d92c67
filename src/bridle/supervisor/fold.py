"""The fold of a session's stream: what each event changes in its record.

Pure: times are those of the events. It is called for every line of every agent, so it changes the
record that it is given, and of an ordinary line it reads the head alone (`lines`). Who keeps a
record, or compares two, takes `snapshot(record)`. An event that is in the record already changes
nothing; one that can't be read is counted, and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from ..approvals import events as approvals
from ..approvals.policies import POLICY_APPLIED
from ..approvals.remember import RULE_ADDED
from ..views import stream
from ..views.stream import Entry, StateChanged
from . import lines, turns
from .record import Launch, SessionRecord, Waiting, blank, know

#: So many bytes of waiting prompts are kept in a record, which may have 256 KB in all.
KEPT_PROMPTS = 64 * 1024


def fold(record: SessionRecord | None, entry: Entry) -> SessionRecord:
    """The record after one more event: the same object, changed."""
    if record is None:
        record = blank()
    if entry.seq <= record.seq:
        return record
    record.seq = entry.seq
    change = _CHANGES.get(entry.kind)
    if change is not None:
        try:
            change(record, entry)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            record.unreadable += 1
    return record


# --- the session itself


def _created(record: SessionRecord, body: stream.Created) -> None:
    record.id, record.name, record.folder = body.id, body.name, body.folder
    record.labels, record.spec, record.env = body.labels, body.spec, body.env
    record.created_at, record.by, record.policy = body.at, body.by, body.policy
    record.parent, record.lineage, record.orphans = body.parent, body.lineage, body.orphans
    record.limits, record.forked_from = body.limits, body.forked_from
    record.guarded, record.homes = body.guarded, body.homes
    record.claude_session_id = body.resumes
    record.loopback, record.asks_above = body.loopback, body.asks_above
    record.ceilings, record.external = body.ceilings, body.external
    if body.external:
        know(record, body.at, phase="elsewhere")


def _prompted(record: SessionRecord, entry: Entry) -> None:
    record.last_at = entry.at
    body: stream.Prompted | None = stream.body_of(entry)
    if body is None:
        uuid = lines.uuid_in(entry.body)
        record.waiting.append(Waiting(uuid=uuid, seq=entry.seq, at=entry.at))
        return
    prompt = Waiting(uuid=body.uuid, seq=entry.seq, at=body.at, by=body.by)
    kept = sum(len(bytes(other.line)) for other in record.waiting)
    if kept + len(bytes(body.line)) <= KEPT_PROMPTS:
        # A copy: what was decoded holds on to all of the event.
        prompt = replace(prompt, line=body.line.copy())
    record.waiting.append(prompt)


def _queued(record: SessionRecord, body: stream.Queued) -> None:
    record.queued_at, record.resume, record.is_fork = body.at, body.resume, body.fork
    record.stopped_by = ""
    record.node = body.node
    # While a process ends, that it was to stop must not be forgotten: it waits for its place after.
    asked = record.facts.is_stop_asked and record.facts.has_process
    know(record, body.at, is_queued=True, is_stop_asked=asked)


def _paused(record: SessionRecord, body: stream.Paused) -> None:
    causes = {*record.facts.pauses, body.cause}
    know(record, body.at, pauses=tuple(sorted(causes)))


def _unpaused(record: SessionRecord, body: stream.Unpaused) -> None:
    causes = {*record.facts.pauses} - {body.cause}
    know(record, body.at, pauses=tuple(sorted(causes)))


def _limited(record: SessionRecord, body: stream.Limited) -> None:
    know(
        record,
        body.at,
        is_limited=not body.needs_login or record.facts.is_limited,
        limited_until=record.facts.limited_until if body.needs_login else body.until,
        needs_login=body.needs_login or record.facts.needs_login,
    )


def _unlimited(record: SessionRecord, body: stream.Unlimited) -> None:
    know(record, body.at, is_limited=False, limited_until=None, needs_login=False)


def _stop_asked(record: SessionRecord, body: stream.StopAsked) -> None:
    record.stopped_by = body.by
    know(record, body.at, is_stop_asked=True, is_queued=False)


def _published(record: SessionRecord, body: StateChanged) -> None:
    record.published = body.now


def _secret_said(record: SessionRecord, body: stream.SecretSaid) -> None:
    record.secrets_said.append((body.name, body.value))


def _budget(record: SessionRecord, body: stream.BudgetSet) -> None:
    record.limits = body.limits


def _handed_over(record: SessionRecord, body: stream.HandedOver) -> None:
    record.lineage = body.lineage
    record.parent = body.lineage[-1] if body.lineage else None


def _rule_added(record: SessionRecord, _: Entry) -> None:
    record.has_rules = True


def _policy_applied(record: SessionRecord, entry: Entry) -> None:
    applied = lines.policy_in(entry)
    record.policy, record.guarded = applied.digest, applied.files


# --- launches


def _intended(record: SessionRecord, body: stream.Intended) -> None:
    record.launch = Launch(
        id=body.launch,
        at=body.at,
        resume=body.resume,
        fork=body.fork,
        node=body.node,
        rules=body.rules,
    )
    record.launches += 1
    record.usage.start_again()
    record.unanswered, record.joined, record.approvals = [], [], []
    record.is_turn_open = False
    record.is_id_open = True
    know(
        record, body.at, phase="starting", is_queued=False, is_stop_asked=False, how=None,
        code=None, signal=None, is_cut_off=False, is_turn_running=False, pending=0,
    )  # fmt: skip


def _started(record: SessionRecord, body: stream.Started) -> None:
    launch = record.launch_with(body.launch)
    if launch:
        launch.pid, launch.born, launch.boot = body.pid, body.born, body.boot
        launch.version = body.version or launch.version


def _ready(record: SessionRecord, body: stream.Ready) -> None:
    launch = record.launch_with(body.launch)
    if launch and record.facts.phase == "starting":
        launch.ready_at = body.at
        know(record, body.at, phase="ready")


def _resynced(record: SessionRecord, body: stream.Resynced) -> None:
    if record.launch_with(body.launch) and body.is_idle:
        turns.lost(record, body.at)


def _ended(record: SessionRecord, body: stream.LaunchEnded) -> None:
    launch = record.launch_with(body.launch)
    if not launch or not record.facts.has_process:
        return  # the first end is the end
    launch.ended_at, launch.how, launch.code = body.at, body.how, body.code
    launch.signal, launch.had_result, launch.words = body.signal, body.had_result, body.words
    launch.stderr, launch.survivors = body.stderr, body.survivors
    is_cut_off = record.facts.is_turn_running and not body.had_result
    if record.facts.is_turn_running:
        is_meant = record.facts.is_stop_asked or body.how == "stopped"
        record.outcome = "cancelled" if is_meant else "lost"
    record.unanswered, record.joined, record.is_turn_open = [], [], False
    know(
        record, body.at, phase="ended", how=body.how, code=body.code, signal=body.signal,
        is_cut_off=is_cut_off, is_turn_running=False,
    )  # fmt: skip


def _stderr(record: SessionRecord, body: stream.Stderr) -> None:
    launch = record.launch_with(body.launch)
    if launch:
        launch.stderr_end = max(launch.stderr_end, body.end)


# --- approvals


def _asked_for(record: SessionRecord, entry: Entry) -> None:
    asked = lines.approval_in(entry)
    if not asked or asked not in record.approvals:
        record.approvals.append(asked)
        know(record, entry.at, pending=len(record.approvals))


def _settled(record: SessionRecord, entry: Entry) -> None:
    settled = lines.approval_in(entry)
    # One that was too large to have its id at the head is known by being none of the others.
    found = settled if settled in record.approvals else ""
    if found in record.approvals:
        record.approvals.remove(found)
        know(record, entry.at, pending=len(record.approvals))


# --- which event changes what

_Change: TypeAlias = Callable[[SessionRecord, Entry], object]


def _with_body(change: Callable[[SessionRecord, Any], None]) -> _Change:
    def read(record: SessionRecord, entry: Entry) -> None:
        body = stream.body_of(entry)
        if body is None:
            raise msgspec.DecodeError("only the head of it is there")
        change(record, body)

    return read


_CHANGES: Final[dict[str, _Change]] = {
    stream.CREATED: _with_body(_created),
    stream.PROMPTED: _prompted,
    stream.QUEUED: _with_body(_queued),
    stream.PAUSED: _with_body(_paused),
    stream.UNPAUSED: _with_body(_unpaused),
    stream.LIMITED: _with_body(_limited),
    stream.SECRET_SAID: _with_body(_secret_said),
    stream.UNLIMITED: _with_body(_unlimited),
    stream.STOP_ASKED: _with_body(_stop_asked),
    stream.STATE: _with_body(_published),
    stream.BUDGET: _with_body(_budget),
    stream.HANDED_OVER: _with_body(_handed_over),
    stream.INTENDED: _with_body(_intended),
    stream.STARTED: _with_body(_started),
    stream.READY: _with_body(_ready),
    stream.RESYNCED: _with_body(_resynced),
    stream.ENDED: _with_body(_ended),
    stream.SAID: turns.said,
    stream.STDERR: _with_body(_stderr),
    stream.WROTE: turns.wrote,
    POLICY_APPLIED: _policy_applied,
    RULE_ADDED: _rule_added,
    approvals.REQUESTED: _asked_for,
    approvals.DECIDED: _settled,
    approvals.EXPIRED: _settled,
    approvals.CANCELLED: _settled,
    **dict.fromkeys(
        (
            *(stream.ASKED, stream.UNREADABLE, stream.WITHDREW, stream.ANSWERED),
            *(stream.IGNORED, stream.MALFORMED, stream.OVERSIZED),
        ),
        turns.line,
    ),
}
