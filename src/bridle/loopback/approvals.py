"""What is asked of an agent by those below it, and what it decides.

Owns what an approval looks like to an agent. Whether it may decide, and whom it is put to next, is
the supervisor's: an agent is told of what was put to it, and of the rest only that others wait.
"""

from __future__ import annotations

from itertools import accumulate

import msgspec
from msgspec import Struct

from ..approvals.errors import AlreadyDecided, UnknownApproval
from ..approvals.model import (
    AnswerQuestion,
    Approval,
    Approve,
    ApprovePlan,
    Choice,
    Decided,
    ForSession,
    Once,
    Reject,
)
from ..supervisor import SessionRecord
from ..views.detail import SIZES, Detail, cut_input
from .arguments import Escalate, Pending, Respond
from .calls import NOTICE, Call, Json
from .folds import Room
from .refusals import Refusal, no_approval


class Asked(Struct, frozen=True):
    """What a session waits for: what was put to the caller, and how many of it had no room.
    `is_callers`: one of them is put to the caller now."""

    shown: list[Json]
    left_out: int = 0
    is_callers: bool = False
    waits_for_others: bool = False


async def asked_of(call: Call, record: SessionRecord, room: Room) -> Asked:
    """What one session asks, in half of the room."""
    if not record.approvals:
        return Asked([])
    found = []
    for one in record.approvals:
        try:
            approval = await call.supervisor.approvals.get(one)
        except UnknownApproval:
            continue  # its session was deleted, or it has ended
        if approval.status == "pending":
            found.append(approval)
    callers = [approval for approval in found if approval.was_put_to(call.caller)]
    callers.sort(key=lambda approval: (approval.asked != call.caller, approval.created))
    most = min(SIZES["normal"].input, room.each)
    shown = _fitting([_shown(call, one, record.name, most) for one in callers], room.all // 2)
    return Asked(
        shown,
        len(callers) - len(shown),
        any(approval.asked == call.caller for approval in callers),
        any(approval.asked != call.caller for approval in found),
    )


def _fitting(shown: list[Json], room: int) -> list[Json]:
    """As many as there is room for: one at least."""
    sizes = accumulate(len(msgspec.json.encode(one)) for one in shown)
    return [
        one
        for number, (one, size) in enumerate(zip(shown, sizes, strict=True))
        if number == 0 or size <= room
    ]


def _shown(call: Call, approval: Approval, name: str, most: int) -> Json:
    """As data: nothing of it is put into words of our own."""
    given, lost = cut_input(approval.input, most)
    told: Json = {
        "id": approval.id,
        "session_id": approval.session,
        "session_name": name,
        "kind": approval.kind,
        "tool_name": approval.tool,
        "tool_use_id": approval.tool_use_id,
        "input": given,
        "reason": approval.reason[:1_000],
        "created_at": approval.created,
        "is_yours_now": approval.asked == call.caller,
    }
    until = approval.steps[-1].until if approval.steps else None
    if until is not None:
        told["goes_on_at"] = until
    if lost:
        told["input_cut"] = lost
    return told


async def pending(call: Call, arguments: Pending) -> Json:
    """What is put to the caller, by all below it."""
    if arguments.approval_id is not None:
        return await _one(call, arguments.approval_id, arguments.detail)
    if arguments.session_id is None and arguments.name is None:
        records = [record for record in call.all_below() if record.approvals]
    else:
        records = [call.named(arguments)]
    room = Room.of("normal", max(len(records), 1))
    asked = [(record.id, await asked_of(call, record, room)) for record in records]
    found = [shown for _, one in asked for shown in one.shown]
    found.sort(key=lambda one: (not one["is_yours_now"], one["created_at"]))
    shown = _fitting(found, SIZES["normal"].answer)
    return {
        "type": "ok",
        "pending_approvals": shown,
        "more_pending": sum(one.left_out for _, one in asked) + len(found) - len(shown),
        "sessions_waiting_for_others": [session for session, one in asked if one.waits_for_others][
            :100
        ],
        "notice": NOTICE,
    }


async def _one(call: Call, approval_id: str, detail: Detail) -> Json:
    approval, record = await _found(call, approval_id)
    shown = _shown(call, approval, record.name, SIZES[detail].input)
    return {
        "type": "ok",
        "pending_approvals": [shown] if approval.status == "pending" else [],
        "status": approval.status,
        "notice": NOTICE,
    }


async def respond(call: Call, arguments: Respond) -> Json:
    approval, _ = await _found(call, arguments.approval_id)
    choice = _choice(approval, arguments)
    try:
        await call.supervisor.respond(approval.id, choice, by=call.agent)
    except AlreadyDecided as error:
        if not _is_same(error.approval, call, choice):
            raise
    except UnknownApproval:
        raise no_approval(approval.id) from None
    return {"type": "ok", "approval_id": approval.id}


async def escalate(call: Call, arguments: Escalate) -> Json:
    approval, _ = await _found(call, arguments.approval_id)
    if approval.asked != call.caller and any(step.by == call.caller for step in approval.steps):
        return {"type": "ok", "approval_id": approval.id, "put_to": approval.asked or "people"}
    try:
        after = await call.supervisor.escalate(approval.id, by=call.agent, why=arguments.why)
    except UnknownApproval:
        raise no_approval(approval.id) from None
    return {"type": "ok", "approval_id": after.id, "put_to": after.asked or "people"}


async def _found(call: Call, approval_id: str) -> tuple[Approval, SessionRecord]:
    """One that was put to the caller, of a session that is below it still."""
    try:
        approval = await call.supervisor.approvals.get(approval_id)
        record = call.below(approval.session)
    except (UnknownApproval, Refusal):
        raise no_approval(approval_id) from None
    if not approval.was_put_to(call.caller):
        raise no_approval(approval_id)
    return approval, record


def _choice(approval: Approval, arguments: Respond) -> Choice:
    """What fits what is asked: an argument that does not is refused, not dropped."""
    given, message = arguments, arguments.message
    remember = ForSession(given.remember) if given.remember else Once()
    is_tool = approval.kind == "tool"
    if given.updated_input is not None and not (is_tool and given.approve):
        raise Refusal("invalid_arguments", "updated_input is for a tool that you approve")
    if given.answers is not None and not (approval.kind == "question" and given.approve):
        raise Refusal("invalid_arguments", "answers are for a question that you approve")
    if given.remember is not None and not is_tool:
        raise Refusal("invalid_arguments", "only what is decided of a tool can be remembered")
    if not given.approve:
        return Reject(message=message, remember=remember)
    match approval.kind:
        case "tool":
            return Approve(input=given.updated_input, message=message, remember=remember)
        case "plan":
            return ApprovePlan(message=message)
        case "question":
            if not given.answers:
                words = "a question needs `answers`: the text of each question, and its answer"
                raise Refusal("invalid_arguments", words)
            return AnswerQuestion(given.answers, message)
        case "elicitation":
            raise Refusal("may_not_decide", "only a person may: loopback_escalate passes it on")


def _is_same(approval: Approval, call: Call, choice: Choice) -> bool:
    """It was decided so, by the caller: the answer to that was lost."""
    ending = approval.ending
    return isinstance(ending, Decided) and ending.by == call.agent and ending.choice == choice
