"""The transcript's state, and what one event adds to and changes in the transcript.

Owns positions and what is kept open: calls without a result, approvals without an outcome, prompts
that are not written yet, launches that are not ready. Which events do that is for `speech` (what
the agent says) and `doings` (all else).
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .costs import Total
from .entries import Approval, Changes, Outcome, Plan, Prompt, Status, ToolCall, TranscriptEntry
from .reading import Reading

#: So much is kept open, so that the state fits into a record (256 KB). Beyond it the oldest is let
#: go: what comes of it later is an entry of its own.
MAX_OPEN_BYTES = 160 * 1024
MAX_OPEN_ENTRIES = 200
MAX_NAMES = 200

OpenEntry = ToolCall | Plan | Approval | Prompt | Status


class Open(Struct, frozen=True):
    entry: OpenEntry
    weight: int


class TranscriptState(Struct, kw_only=True, omit_defaults=True):
    """What a transcript's fold must remember: not the entries, but what may still change."""

    #: The last event that is in it.
    seq: int = 0
    #: How many entries there are.
    count: int = 0
    open: dict[str, Open] = {}
    weight: int = 0
    #: Calls that somebody or a rule said no to, until their result comes.
    refused: dict[str, Outcome] = {}
    #: Approvals of plans, and the calls that those plans are.
    plans: dict[str, str] = {}
    launch: str = ""
    mode: str = ""
    model: str = ""
    total: Total = Total()
    #: Whether this turn has shown an error of the service.
    has_erred: bool = False


_E = TypeVar("_E")
_O = TypeVar("_O", bound=OpenEntry)


class Step:
    """One event on its way into the transcript."""

    def __init__(self, state: TranscriptState, reading: Reading) -> None:
        self.state = state
        self.reading = reading
        self._added: dict[int, TranscriptEntry] = {}
        self._changed: dict[int, TranscriptEntry] = {}

    @property
    def changes(self) -> Changes[TranscriptEntry]:
        return Changes(list(self._added.values()), list(self._changed.values()))

    def add(self, kind: type[_E], *, parent: str | None = None, **facts: Any) -> _E:
        self.state.count += 1
        seq = self.reading.seq
        make: Any = kind
        entry = make(
            position=self.state.count,
            seq=seq,
            changed=seq,
            at=self.reading.at,
            launch=self.reading.launch,
            parent=parent,
            **facts,
        )
        self._added[entry.position] = entry
        return entry  # type: ignore[no-any-return]

    def change(self, entry: _O, **facts: Any) -> _O:
        new = replace(entry, changed=self.reading.seq, **facts)
        known = self._added if new.position in self._added else self._changed
        known[new.position] = new
        return new

    def keep(self, key: str, entry: OpenEntry) -> None:
        """More may come of it."""
        self.drop(key)
        weight = len(msgspec.json.encode(entry))
        self.state.open[key] = Open(entry, weight)
        self.state.weight += weight
        while self.state.weight > MAX_OPEN_BYTES or len(self.state.open) > MAX_OPEN_ENTRIES:
            self.drop(next(iter(self.state.open)))

    def drop(self, key: str) -> OpenEntry | None:
        """Nothing more can come of it."""
        held = self.state.open.pop(key, None)
        if held is None:
            return None
        self.state.weight -= held.weight
        return held.entry

    def open(self, key: str, kind: type[_O]) -> _O | None:
        held = self.state.open.get(key)
        return held.entry if held and isinstance(held.entry, kind) else None

    def refuse(self, tool_use_id: str | None, outcome: Outcome) -> None:
        if tool_use_id:
            self.state.refused[tool_use_id] = outcome
            forget_oldest(self.state.refused, MAX_NAMES)

    def name_plan(self, approval_id: str, tool_use_id: str) -> None:
        self.state.plans[approval_id] = tool_use_id
        forget_oldest(self.state.plans, MAX_NAMES)


def forget_oldest(names: dict[str, _E], limit: int) -> None:
    """A dict has its keys in the order in which they came."""
    while len(names) > limit:
        del names[next(iter(names))]


# The keys under which entries are kept open.


def call_key(tool_use_id: str) -> str:
    return f"call {tool_use_id}"


def approval_key(approval_id: str) -> str:
    return f"approval {approval_id}"


def prompt_key(uuid: str) -> str:
    return f"prompt {uuid}"


def launch_key(launch: str) -> str:
    return f"launch {launch}"
