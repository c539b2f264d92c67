"""What is done with the agent, as entries of the transcript: prompts, approvals, launches, states.

Owns which event that is no message makes or changes which entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from ..protocol.blocks import TextBlock
from ..protocol.messages import User
from ..protocol.unknown import Unknown
from . import entries as e
from . import reading as r
from . import stream
from .excerpts import MAX_OPEN, excerpt, input_excerpt, raw_excerpt
from .results import pictures_in, refusal_in
from .speech import close_call, end_calls, plan_in, strange
from .step import Step, approval_key, call_key, launch_key, prompt_key


def done(step: Step) -> None:
    """Show an event that is not a message of the agent."""
    body = step.reading.body
    match body:
        case r.Cut():
            _cut(step, body)
        case r.Garbled(reason=reason):
            strange(step, Unknown(step.reading.kind, b"", reason))
        case r.Foreign():
            _foreign(step)
        case _:
            show = _SHOWN.get(step.reading.kind)
            if show:
                show(step, body)


def _cut(step: Step, body: r.Cut) -> None:
    about = excerpt(body.head, MAX_OPEN)
    step.add(e.Large, event=step.reading.kind, type=body.type, head=about)
    at, seq = step.reading.at, step.reading.seq
    for tool_use_id in body.results:
        if call_key(tool_use_id) in step.state.open:
            close_call(step, tool_use_id, e.CallEnd(outcome="unknown", at=at, seq=seq))


def _foreign(step: Step) -> None:
    kind = step.reading.kind
    if kind.startswith(("policy.", "rule.", "plan.")):
        _status(step, "policy", kind)
    elif kind != stream.DELTA:
        strange(step, Unknown(kind, b"", "an event that is not known"))


def _status(step: Step, topic: e.Topic, value: str, words: str = "") -> e.Status:
    return step.add(e.Status, topic=topic, value=value, words=words[:MAX_OPEN])


# --- prompts


def _prompted(step: Step, body: stream.Prompted) -> None:
    text, pictures = _told(bytes(body.line))
    entry = step.add(
        e.Prompt, uuid=body.uuid, text=text, pictures=pictures, status="queued", by=body.by
    )
    step.keep(prompt_key(body.uuid), entry)


def _wrote(step: Step, body: stream.Wrote) -> None:
    if body.what != "prompt":
        return
    queued = step.open(prompt_key(body.id), e.Prompt)
    if queued:
        step.drop(prompt_key(body.id))
        step.change(queued, status="written", launch=body.launch)
    else:
        text, pictures = _told(bytes(body.line))
        step.add(e.Prompt, uuid=body.id, text=text, pictures=pictures, status="written")


def _told(line: bytes) -> tuple[e.Excerpt, tuple[e.Picture, ...]]:
    message = r.message_in(line)
    if not isinstance(message, User):
        return raw_excerpt(line), ()
    content = message.message.content
    if isinstance(content, str):
        return excerpt(content, MAX_OPEN), ()
    texts = [block.text for block in content if isinstance(block, TextBlock)]
    return excerpt("\n".join(texts), MAX_OPEN), pictures_in(content)


# --- approvals


def _requested(step: Step, body: r.Requested) -> None:
    decision = e.Decision(id=body.id, expires=body.expires)
    if body.kind == "plan" and body.tool_use_id:
        _plan_requested(step, body, body.tool_use_id, decision)
        return
    given, is_cut = input_excerpt(body.input)
    entry = step.add(
        e.Approval,
        decision=decision,
        about=body.kind,
        tool=body.tool,
        input=given,
        is_input_cut=is_cut,
        tool_use_id=body.tool_use_id,
        agent_id=body.agent_id,
        reason=body.reason[:MAX_OPEN],
        guard=body.guard[:MAX_OPEN],
    )
    step.keep(approval_key(body.id), entry)


def _plan_requested(step: Step, body: r.Requested, call: str, decision: e.Decision) -> None:
    text = excerpt(plan_in(body.input), MAX_OPEN)
    plan = step.open(call_key(call), e.Plan)
    if plan:
        plan = step.change(plan, decision=decision, plan=text if text.text else plan.plan)
    else:
        plan = step.add(e.Plan, id=call, plan=text, decision=decision)
    step.keep(call_key(call), plan)
    step.name_plan(body.id, call)


def _ended(step: Step, body: r.Ended) -> None:
    entry = _asked(step, body.id)
    decision = entry.decision if entry else None
    if entry is None or decision is None or decision.status != "pending":
        return
    ending = body.ending
    refusal = refusal_in(ending)
    if refusal:
        step.refuse(entry.id if isinstance(entry, e.Plan) else entry.tool_use_id, refusal)
    if isinstance(entry, e.Plan) and isinstance(ending, r.Decided) and ending.choice.plan:
        entry = replace(entry, plan=excerpt(ending.choice.plan, MAX_OPEN))
    _decision(step, entry, replace(decision, ended=ending.at, **_facts(ending)))
    if isinstance(ending, r.Cancelled) and ending.cause in _OVER_AT_ONCE:
        step.drop(approval_key(body.id))


def _facts(ending: r.Decided | r.Expired | r.Cancelled) -> dict[str, Any]:
    match ending:
        case r.Decided(choice=choice, by=by):
            status = "denied" if choice.is_no else "allowed"
            return {"status": status, "by": str(by)[:200], "words": choice.words[:MAX_OPEN]}
        case r.Expired(after=after):
            return {"status": "timed_out", "words": f"nobody decided in {after:g} s"}
        case r.Cancelled(cause=cause, words=words):
            return {"status": "cancelled", "words": (words or cause)[:MAX_OPEN]}


def _delivered(step: Step, body: r.Delivered) -> None:
    entry = _asked(step, body.id)
    if entry and entry.decision and entry.decision.delivered is None:
        _decision(step, entry, replace(entry.decision, delivered=body.at))


def _outcome(step: Step, body: r.OutcomeSeen) -> None:
    entry = _asked(step, body.id)
    if entry and entry.decision and not entry.decision.outcome:
        _decision(step, entry, replace(entry.decision, outcome=body.outcome.how))


def _asked(step: Step, approval_id: str) -> e.Approval | e.Plan | None:
    call = step.state.plans.get(approval_id)
    if call is not None:
        return step.open(call_key(call), e.Plan)
    return step.open(approval_key(approval_id), e.Approval)


def _decision(step: Step, entry: e.Approval | e.Plan, decision: e.Decision) -> None:
    changed = step.change(entry, decision=decision)
    is_over = _is_over(decision)
    if isinstance(changed, e.Plan):
        is_over = is_over and changed.end is not None
        key = call_key(changed.id)
    else:
        is_told = changed.about == "elicitation" and decision.delivered is not None
        is_over = is_over or is_told
        key = approval_key(decision.id)
    if is_over:
        step.drop(key)
        step.state.plans.pop(decision.id, None)
    else:
        step.keep(key, changed)


#: Then nobody is left to be told.
_OVER_AT_ONCE = ("withdrawn", "process ended")


def _is_over(decision: e.Decision) -> bool:
    # Of a tool that may run, we hear what became of it; of a no, that it was told.
    is_told = decision.status not in ("pending", "allowed") and decision.delivered is not None
    return is_told or bool(decision.outcome)


def _escalated(step: Step, body: r.Escalated) -> None:
    for one in body.steps[-1:]:
        _status(step, "approval", one.to or "people", one.why)


def _judged(step: Step, body: r.Judged) -> None:
    if body.verdict.is_no:
        step.refuse(body.tool_use_id, "denied")


# --- launches


def _intended(step: Step, body: stream.Intended) -> None:
    how = "fork" if body.fork else "resume" if body.resume else "start"
    entry = _status(step, "launch", "intended", how)
    step.keep(launch_key(body.launch), entry)


def _started(step: Step, body: stream.Started) -> None:
    entry = step.open(launch_key(body.launch), e.Status)
    if entry:
        version = f", CLI {body.version}" if body.version else ""
        entry = step.change(entry, value="started", words=entry.words + version)
        step.keep(launch_key(body.launch), entry)


def _ready(step: Step, body: stream.Ready) -> None:
    entry = step.open(launch_key(body.launch), e.Status)
    if entry:
        step.drop(launch_key(body.launch))
        step.change(entry, value="ready")


def _launch_ended(step: Step, body: stream.LaunchEnded) -> None:
    step.drop(launch_key(body.launch))
    end_calls(step, "cancelled", of_main_loop=False)
    was_asked_to = body.how == "stopped"
    is_clean = body.how == "exited" and not body.code and not body.signal
    by = f"code {body.code}" if body.code is not None else ""
    by = f"signal {body.signal}" if body.signal else by
    words = ": ".join(part for part in (f"{body.how} {by}".strip(), body.words) if part)
    if was_asked_to or is_clean:
        _status(step, "launch", body.how, words)
    else:
        told = "\n".join(part for part in (words, body.stderr) if part)
        step.add(e.Error, source="launch", words=excerpt(told))


# --- the session


def _state(step: Step, body: stream.StateChanged) -> None:
    _status(step, "state", body.now, body.why)


def _budget(step: Step, body: stream.BudgetSet) -> None:
    fields = body.limits.__struct_fields__
    given = {name: getattr(body.limits, name) for name in fields}
    words = ", ".join(f"{name} {value:g}" for name, value in given.items() if value is not None)
    _status(step, "budget", "set", words or "no limits")


def _limited(step: Step, body: stream.Limited) -> None:
    _status(step, "limit", "needs login" if body.needs_login else "limited", body.words)


def _stderr(step: Step, body: stream.Stderr) -> None:
    step.add(e.Stderr, text=excerpt(body.text))


def _bad_line(step: Step, body: stream.Line) -> None:
    raw = raw_excerpt(body.bytes or bytes(body.line), 1_000)
    what = step.reading.kind.removeprefix("agent.")
    words = f"{what} line: {body.reason}\n{raw.text}".rstrip()
    step.add(e.Error, source="line", words=replace(raw, text=words))


_SHOWN: dict[str, Callable[[Step, Any], object]] = {
    stream.PROMPTED: _prompted,
    stream.WROTE: _wrote,
    stream.PAUSED: lambda step, b: _status(step, "pause", b.cause, b.words),
    stream.UNPAUSED: lambda step, b: _status(step, "pause", "over", b.cause),
    stream.LIMITED: _limited,
    stream.UNLIMITED: lambda step, _: _status(step, "limit", "over"),
    stream.STOP_ASKED: lambda step, b: _status(step, "stop", "asked", b.words or b.by),
    stream.STATE: _state,
    stream.BUDGET: _budget,
    stream.HANDED_OVER: lambda step, b: _status(step, "parent", "gone", b.words),
    stream.CHILD_CREATED: lambda step, b: _status(step, "child", b.session, b.name),
    stream.INTENDED: _intended,
    stream.STARTED: _started,
    stream.READY: _ready,
    stream.ENDED: _launch_ended,
    stream.UNREADABLE: _bad_line,
    stream.MALFORMED: _bad_line,
    stream.OVERSIZED: _bad_line,
    stream.STDERR: _stderr,
    r.REQUESTED: _requested,
    r.DECIDED: _ended,
    r.EXPIRED: _ended,
    r.CANCELLED: _ended,
    r.DELIVERED: _delivered,
    r.OUTCOME: _outcome,
    r.ESCALATED: _escalated,
    r.JUDGED: _judged,
}
