"""How the latest turn of a session stands, in one word: one table over its state and outcome.

Owns the words that agents are told. They follow from the session's record, which has more of them
(docs/states.md).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from ..supervisor.record import SessionRecord
from ..supervisor.states import ENDED, Outcome
from ..views.stream import State

Status: TypeAlias = Literal[
    "idle", "running", "awaiting_permission", "complete", "failed", "cancelled", "lost"
]

#: While a turn is in one of these, more will come of it.
AT_WORK: frozenset[Status] = frozenset({"running", "awaiting_permission"})

#: Of a session that stands still with nothing to do: what came of its latest turn.
_STILL: dict[Outcome, Status] = {
    "none": "idle",
    "running": "running",
    "complete": "complete",
    "failed": "failed",
    "cancelled": "cancelled",
    "lost": "lost",
}
#: Of one that has ended before its turn did: how it ended.
_CUT_SHORT: dict[State, Status] = {"stopped": "cancelled", "failed": "failed", "lost": "lost"}


def status_of(record: SessionRecord) -> Status:
    has_prompt = bool(record.waiting or record.unanswered)
    return status_in(record.state, record.outcome, has_prompt=has_prompt)


def status_in(state: State, outcome: Outcome, *, has_prompt: bool) -> Status:
    """`has_prompt`: it was told something that has no result yet, or is about to be told."""
    if state in ENDED:
        if has_prompt or outcome == "running":
            return _CUT_SHORT[state]
        if outcome == "none" and state != "stopped":
            return _CUT_SHORT[state]
        return _STILL[outcome]
    if state == "awaiting approval":
        return "awaiting_permission"
    if state == "running" or has_prompt:
        return "running"
    return _STILL[outcome]


def is_at_work(record: SessionRecord) -> bool:
    return status_of(record) in AT_WORK
