"""What is underway: which call runs, for how long, what it has cost, who is waited for, and the
words that are just being written.

Owns the few lines at the bottom of a terminal. Nothing here is final: the transcript says it all
again.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.text import Text

from ...views import entries as e
from . import calls
from .look import SPINNER, line
from .words import amount, count, duration, money, seen

#: So many lines of what is being written are shown.
MOST_LIVE = 6
#: So much of it is kept.
MOST_KEPT = 8_000
SPINS_PER_SECOND = 8


class _Event(Struct):
    type: str = ""
    delta: dict[str, Any] = {}
    content_block: dict[str, Any] = {}


class _Delta(Struct):
    event: _Event
    parent_tool_use_id: str | None = None


_decode = msgspec.json.Decoder(_Delta).decode
#: Only for its widths.
_PLAIN = Console(file=io.StringIO(), width=80)


class Underway:
    """For one agent."""

    def __init__(self, folder: str = "", now: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._now = now
        self._calls: dict[str, str] = {}
        self._asked: set[str] = set()
        self._live = ""
        self._is_thinking = False
        #: Since when a turn runs; None while none does.
        self.since: float | None = None
        self.cost_usd = 0.0
        self.tokens = 0
        #: In place of what it does: that it is being interrupted, for example.
        self.notice = ""
        #: In place of the number of those that wait: what can be done about them.
        self.hint = ""

    @property
    def pending(self) -> int:
        """How many approvals wait."""
        return len(self._asked)

    # --- what is told

    def take(self, entry: e.TranscriptEntry) -> None:
        match entry:
            case e.Prompt(status="written") if self.since is None:
                self.since = entry.at
            case e.Text(parent=None) | e.Thinking(parent=None):
                self._begin(entry.at)
                self._forget_words()
            case e.ToolCall(end=None):
                self._begin(entry.at)
                self._forget_words()
                self._calls[entry.id] = calls.brief(entry.name, entry.input, self._folder)
            case e.ToolCall():
                self._calls.pop(entry.id, None)
            case e.Approval(decision=decision) | e.Plan(decision=e.Decision() as decision):
                self._decision(decision)
            case e.TurnEnd():
                self._end()
                self.cost_usd += entry.cost_usd
            case e.Error(source="launch"):
                self._end()
            case e.Status(topic="state", value=state):
                if state in ("running", "awaiting approval"):
                    self._begin(entry.at)
                else:
                    self._end()

    def hear(self, delta: bytes) -> None:
        """A piece of a message that is being made."""
        try:
            told = _decode(delta)
        except msgspec.MsgspecError:
            return  # the whole message comes, and is judged then
        if told.parent_tool_use_id is not None:
            return
        match told.event.type:
            case "content_block_start":
                self._live = ""
                self._is_thinking = told.event.content_block.get("type") == "thinking"
            case "content_block_delta":
                text = told.event.delta.get("text")
                if isinstance(text, str):
                    self._live = (self._live + text)[-MOST_KEPT:]

    def _begin(self, at: float) -> None:
        if self.since is None:
            self.since = at

    def _end(self) -> None:
        self.since = None
        self.notice = ""
        self._calls.clear()
        self._forget_words()

    def _forget_words(self) -> None:
        self._live, self._is_thinking = "", False

    def _decision(self, decision: e.Decision) -> None:
        if decision.status == "pending":
            self._asked.add(decision.id)
        else:
            self._asked.discard(decision.id)

    # --- what is shown

    def lines(self, width: int, height: int) -> list[Text]:
        if self.since is None and not self.notice:
            return []
        return [*self._words(width, min(MOST_LIVE, height - 3)), self._status(width)]

    def _words(self, width: int, most: int) -> list[Text]:
        text = seen(self._live).strip("\n")
        if not text or most < 1:
            return []
        wrapped = Text(text).wrap(_PLAIN, max(width - 2, 10))
        found = [line("  ", (one.plain.rstrip(), "dim")) for one in wrapped[-most:]]
        return [Text(""), *found]

    def _status(self, width: int) -> Text:
        now = self._now()
        spin = SPINNER[int(now * SPINS_PER_SECOND) % len(SPINNER)]
        facts = [duration(max(now - self.since, 0.0), coarse=True)] if self.since else []
        facts += [f"{amount(self.tokens)} tokens"] if self.tokens else []
        facts += [money(self.cost_usd)] if self.cost_usd else []
        pending = f"{count(self.pending, 'approval')} pending" if self.pending else ""
        waits = f" · {self.hint or pending}" if self.hint or pending else ""
        told = " · ".join(facts)
        room = width - len(told) - len(waits) - 5
        what = Text(self.notice or self._doing(), style="bold")
        what.truncate(max(room, 10), overflow="ellipsis")
        text = Text.assemble((f"{spin} ", "cyan"), what, (f" · {told}" if told else "", "dim"))
        text.append(waits, "yellow")
        return text

    def _doing(self) -> str:
        if self._calls:
            latest = next(reversed(self._calls.values()))
            return f"{latest} (+{len(self._calls) - 1})" if len(self._calls) > 1 else latest
        if self._live:
            return "Writing"
        return "Thinking" if self._is_thinking else "Working"
