"""Whether a turn runs, and what came of the latest one: what the lines of the wire say of it.

Owns which prompts wait for a result. New CLIs name the prompts of a turn, others tell when they
take one up, before it begins or while it runs; of the oldest we know the order in which they take
them up, and they repeat one that joins a turn which runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from ..views.stream import Entry
from . import lines
from .record import SessionRecord, know
from .states import Outcome


def line(record: SessionRecord, entry: Entry) -> str:
    """How far the output was read. Gives the line's type, if it is of the present process."""
    record.last_at = entry.at
    launch = record.launch
    name, end, kind = lines.line_of(entry)
    if launch is None or name != launch.id:
        return ""
    if end > launch.output_end:
        launch.output_end = end
    return kind


def said(record: SessionRecord, entry: Entry) -> None:
    kind = line(record, entry)
    if kind == "assistant" and not record.is_id_open:
        return  # most are this
    change = _SAYINGS.get(kind)
    if change is not None:
        change(record, entry)


def _began(record: SessionRecord, entry: Entry) -> None:
    """A turn begins: for prompts of ours, or by itself."""
    record.is_id_open = True
    if not record.facts.has_process:
        return
    named = lines.prompts_begun(entry)
    if named is None and not record.joined:
        named = record.unanswered[:1]  # an old CLI takes up the next one
    record.is_turn_open = True
    _join(record, named or [])
    know(record, entry.at, is_turn_running=True)


def _join(record: SessionRecord, uuids: list[str]) -> None:
    record.joined += [u for u in uuids if u in record.unanswered and u not in record.joined]


def _by_user(record: SessionRecord, entry: Entry) -> None:
    _learn_id(record, entry)
    if len(record.unanswered) > 1:
        # An old CLI repeats a prompt that joins a turn which runs.
        repeated = lines.repeated_in(entry)
        if repeated:
            _join(record, [repeated])


def _learn_id(record: SessionRecord, entry: Entry) -> None:
    found = lines.session_id_in(entry) if record.is_id_open else None
    if found:
        record.claude_session_id = found
        record.is_id_open = False


def _reset(record: SessionRecord, _: Entry) -> None:
    record.is_id_open = True


def _lived(record: SessionRecord, entry: Entry) -> None:
    """A new CLI tells of prompts that it takes up, has done with, or has let go."""
    life = lines.life_in(entry)
    if life.state == "started" or (life.state == "completed" and record.is_turn_open):
        _join(record, [life.command_uuid])
    elif life.state == "completed" and life.command_uuid in record.unanswered:
        # No result has named it.
        _answered(record, [life.command_uuid], entry.at, "complete")
    elif life.state == "cancelled" and not (
        record.is_turn_open and life.command_uuid in record.joined
    ):
        record.joined = [uuid for uuid in record.joined if uuid != life.command_uuid]
        _answered(record, [life.command_uuid], entry.at, "cancelled")


def _resulted(record: SessionRecord, entry: Entry) -> None:
    record.turns += 1
    try:
        result = lines.result_in(entry)
    except msgspec.MsgspecError:
        record.is_turn_open = False
        _answered(record, record.joined or record.unanswered[:1], entry.at, "failed")
        raise
    record.usage.tell(result)
    record.claude_session_id = result.session_id or record.claude_session_id
    # The next turn may be of another conversation.
    record.is_id_open = True
    answered, last = result.user_message_uuids or [], result.user_message_uuid
    if last and not answered:  # it may be the last of several that were merged
        _join(record, [last])
        answered = record.joined if last in record.joined else [last]
    if not answered and not result.origin:
        answered = record.joined or record.unanswered[:1]
    record.is_turn_open = False
    _answered(record, answered, entry.at, result.outcome)


def _answered(record: SessionRecord, uuids: list[str], at: float, outcome: Outcome) -> None:
    record.unanswered = [uuid for uuid in record.unanswered if uuid not in uuids]
    if not record.facts.has_process:
        return  # it was read late: how the turn ended has been told
    record.joined = [] if not record.is_turn_open else record.joined
    is_running = record.is_turn_open or bool(record.unanswered)
    record.outcome = outcome
    know(record, at, is_turn_running=is_running)


def lost(record: SessionRecord, at: float) -> None:
    """No turn runs, and how the last one ended is not known."""
    if record.facts.is_turn_running:
        record.is_turn_open = False
        _answered(record, list(record.unanswered), at, "lost")


def wrote(record: SessionRecord, entry: Entry) -> None:
    record.last_at = entry.at
    launch, what, uuid = lines.written_in(entry)
    if what != "prompt":
        return
    record.waiting = [prompt for prompt in record.waiting if prompt.uuid != uuid]
    if record.launch_with(launch) and record.facts.has_process:
        record.unanswered.append(uuid)
        know(record, entry.at, is_turn_running=True)


_Change: TypeAlias = Callable[[SessionRecord, Entry], None]

_SAYINGS: Final[dict[str, _Change]] = {
    "assistant": _learn_id,
    "user": _by_user,
    "result": _resulted,
    "system/init": _began,
    "conversation_reset": _reset,
    "command_lifecycle": _lived,
}
