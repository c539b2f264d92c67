"""When something of a transcript is shown: what is new, and what has come of what was shown.

Owns the order and the standing together: a result is shown below its call, or names it if other
things have come between. It takes entries in any number of versions, each again if need be, and
shows nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ...views import entries as e
from . import calls, rendering
from .look import Block
from .rendering import Look

#: So many calls are remembered for the subagents that they began.
MOST_DEPTHS = 1_000
DEEPEST = 4


class Printer:
    """For one transcript at one place."""

    def __init__(self, look: Look) -> None:
        self._look = look
        #: What more may come of, by position; and of each plan, what was told.
        self._open: set[int] = set()
        self._plans: dict[int, set[str]] = {}
        self._depths: dict[str, int] = {}
        self._first = 0
        self._last = 0
        #: The call below which things can still be put.
        self._call = ""
        self._is_first = True
        #: Calls of which it was told that somebody said no; and what they would change.
        self._refused: set[str] = set()
        self._known: set[str] = set()

    def is_told_otherwise(self) -> None:
        """Something that is in no transcript stands above what comes next."""
        self._is_first, self._call = False, ""

    def take(self, entry: e.TranscriptEntry) -> list[Block]:
        """What is to be shown now that this entry is so."""
        if entry.position > self._last:
            self._first = self._first or entry.position
            self._last = entry.position
            blocks = self._new(entry)
        else:
            blocks = self._changed(entry)
        depth = self._depth(entry.parent)
        return [self._placed(block, depth) for block in blocks]

    def _placed(self, block: Block, depth: int) -> Block:
        has_gap = block.has_gap and not block.is_under and not self._is_first
        self._is_first = False
        return replace(block, depth=depth, has_gap=has_gap)

    def _depth(self, parent: str | None) -> int:
        return min(self._depths.get(parent, 0) + 1, DEEPEST) if parent else 0

    # --- what is new

    def _new(self, entry: e.TranscriptEntry) -> list[Block]:
        match entry:
            case e.ToolCall():
                return self._new_call(entry)
            case e.Plan():
                self._plans[entry.position] = set()
                return self._plan(entry)
            case e.Approval():
                return self._new_approval(entry)
            case e.Status(topic="launch", value="intended" | "started"):
                self._open.add(entry.position)
                return []
        blocks = rendering.shown(entry, self._look)
        if blocks:
            self._call = ""
        return blocks

    def _new_call(self, entry: e.ToolCall) -> list[Block]:
        if entry.name in calls.SUBAGENTS:
            self._depths[entry.id] = self._depth(entry.parent)
            if len(self._depths) > MOST_DEPTHS:
                del self._depths[next(iter(self._depths))]
        blocks = rendering.call(entry, self._look)
        # Calls that follow each other stand together.
        blocks[0] = replace(blocks[0], has_gap=not self._call)
        self._call = entry.id
        if entry.end is None:
            self._open.add(entry.position)
            return blocks
        return [*blocks, *self._ending(entry, is_apart=False)]

    def _new_approval(self, entry: e.Approval) -> list[Block]:
        if entry.decision.status != "pending":
            return self._decided(entry, entry.decision)
        self._open.add(entry.position)
        # Whoever is asked is shown what would change; and so is who may only look on.
        is_shown_before = not entry.tool_use_id or entry.tool_use_id in self._known
        self._known.add(entry.tool_use_id or "")
        if self._look.is_asked_here:
            return []
        changed = [] if is_shown_before else rendering.changes(entry.tool, entry.input)
        return [*changed, *rendering.asked(entry, self._look)]

    # --- what is otherwise now

    def _changed(self, entry: e.TranscriptEntry) -> list[Block]:
        if entry.position in self._plans and isinstance(entry, e.Plan):
            return self._plan(entry)
        if entry.position not in self._open:
            return self._changed_before_us(entry)
        match entry:
            case e.ToolCall(end=e.CallEnd()):
                self._open.remove(entry.position)
                return self._result(entry)
            case e.Approval(decision=decision) if decision.status != "pending":
                self._open.remove(entry.position)
                return self._decided(entry, decision)
            case e.Status(value=value) if value not in ("intended", "started"):
                self._open.remove(entry.position)
                return rendering.shown(entry, self._look)
        return []

    def _changed_before_us(self, entry: e.TranscriptEntry) -> list[Block]:
        """Of what was not shown here, only the end is, and only when it comes."""
        is_older = entry.position < self._first
        if is_older and isinstance(entry, e.ToolCall) and entry.end:
            return self._result(entry) if entry.end.seq == entry.changed else []
        return []

    def _result(self, entry: e.ToolCall) -> list[Block]:
        if entry.id in self._refused and entry.end and entry.end.outcome in ("denied", "cancelled"):
            self._refused.discard(entry.id)
            return []
        is_apart = self._call != entry.id
        if is_apart:
            self._call = ""
        return self._ending(entry, is_apart=is_apart)

    def _ending(self, entry: e.ToolCall, *, is_apart: bool) -> list[Block]:
        """What it has changed is shown when it has, unless it was shown before."""
        is_due = entry.id not in self._known and entry.end and entry.end.outcome == "ok"
        self._known.discard(entry.id)
        changed = rendering.changes(entry.name, entry.input) if is_due else []
        ended = rendering.result(entry, self._look, is_apart=is_apart)
        return [*ended, *changed] if is_apart else [*changed, *ended]

    def _plan(self, entry: e.Plan) -> list[Block]:
        """Each part of it once. Where it is asked here, whoever asks has shown the plan."""
        told, status = self._plans[entry.position], _status(entry)
        is_over = entry.end is not None or status not in ("", "pending")
        if status == "pending" and self._look.is_asked_here:
            told |= {"plan", "asked"}
        blocks: list[Block] = []
        if "plan" not in told and (is_over or not self._look.is_asked_here):
            blocks += rendering.plan(entry)
            told.add("plan")
        if "asked" not in told and status == "pending":
            blocks += rendering.asked(entry, self._look)
            told.add("asked")
        if "decided" not in told and entry.decision and status != "pending":
            blocks += rendering.decided(entry.decision, self._look, "the plan is")
            told.add("decided")
        if entry.end is not None and "decided" in told:
            del self._plans[entry.position]
        self._call = "" if blocks else self._call
        return blocks

    def _decided(self, entry: e.Approval, decision: e.Decision) -> list[Block]:
        is_apart = self._call != (entry.tool_use_id or "")
        named = rendering.about(entry, self._look) if is_apart else ""
        if decision.status != "allowed" and entry.tool_use_id:
            self._refused.add(entry.tool_use_id)
        return rendering.decided(decision, self._look, named, about=entry.about)


def unfolded(entries: Sequence[e.TranscriptEntry]) -> Iterator[e.TranscriptEntry]:
    """Entries that are all there already, as they came: a call, what was said to it, its result."""
    waiting = list(reversed(entries))
    while waiting:
        entry, after = waiting.pop(), waiting[-1] if waiting else None
        match entry, after:
            case e.ToolCall(id=called, end=e.CallEnd()), e.Approval(tool_use_id=asked) if (
                called == asked
            ):
                yield replace(entry, end=None)
                yield waiting.pop()
        yield entry


def _status(entry: e.Plan) -> str:
    return entry.decision.status if entry.decision else ""
