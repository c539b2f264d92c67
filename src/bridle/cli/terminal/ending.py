"""What came of a run: for people, for programs, and as an exit code."""

from __future__ import annotations

import sys
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from ...protocol.messages import Result
from .look import Mark
from .sitting import Sitting
from .words import count, duration, money

#: Exit codes. (2 is a misuse, 3 that no server is up: those are the command's own.)
DONE, FAILED, UNASKED, INTERRUPTED, UNREAD = 0, 1, 6, 130, 141

Outcome: TypeAlias = Literal["done", "failed", "interrupted", "stopped", "unread"]

_MARKS: dict[Outcome, Mark] = {
    "done": "yes",
    "failed": "no",
    "interrupted": "warn",
    "stopped": "warn",
    "unread": "warn",
}


class RunEnd(Struct, frozen=True, kw_only=True, tag_field="kind", tag="run_end"):
    """The last line with --json."""

    outcome: Outcome
    exit_code: int
    turns: int
    cost_usd: float
    seconds: float
    #: How many calls were denied because nobody could be asked.
    unasked: int
    #: What `--resume` takes.
    session_id: str | None


def outcome_of(result: Result) -> Outcome:
    if result.is_interrupted:
        return "interrupted"
    return "failed" if result.is_error or result.subtype != "success" else "done"


def code_of(outcome: Outcome, unasked: int) -> int:
    match outcome:
        case "failed":
            return FAILED
        case "interrupted" | "stopped":
            return INTERRUPTED
        case "unread":
            return UNREAD
        case "done":
            return UNASKED if unasked else DONE


def tell_end(end: RunEnd, sitting: Sitting, *, is_json: bool) -> None:
    """The last words: what came of it, what it took, and how to go on."""
    if is_json:
        sitting.outlet.write(f"{msgspec.json.encode(end).decode()}\n")
        return
    used = " · ".join([count(end.turns, "turn"), duration(end.seconds), money(end.cost_usd)])
    how = f"go on with: bridle run --resume {end.session_id}" if end.session_id else ""
    if sitting.outlet.isatty():
        sitting.view.say(f"{end.outcome} · {used}", _MARKS[end.outcome], how)
    else:  # in a file or a pipe is what the agent said, and no more
        sys.stderr.write("\n".join([f"{end.outcome} · {used}", *([how] if how else []), ""]))
