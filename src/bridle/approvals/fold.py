"""An approval as the fold of its events, and the view of it that fits into a record. Pure."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import replace

from .events import Body, Delivered, Ended, Escalated, OutcomeSeen
from .model import (
    AcceptElicitation,
    AnswerQuestion,
    Approval,
    ApprovalRequest,
    Approve,
    ApprovePlan,
    Cancelled,
    Choice,
    Decided,
    Ending,
    Expired,
    Kind,
    Reject,
    Requested,
    Status,
)

#: A record has at most 256 KB. What is larger than this is cut.
MAX_RECORD = 192 * 1024
#: So much of each text and of each list is kept, and less where that is still too much.
KEPT = ((2_000, 50), (200, 20))
KEPT_DEPTH = 6
#: The note at the end of what is cut is shorter than this: what is cut is not cut again.
SLACK = 100


def digest_of(kind: Kind, tool: str, given: dict[str, Any], directory: str = "") -> str:
    """Of what whoever decides must have seen. `directory` is the working directory where that is
    not the session's folder."""
    facts = [kind, tool, given, *([directory] if directory else [])]
    return sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()


def directory_of(request: ApprovalRequest) -> str:
    """The working directory of a call, if it is not the session's folder: then it must be seen."""
    return "" if request.cwd == request.folder else request.cwd


def fold(approval: Approval | None, seq: int, body: Body) -> Approval | None:
    """The approval after one more event; an event that is in it already changes nothing.

    The first end is the end: one that comes after it in the log changes nothing either.
    """
    if isinstance(body, Requested):
        if approval:
            return approval
        facts = {name: getattr(body, name) for name in Requested.__struct_fields__}
        return Approval(**facts, requested_seq=seq, seq=seq)
    if approval is None or seq <= approval.seq:
        return approval
    match body:
        case Ended(ending=ending) if approval.ending is None:
            status = status_after(ending)
            return replace(approval, status=status, ending=ending, ended_seq=seq, seq=seq)
        case Delivered(at=at) if approval.delivered is None:
            return replace(approval, delivered=at, seq=seq)
        case OutcomeSeen(outcome=outcome) if approval.outcome is None:
            return replace(approval, outcome=outcome, seq=seq)
        case Escalated(steps=steps) if approval.ending is None:
            return replace(approval, steps=(*approval.steps, *steps), seq=seq)
        case _:
            return replace(approval, seq=seq)


def status_after(ending: Ending) -> Status:
    match ending:
        case Decided(choice=Reject()):
            return "denied"
        case Decided():
            return "allowed"
        case Expired():
            return "timed_out"
        case Cancelled():
            return "cancelled"


# --- the view for lists and records


def view(approval: Approval) -> Approval:
    """The same where it fits into a record, else with everything long cut short."""
    if len(msgspec.json.encode(approval)) <= MAX_RECORD:
        return approval
    decision = approval.decision
    ending = approval.ending
    if decision:
        ending = replace(decision, choice=_shorter_choice(decision.choice))
    return replace(
        approval,
        input=_shorter(approval.input),
        reason=_shorter(approval.reason),
        notes=tuple(_shorter(list(approval.notes))),
        blocked_path=_shorter(approval.blocked_path),
        # Half a rule is another rule.
        suggestions=tuple(s for s in approval.suggestions if len(s) <= 1_000)[:20],
        ending=ending,
        is_cut=True,
    )


def _shorter_choice(choice: Choice) -> Choice:
    match choice:
        case Approve(input=given, message=message):
            return replace(choice, input=_shorter(given), message=_shorter(message))
        case ApprovePlan(plan=plan, message=message):
            return replace(choice, plan=_shorter(plan), message=_shorter(message))
        case AnswerQuestion(answers=answers):
            return replace(choice, answers=_shorter(answers))
        case AcceptElicitation(content=content):
            return replace(choice, content=_shorter(content))
        case Reject(message=message):
            return replace(choice, message=_shorter(message))


def _shorter(value: Any) -> Any:
    """The same value with long texts cut; as the head of its JSON where that is not enough."""
    for text, items in KEPT:
        cut = _cut(value, text, items, KEPT_DEPTH)
        if len(msgspec.json.encode(cut)) <= MAX_RECORD // 6:
            return cut
    head = _cut(msgspec.json.encode(value).decode(), KEPT[0][0], 0, 0)
    return {"…": head} if isinstance(value, dict) else [head]


def _cut(value: Any, text: int, items: int, depth: int) -> Any:
    match value:
        case str() if len(value) > text + SLACK:
            return f"{value[:text]}… ({len(value) - text} more characters)"
        case dict() | list() if not depth:
            return _cut(msgspec.json.encode(value).decode(), text, items, 0)
        case dict():
            shown = list(value.items())[:items]
            return {
                _cut(name, text, items, 0): _cut(item, text, items, depth - 1)
                for name, item in shown
            }
        case list():
            return [_cut(item, text, items, depth - 1) for item in value[:items]]
        case _:
            return value
