"""What the agent says, as entries of the transcript.

Owns which message makes which entry. A message or a block that is not known makes one too; known
ones that tell people nothing (progress, ids of tasks) make none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from ..protocol.careful import members_of, text_in
from ..protocol.content import local_command_output
from ..protocol.unknown import Unknown
from . import entries as e
from .excerpts import MAX_OPEN, excerpt, input_excerpt, picture, raw_excerpt
from .results import end_of
from .step import Step, call_key

EXIT_PLAN = "ExitPlanMode"


def said(step: Step, message: m.Message | Unknown) -> None:
    if isinstance(message, Unknown):
        strange(step, message)
        return
    show = _SHOWN.get(type(message))
    if show:
        show(step, message)


def strange(step: Step, what: Unknown, parent: str | None = None) -> None:
    raw = raw_excerpt(what.raw)
    step.add(e.Strange, parent=parent, type=what.type, reason=what.reason, raw=raw)


# --- what models say


def _assistant(step: Step, message: m.Assistant) -> None:
    output = local_command_output(message)
    if output is not None:
        step.add(e.CommandOutput, text=excerpt(output))
    elif message.error is not None:
        step.state.has_erred = True
        words = message.text or message.error
        step.add(e.Error, parent=message.parent_tool_use_id, source="api", words=excerpt(words))
    else:
        for block in message.message.content:
            _block(step, block, message)


def _block(step: Step, block: Block, message: m.Assistant | m.User) -> None:
    parent = message.parent_tool_use_id
    match block:
        case TextBlock(text=text):
            step.add(e.Text, parent=parent, text=excerpt(text), speaker=_speaker(message))
        case ThinkingBlock(thinking=text):
            step.add(e.Thinking, parent=parent, text=excerpt(text))
        case RedactedThinkingBlock():
            step.add(e.Thinking, parent=parent, text=excerpt(""), is_redacted=True)
        case ToolUseBlock() | ServerToolUseBlock():
            _call(step, block, parent)
        case ToolResultBlock() if isinstance(message, m.User):
            _result(step, block, message)
        case ImageBlock():
            step.add(e.Image, parent=parent, picture=picture(block))
        case Unknown():
            _unknown_block(step, block, parent)
        case _:
            kind = str(block.__struct_config__.tag)
            strange(step, Unknown(kind, b"", "not shown in a transcript"), parent)


def _speaker(message: m.Assistant | m.User) -> str:
    if isinstance(message, m.User):
        return "user"
    return "cli" if message.is_synthetic else "agent"


def _call(step: Step, block: ToolUseBlock | ServerToolUseBlock, parent: str | None) -> None:
    key = call_key(block.id)
    entry: e.ToolCall | e.Plan
    if block.name == EXIT_PLAN:
        text = excerpt(plan_in(block.input), MAX_OPEN)
        asked = step.open(key, e.Plan)
        if asked:
            # It was asked for before its line came.
            entry = step.change(asked, plan=asked.plan if asked.plan.text else text)
        else:
            entry = step.add(e.Plan, parent=parent, id=block.id, plan=text)
    else:
        given, is_cut = input_excerpt(block.input)
        entry = step.add(
            e.ToolCall,
            parent=parent,
            id=block.id,
            name=block.name,
            input=given,
            is_input_cut=is_cut,
        )
    step.keep(key, entry)


def plan_in(given: dict[str, Any]) -> str:
    plan = given.get("plan")
    return plan if isinstance(plan, str) else ""


def _result(step: Step, block: ToolResultBlock, message: m.User) -> None:
    key = call_key(block.tool_use_id)
    entry = step.open(key, e.ToolCall) or step.open(key, e.Plan)
    end = end_of(
        block,
        message,
        entry.name if isinstance(entry, e.ToolCall) else "",
        refusal=step.state.refused.pop(block.tool_use_id, None),
        at=step.reading.at,
        seq=step.reading.seq,
    )
    close_call(step, block.tool_use_id, end, message.parent_tool_use_id)


def close_call(step: Step, tool_use_id: str, end: e.CallEnd, parent: str | None = None) -> None:
    entry = step.drop(call_key(tool_use_id))
    match entry:
        case e.Plan(decision=decision):
            changed = step.change(entry, end=end)
            if decision and not decision.outcome:
                # Its approval may still tell what became of it.
                step.keep(call_key(tool_use_id), changed)
        case e.ToolCall():
            step.change(entry, end=end)
        case _:
            step.add(e.ToolResult, parent=parent, id=tool_use_id, end=end)


def _unknown_block(step: Step, block: Unknown, parent: str | None) -> None:
    """Tools that the service runs have results of many names, all with the id of their call."""
    called = text_in(members_of(block.raw), "tool_use_id")
    if called and block.type.endswith("_tool_result") and step.open(call_key(called), e.ToolCall):
        output = raw_excerpt(block.raw)
        at, seq = step.reading.at, step.reading.seq
        close_call(step, called, e.CallEnd(outcome="ok", at=at, seq=seq, output=output))
    else:
        strange(step, block, parent)


# --- what is said in the user's name


def _user(step: Step, message: m.User) -> None:
    output = local_command_output(message)
    if output is not None:
        step.add(e.CommandOutput, text=excerpt(output))
        return
    content = message.message.content
    blocks: list[Block] = [TextBlock(content)] if isinstance(content, str) else content
    for block in blocks:
        # A prompt that comes back: it is an entry since it was written.
        if message.is_replay and not isinstance(block, ToolResultBlock):
            continue
        _block(step, block, message)


# --- the end of a turn


def _result_of_turn(step: Step, result: m.Result) -> None:
    before = step.state.total
    after = step.state.total = before.after(result)
    has_failed = result.is_error or result.subtype != "success"
    outcome = "interrupted" if result.is_interrupted else "failed" if has_failed else "done"
    if outcome == "failed" and not step.state.has_erred:
        step.add(e.Error, source="turn", words=excerpt(result.text or result.subtype))
    step.state.has_erred = False
    end_calls(step, "cancelled", of_main_loop=True)
    step.add(
        e.TurnEnd,
        outcome=outcome,
        subtype=result.subtype,
        cost_usd=max(after.own - before.own, 0.0),
        seconds=result.duration_ms / 1000,
        denials=len(result.permission_denials),
        command=result.local_command or "",
    )


def end_calls(step: Step, outcome: e.Outcome, *, of_main_loop: bool) -> None:
    """No result will come. Subagents in the background may go on after the main loop's turn."""
    at, seq = step.reading.at, step.reading.seq
    for held in list(step.state.open.values()):
        entry = held.entry
        if not isinstance(entry, e.ToolCall | e.Plan) or entry.end:
            continue
        if not of_main_loop or entry.parent is None:
            close_call(step, entry.id, e.CallEnd(outcome=outcome, at=at, seq=seq))


