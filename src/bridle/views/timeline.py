"""The timeline of tools: when each call began and ended, how it ended, how long it waited. Pure.

Owns the fold of a session's events into spans. Its state holds only calls that are not over.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..protocol.blocks import ServerToolUseBlock, ToolUseBlock
from ..protocol.content import tool_results
from ..protocol.messages import Assistant, Result, User
from ..protocol.system import PermissionDenied
from . import reading as r
from . import stream
from .entries import Changes, Outcome
from .pages import Pages
from .results import outcome_after, refusal_in
from .step import forget_oldest

#: So many calls, and approvals, are kept open, so that the state fits into a record (256 KB);
#: beyond it the oldest are let go.
MAX_OPEN = 200

SpanOutcome: TypeAlias = Outcome | Literal["running"]


class Span(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool call in time. `parent` is the call of the subagent that made it; None is the main
    loop. `waited` are the seconds in which somebody was asked, `ran` those that are left."""

    position: int
    seq: int
    changed: int
    id: str
    name: str
    started: float
    launch: str = ""
    parent: str | None = None
    ended: float | None = None
    outcome: SpanOutcome = "running"
    waited: float = 0.0
    #: Since when somebody is being asked.
    asked: float | None = None

    @property
    def ran(self) -> float | None:
        return None if self.ended is None else max(self.ended - self.started - self.waited, 0.0)


class _Wait(Struct, frozen=True, omit_defaults=True):
    """What approvals said of a call before it was seen, or before its result."""

    since: float | None = None
    waited: float = 0.0
    refusal: Outcome | None = None


class TimelineState(Struct, kw_only=True, omit_defaults=True):
    #: The last event that is in it.
    seq: int = 0
    #: How many spans there are.
    count: int = 0
    open: dict[str, Span] = {}
    #: By call.
    waits: dict[str, _Wait] = {}
    #: The call of each approval that is pending.
    asked: dict[str, str] = {}
    #: Calls of this turn that failed: the turn's result may yet say that they were denied.
    failed: dict[str, Span] = {}


def fold(state: TimelineState, event: stream.Entry | r.Reading) -> Changes[Span]:
    """Take in one event, in place; the spans that it began, and those that it changed."""
    if event.seq <= state.seq:
        return Changes()
    reading = r.reading_of(event)
    state.seq = reading.seq
    match reading.said or reading.body:
        case Assistant() as message:
            return Changes(added=_begin(state, reading, message))
        case User() as message:
            return Changes(changed=_results(state, reading, message))
        case Result() as result:
            return Changes(changed=_turn_over(state, reading, result))
        case r.Cut(results=results):
            return Changes(changed=_end_all(state, reading, results, "unknown"))
        case stream.LaunchEnded(launch=launch):
            calls = [call for call, span in state.open.items() if span.launch == launch]
            return Changes(changed=_end_all(state, reading, calls, "cancelled"))
        case other:
            return Changes(changed=_asked(state, reading, other))


def _asked(state: TimelineState, reading: r.Reading, told: object) -> list[Span]:
    """What is asked and answered about a call."""
    match told:
        case PermissionDenied(tool_use_id=call):
            _put(state, call, replace(_wait(state, call), refusal="denied"))
        case r.Judged(tool_use_id=str(call), verdict=verdict) if verdict.is_no:
            _put(state, call, replace(_wait(state, call), refusal="denied"))
        case r.Requested(id=approval, tool_use_id=str(call)):
            state.asked[approval] = call
            forget_oldest(state.asked, MAX_OPEN)
            _put(state, call, replace(_wait(state, call), since=reading.at))
            return _shown(state, reading, call)
        case r.Ended(id=approval, ending=ending) if approval in state.asked:
            call = state.asked.pop(approval)
            wait = _wait(state, call)
            waited = wait.waited + max(reading.at - (wait.since or reading.at), 0.0)
            refusal = refusal_in(ending) or wait.refusal
            _put(state, call, _Wait(waited=waited, refusal=refusal))
            return _shown(state, reading, call)
    return []


def _begin(state: TimelineState, reading: r.Reading, message: Assistant) -> list[Span]:
    added = []
    for block in message.message.content:
        if not isinstance(block, ToolUseBlock | ServerToolUseBlock):
            continue
        state.count += 1
        wait = _wait(state, block.id)
        span = Span(
            position=state.count,
            seq=reading.seq,
            changed=reading.seq,
            id=block.id,
            name=block.name,
            # It can be asked for before its line comes.
            started=min(reading.at, wait.since) if wait.since else reading.at - wait.waited,
            launch=reading.launch,
            parent=message.parent_tool_use_id,
            waited=wait.waited,
            asked=wait.since,
        )
        state.open[block.id] = span
        added.append(span)
    forget_oldest(state.open, MAX_OPEN)
    return added


def _results(state: TimelineState, reading: r.Reading, message: User) -> list[Span]:
    ended = []
    for block in tool_results(message):
        refusal = _wait(state, block.tool_use_id).refusal
        outcome = outcome_after(refusal, block, message)
        ended += _end_all(state, reading, [block.tool_use_id], outcome)
    return ended


def _turn_over(state: TimelineState, reading: r.Reading, result: Result) -> list[Span]:
    """Subagents in the background may go on; what the main loop called has no result to come."""
    changed = []
    for denial in result.permission_denials:
        span = state.failed.get(denial.tool_use_id)
        if span:
            changed.append(replace(span, outcome="denied", changed=reading.seq))
    state.failed = {}
    calls = [call for call, span in state.open.items() if span.parent is None]
    return changed + _end_all(state, reading, calls, "cancelled")


def _end_all(
    state: TimelineState, reading: r.Reading, calls: Iterable[str], outcome: SpanOutcome
) -> list[Span]:
    ended = []
    for call in calls:
        span = state.open.pop(call, None)
        wait = state.waits.pop(call, None)
        if span is None:
            continue
        waited = wait.waited if wait else 0.0
        if wait and wait.since is not None:
            waited += reading.at - wait.since
        span = replace(
            span,
            changed=reading.seq,
            ended=reading.at,
            outcome=outcome,
            waited=max(waited, 0.0),
            asked=None,
        )
        ended.append(span)
        if outcome == "error":
            state.failed[call] = span
            forget_oldest(state.failed, MAX_OPEN)
    return ended


def _wait(state: TimelineState, call: str) -> _Wait:
    return state.waits.get(call, _Wait())


def _put(state: TimelineState, call: str, wait: _Wait) -> None:
    state.waits[call] = wait
    forget_oldest(state.waits, MAX_OPEN)


def _shown(state: TimelineState, reading: r.Reading, call: str) -> list[Span]:
    span = state.open.get(call)
    if span is None:
        return []
    wait = _wait(state, call)
    span = replace(span, changed=reading.seq, asked=wait.since, waited=wait.waited)
    state.open[call] = span
    return [span]


class Timeline:
    """A timeline in memory, with all of its spans."""

    def __init__(self) -> None:
        self.state = TimelineState()
        self._pages: Pages[Span] = Pages()

    def __len__(self) -> int:
        return len(self._pages)

    def add(self, event: stream.Entry | r.Reading) -> Changes[Span]:
        changes = fold(self.state, event)
        self._pages.take(changes)
        return changes

    def page(
        self, *, after: int | None = None, before: int | None = None, limit: int = 100
    ) -> list[Span]:
        """At most `limit` spans between two positions; without `after`, the last ones."""
        return self._pages.page(after=after, before=before, limit=limit)
