"""What happens in a session, for an agent that has it work. Pure.

Owns the fold of a session's stream into happenings, numbered from 0 without gaps: the same ones
with the same numbers whenever, and in however many pieces, the stream is read. The state holds what
later events need, and none of the happenings; it is small, so that it can be kept anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ..protocol import messages as m
from ..protocol import system as s
from ..protocol.blocks import (
    Block,
    ImageBlock,
    RedactedThinkingBlock,
    ServerToolUseBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from ..protocol.content import local_command_output
from ..protocol.unknown import Unknown
from . import happenings as h
from . import reading as r
from . import stream
from .costs import Total
from .excerpts import raw_excerpt
from .results import text_of

#: Raise it when the fold changes: kept states are then of no use.
VERSION = 1
#: So many prompts are kept in mind until they are answered.
MOST_OPEN = 100


class LoopbackState(Struct, kw_only=True, omit_defaults=True):
    """What the fold must remember."""

    #: The last event of the stream that is in it, and how many happenings there were.
    seq: int = 0
    count: int = 0
    session: str = ""
    #: The CLI's own id of the conversation, and the last message of it.
    tree: str = ""
    head: str | None = None
    #: Prompts that have no result yet, and those of them that the turn is about.
    open: list[str] = []
    joined: list[str] = []
    launch: str = ""
    total: Total = Total()
    is_stop_asked: bool = False
    #: The number of the latest `complete`, and the event that made it; -1 and 0 before the first.
    ended: int = -1
    ended_seq: int = 0

    @property
    def place(self) -> h.Place:
        """Where the conversation stands."""
        return h.Place(self.tree or self.session, self.head)


def fold(state: LoopbackState, event: stream.Entry | r.Reading) -> list[h.Happening]:
    """Take in one event: the state is changed in place, and what it brings is given. One that is
    in it already brings nothing."""
    if event.seq <= state.seq:
        return []
    reading = r.reading_of(event)
    state.seq = reading.seq
    if reading.launch and reading.launch != state.launch:
        # Another process: its totals are its own.
        state.launch, state.total = reading.launch, Total()
    step = _Step(state, reading)
    if reading.said is not None:
        _said(step, reading.said)
    elif isinstance(reading.body, r.Cut):
        _cut(step, reading.body)
    elif not isinstance(reading.body, r.Garbled | r.Foreign):
        show = _SHOWN.get(reading.kind)
        if show:
            show(step, reading.body)
    return step.found


class _Step:
    """One event on its way into the view."""

    def __init__(self, state: LoopbackState, reading: r.Reading) -> None:
        self.state = state
        self.reading = reading
        self.found: list[h.Happening] = []

    def add(self, what: type[Any], /, **facts: Any) -> None:
        self.found.append(what(at=self.reading.at, **facts))
        self.state.count += 1

    def end(self, outcome: h.TurnOutcome, turns: list[str], **facts: Any) -> None:
        """A turn has ended."""
        state = self.state
        state.ended, state.ended_seq = state.count, state.seq
        state.open = [uuid for uuid in state.open if uuid not in turns]
        state.joined = []
        self.add(h.Complete, outcome=outcome, turn_ids=list(turns), **facts)


# --- what the agent says


def _said(step: _Step, message: m.Message | Unknown) -> None:
    if isinstance(message, Unknown):
        step.add(h.Other, what=message.type, text=raw_excerpt(message.raw).text)
        return
    state = step.state
    if message.session_id:
        state.tree = message.session_id
    match message:
        case m.Assistant() | m.User():
            if message.uuid and message.parent_tool_use_id is None and not _is_told(message):
                state.head = message.uuid
            _spoken(step, message)
        case m.Result():
            _result(step, message)
        case s.Init(user_message_uuids=uuids):
            state.joined = [uuid for uuid in uuids or () if uuid in state.open]
        case m.AuthStatus(error=str(error)):
            step.add(h.Error, source="api", message=error)
        case _:
            pass


def _is_told(message: m.Message) -> bool:
    """A prompt that comes back."""
    return isinstance(message, m.User) and message.is_replay


def _spoken(step: _Step, message: m.Assistant | m.User) -> None:
    facts = {"node_id": message.uuid, "subagent": message.parent_tool_use_id}
    output = local_command_output(message)
    if output is not None:
        step.add(h.Content, text=output, speaker="cli", **facts)
        return
    if isinstance(message, m.Assistant) and message.error is not None:
        step.add(h.Error, source="api", message=message.text or message.error, **facts)
        return
    if _is_told(message):
        _join(step.state, message.uuid)
    content = message.message.content
    blocks: list[Block] = [TextBlock(content)] if isinstance(content, str) else content
    for block in blocks:
        if not _is_told(message) or isinstance(block, ToolResultBlock):
            _block(step, block, message, facts)


def _join(state: LoopbackState, uuid: str | None) -> None:
    """An old CLI repeats a prompt that joins a turn which runs."""
    if uuid in state.open and uuid not in state.joined:
        state.joined = [*state.joined, uuid]


def _block(step: _Step, block: Block, message: m.Assistant | m.User, facts: dict[str, Any]) -> None:
    match block:
        case TextBlock(text=text):
            step.add(h.Content, text=text, speaker=_speaker(message), **facts)
        case ThinkingBlock(thinking=text):
            step.add(h.Thinking, text=text, **facts)
        case RedactedThinkingBlock():
            step.add(h.Thinking, text="", **facts)
        case ToolUseBlock(id=id_, name=name) | ServerToolUseBlock(id=id_, name=name):
            step.add(h.ToolUse, tool_name=name, tool_use_id=id_, input=block.input, **facts)
        case ToolResultBlock(tool_use_id=id_):
            is_error = bool(block.is_error)
            step.add(
                h.ToolResult, tool_use_id=id_, output=text_of(block), is_error=is_error, **facts
            )
        case ImageBlock():
            step.add(h.Other, what="image", **facts)
        case Unknown(type=kind, raw=raw):
            step.add(h.Other, what=kind, text=raw_excerpt(raw).text, **facts)
        case _:
            step.add(h.Other, what=str(block.__struct_config__.tag), **facts)


def _speaker(message: m.Assistant | m.User) -> str:
    if isinstance(message, m.User):
        return "user"
    return "cli" if message.is_synthetic else "agent"


def _result(step: _Step, result: m.Result) -> None:
    state = step.state
    before, state.total = state.total, state.total.after(result)
    used = result.usage or m.Usage()
    step.add(
        h.Used,
        cost_usd=round(max(state.total.own - before.own, 0.0), 6),
        input_tokens=used.input_tokens or 0,
        output_tokens=used.output_tokens or 0,
        cache_read_tokens=used.cache_read_input_tokens or 0,
        cache_creation_tokens=used.cache_creation_input_tokens or 0,
    )
    has_failed = result.is_error or result.subtype != "success"
    outcome: h.TurnOutcome = "failed" if has_failed else "complete"
    if result.is_interrupted:
        outcome = "cancelled"
    if outcome == "failed":
        step.add(h.Error, source="turn", message=result.text or result.subtype)
    named = result.user_message_uuids or [u for u in (result.user_message_uuid,) if u]
    turns = named or ([] if result.origin else state.joined or state.open[:1])
    step.end(outcome, turns, result=result.text, seconds=result.duration_ms / 1000)


# --- what is done with it


def _created(step: _Step, body: stream.Created) -> None:
    step.state.session = body.id


def _wrote(step: _Step, body: stream.Wrote) -> None:
    if body.what == "prompt":
        message = r.message_in(bytes(body.line))
        _told(step, body.id, _words(message) if isinstance(message, m.User) else "")


def _told(step: _Step, uuid: str, prompt: str) -> None:
    state = step.state
    state.open = [*state.open[-MOST_OPEN + 1 :], uuid]
    state.head = uuid or state.head
    step.add(h.Start, id=uuid, user_position=state.place, prompt=prompt, node_id=uuid or None)


def _words(message: m.User) -> str:
    content = message.message.content
    if isinstance(content, str):
        return content
    return "\n".join(block.text for block in content if isinstance(block, TextBlock))


def _requested(step: _Step, body: r.Requested) -> None:
    step.add(
        h.ApprovalRequested,
        id=body.id,
        tool_name=body.tool,
        input=body.input,
        tool_use_id=body.tool_use_id,
        kind=body.kind,
        reason=body.guard or body.reason,
    )


def _escalated(step: _Step, body: r.Escalated) -> None:
    for one in body.steps[-1:]:
        step.add(h.ApprovalEscalated, id=body.id, to=one.to, why=one.why, by=one.by)


def _resolved(step: _Step, body: r.Ended) -> None:
    step.add(h.ApprovalResolved, id=body.id, **_ending(body.ending))


def _ending(ending: r.Decided | r.Expired | r.Cancelled) -> dict[str, str]:
    match ending:
        case r.Decided(choice=choice, by=by):
            status = "denied" if choice.is_no else "allowed"
            return {"status": status, "by": str(by), "message": choice.message}
        case r.Expired(after=after):
            return {"status": "timed_out", "message": f"nobody decided in {after:g} s"}
        case r.Cancelled(cause=cause, words=words):
            return {"status": "cancelled", "message": words or cause}


def _stop_asked(step: _Step, _: stream.StopAsked) -> None:
    step.state.is_stop_asked = True


def _intended(step: _Step, _: stream.Intended) -> None:
    step.state.is_stop_asked, step.state.open, step.state.joined = False, [], []


def _resynced(step: _Step, body: stream.Resynced) -> None:
    if body.is_idle and step.state.open:
        step.end("lost", step.state.open)


def _launch_ended(step: _Step, body: stream.LaunchEnded) -> None:
    is_meant = body.how == "stopped" or step.state.is_stop_asked
    is_clean = body.how == "exited" and not body.code and not body.signal
    if not is_meant and not is_clean:
        by = f"code {body.code}" if body.code is not None else ""
        by = f"signal {body.signal}" if body.signal else by
        words = (f"the process {body.how} {by}".strip(), body.words, body.stderr)
        step.add(h.Error, source="launch", message="\n".join(part for part in words if part))
    if step.state.open:
        step.end("cancelled" if is_meant else "lost", step.state.open)


# --- what is too large to be read


def _cut(step: _Step, body: r.Cut) -> None:
    """Only the head of it is known: enough to miss no turn's beginning or end."""
    text, kind = body.head[:1_000], step.reading.kind
    if kind == stream.WROTE and '"what":"prompt"' in text:
        _told(step, _found(text, '"id":"'), "")
    elif kind == stream.SAID and body.type == "result":
        is_well = '"is_error":true' not in body.head and '"subtype":"success"' in body.head
        step.end("complete" if is_well else "failed", step.state.joined or step.state.open[:1])
    elif kind == stream.SAID and body.results:
        for tool_use_id in body.results:
            step.add(h.ToolResult, tool_use_id=tool_use_id, output=text, cut=len(body.head))
    elif kind in (r.REQUESTED, r.DECIDED, r.EXPIRED, r.CANCELLED, stream.SAID):
        step.add(h.Other, what=body.type or kind, text=text)


def _found(text: str, before: str) -> str:
    return text.partition(before)[2].partition('"')[0]


_SHOWN: dict[str, Callable[[_Step, Any], object]] = {
    stream.CREATED: _created,
    stream.WROTE: _wrote,
    stream.STOP_ASKED: _stop_asked,
    stream.STATE: lambda step, b: step.add(h.Status, state=b.now, why=b.why),
    stream.CHILD_CREATED: lambda step, b: step.add(
        h.ChildCreated, session_id=b.session, name=b.name
    ),
    stream.INTENDED: _intended,
    stream.RESYNCED: _resynced,
    stream.ENDED: _launch_ended,
    r.REQUESTED: _requested,
    r.ESCALATED: _escalated,
    r.DECIDED: _resolved,
    r.EXPIRED: _resolved,
    r.CANCELLED: _resolved,
}