# --- what the CLI tells of itself


def _status(step: Step, topic: e.Topic, value: str, words: str = "") -> None:
    step.add(e.Status, topic=topic, value=value, words=words[:MAX_OPEN])


def _init(step: Step, init: s.Init) -> None:
    _mode(step, init.permission_mode)
    if init.model != step.state.model:
        step.state.model = init.model
        _status(step, "model", init.model)


def _mode(step: Step, mode: str | None) -> None:
    if mode and mode != step.state.mode:
        step.state.mode = mode
        _status(step, "mode", mode)


def _status_told(step: Step, told: s.Status) -> None:
    _mode(step, told.permission_mode)
    if told.status == "compacting":
        _status(step, "compaction", "started")
    elif told.compact_error:
        _status(step, "compaction", "failed", told.compact_error)


def _compacted(step: Step, told: s.CompactBoundary) -> None:
    about = told.compact_metadata
    _status(step, "compaction", "done", f"{about.trigger}, {about.pre_tokens or 0} tokens before")


def _retry(step: Step, told: s.ApiRetry) -> None:
    words = f"attempt {told.attempt} of {told.max_retries}: {told.error}"
    _status(step, "retry", str(told.error_status or ""), words)


def _rate_limit(step: Step, told: m.RateLimitEvent) -> None:
    about = told.rate_limit_info
    if about.status != "allowed":
        _status(step, "limit", about.status, about.rate_limit_type or "")


def _auth(step: Step, told: m.AuthStatus) -> None:
    if told.error:
        step.add(e.Error, source="api", words=excerpt(told.error))


def _denied(step: Step, told: s.PermissionDenied) -> None:
    step.refuse(told.tool_use_id, "denied")


def _note(topic: e.Topic, value: str, words: str) -> Callable[[Step, Any], None]:
    """A status whose words, and whose value where the message has that field, are the message's."""

    def show(step: Step, told: Any) -> None:
        text = getattr(told, words, "") or ""
        _status(step, topic, str(getattr(told, value, value) or ""), str(text))

    return show


_SHOWN: dict[type, Callable[[Step, Any], object]] = {
    m.Assistant: _assistant,
    m.User: _user,
    m.Result: _result_of_turn,
    m.RateLimitEvent: _rate_limit,
    m.AuthStatus: _auth,
    m.ConversationReset: _note("conversation", "new", "trigger"),
    m.ToolUseSummary: _note("notice", "in short", "summary"),
    s.Init: _init,
    s.Status: _status_told,
    s.CompactBoundary: _compacted,
    s.ApiRetry: _retry,
    s.PermissionDenied: _denied,
    s.LocalCommandOutput: lambda step, told: step.add(e.CommandOutput, text=excerpt(told.content)),
    s.SessionTitleChanged: _note("notice", "new title", "title"),
    s.HookResponse: _note("hook", "outcome", "hook_name"),
    s.TaskStarted: _note("task", "started", "description"),
    s.TaskNotification: _note("task", "status", "summary"),
    s.Notification: _note("notice", "notification", "text"),
    s.Informational: _note("notice", "level", "content"),
    s.ModelRefusalFallback: _note("model", "fallback_model", "content"),
    s.ModelRefusalNoFallback: _note("model", "refused", "content"),
    s.MirrorError: _note("notice", "mirror failed", "error"),
    s.PluginInstall: _note("notice", "status", "name"),
    s.SessionWritesLost: _note("notice", "writes lost", "error_code"),
    s.WorkerShuttingDown: _note("notice", "shutting down", "reason"),
}
