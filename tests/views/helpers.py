"""Streams for folds: made from recordings of real CLIs, and from short words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from bridle.protocol.capabilities import TESTED_VERSIONS
from bridle.testing import load_recording
from bridle.views import Transcript, stream
from bridle.views.entries import Changes, TranscriptEntry

WIRES = Path(__file__).resolve().parents[1] / "wires"
SCENARIOS = sorted(file.stem for file in (WIRES / TESTED_VERSIONS[0]).glob("*.ndjson"))
OLD, NEW = TESTED_VERSIONS[0], TESTED_VERSIONS[-1]


class Told:
    """A stream that grows: each word gives an entry with the next number, a second later."""

    def __init__(self, launch: str = "one") -> None:
        self.entries: list[stream.Entry] = []
        self.launch = launch

    @property
    def now(self) -> float:
        return 1_000.0 + len(self.entries)

    def event(self, kind: str, body: Any, *, is_cut: bool = False) -> stream.Entry:
        encoded = body if isinstance(body, bytes) else msgspec.json.encode(body)
        entry = stream.Entry(len(self.entries) + 1, self.now, kind, encoded, is_cut)
        self.entries.append(entry)
        return entry

    def said(self, message: dict[str, Any] | bytes) -> stream.Entry:
        line = message if isinstance(message, bytes) else msgspec.json.encode(message)
        body = stream.Line(launch=self.launch, end=len(self.entries), line=Raw(line))
        return self.event(stream.SAID, body)

    def begins(self, launch: str, *, resume: str | None = None) -> None:
        self.launch = launch
        intended = stream.Intended(launch=launch, at=self.now, resume=resume)
        self.event(stream.INTENDED, intended)
        started = stream.Started(launch=launch, pid=1, born=1, boot="b", at=1, version="2")
        self.event(stream.STARTED, started)
        self.event(stream.READY, stream.Ready(launch=launch, at=self.now))

    def ends(self, how: stream.LaunchEnd = "exited", code: int | None = 0) -> stream.Entry:
        body = stream.LaunchEnded(launch=self.launch, how=how, at=self.now, code=code)
        return self.event(stream.ENDED, body)

    def wrote(self, line: dict[str, Any], uuid: str = "") -> stream.Entry:
        raw = Raw(msgspec.json.encode(line))
        body = stream.Wrote(launch=self.launch, start=0, what="prompt", id=uuid, line=raw)
        return self.event(stream.WROTE, body)

    def text(self, text: str, **more: Any) -> stream.Entry:
        return self.said(assistant({"type": "text", "text": text}, **more))

    def calls(self, id_: str, name: str, parent: str | None = None, **given: Any) -> stream.Entry:
        block = {"type": "tool_use", "id": id_, "name": name, "input": given}
        return self.said(assistant(block, parent_tool_use_id=parent))

    def gives(self, id_: str, content: Any = "", *, is_error: bool = False, **more: Any) -> None:
        block = {"type": "tool_result", "tool_use_id": id_, "content": content}
        block |= {"is_error": True} if is_error else {}
        self.said({"type": "user", "message": {"role": "user", "content": [block]}, **more})

    def result(self, cost: float = 0.0, **more: Any) -> stream.Entry:
        line = {"type": "result", "subtype": "success", "is_error": False, "duration_ms": 500}
        return self.said({**line, "total_cost_usd": cost, **more})

    def asks(self, id_: str, call: str, kind: str = "tool", **more: Any) -> stream.Entry:
        body = {"id": id_, "launch": self.launch, "kind": kind, "tool": "Bash", "input": {}}
        return self.event("approval.requested", {**body, "tool_use_id": call, **more})

    def decides(self, id_: str, choice: str = "approve", **more: Any) -> stream.Entry:
        by = {"type": "person", "name": "ann"}
        ending = {"type": "decided", "at": self.now, "by": by, "choice": {"type": choice, **more}}
        return self.event("approval.decided", {"id": id_, "ending": ending})

    def cancels(self, id_: str, cause: str) -> stream.Entry:
        ending = {"type": "cancelled", "at": self.now, "cause": cause, "words": ""}
        return self.event("approval.cancelled", {"id": id_, "ending": ending})


def assistant(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "m", "model": "opus", "role": "assistant", "usage": usage}
    return {"type": "assistant", "message": {**message, "content": list(blocks)}, **more}


_KINDS = {
    "control_request": stream.ASKED,
    "control_response": stream.ANSWERED,
    "control_cancel_request": stream.WITHDREW,
}


def recorded(version: str, scenario: str, told: Told | None = None) -> list[stream.Entry]:
    """The stream of a session that heard this recording."""
    told = told or Told()
    told.begins(f"launch-{len(told.entries)}")
    for number, entry in enumerate(load_recording(WIRES / version / f"{scenario}.ndjson")):
        if entry.dir not in ("in", "out"):
            continue
        kind = entry.value()["type"]
        if entry.dir == "in" and kind == "user":
            told.wrote(entry.value(), f"prompt-{number}")
        elif entry.dir == "out":
            body = stream.Line(launch=told.launch, end=number, type=kind, line=Raw(entry.line))
            told.event(_KINDS.get(kind, stream.SAID), body)
    told.ends()
    return told.entries


def shown(entries: list[stream.Entry]) -> list[TranscriptEntry]:
    """The whole transcript of a stream."""
    transcript = Transcript()
    for entry in entries:
        transcript.add(entry)
    return transcript.page(after=0, limit=len(transcript) + 1)


def of_kind(entries: list[TranscriptEntry], kind: type[Any]) -> list[Any]:
    return [entry for entry in entries if isinstance(entry, kind)]


def kinds(entries: list[TranscriptEntry]) -> list[str]:
    return [str(entry.__struct_config__.tag) for entry in entries]


def the_only(changes: Changes[TranscriptEntry]) -> Any:
    (entry,) = [*changes.added, *changes.changed]
    return entry
