"""A session's stream, made by hand: entries as the supervisor would append them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from bridle.approvals.events import Ended, event_of
from bridle.approvals.model import Cancelled, Decided, Ending, Expired, Person, Reject, Requested
from bridle.supervisor.fold import fold
from bridle.supervisor.record import SessionRecord, blank
from bridle.views import stream
from bridle.views.stream import BODIES, Entry, Limits

LAUNCH = "l1"


class Tape:
    """A stream, and the record that follows it. Every event comes a second after the last."""

    def __init__(self, session: str = "s1", *, is_created: bool = True, **created: Any) -> None:
        self.record: SessionRecord = blank()
        self.entries: list[Entry] = []
        self.at = 1000.0
        self.launch = LAUNCH
        self._end = 0
        if is_created:
            fields: dict[str, Any] = {"name": session, "folder": "/f", "at": self.at} | created
            self.put(stream.CREATED, stream.Created(id=session, **fields))

    def put(self, kind: str, body: Struct | bytes, *, is_cut: bool = False) -> SessionRecord:
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        entry = Entry(self.record.seq + 1, self.at, kind, raw, is_cut)
        self.entries.append(entry)
        self.record = fold(self.record, entry)
        self.at += 1
        return self.record

    def tell(self, kind: str, **fields: Any) -> SessionRecord:
        """An event by its kind; `at` is now, `launch` the present one."""
        body = BODIES[kind]
        if "at" in body.__struct_fields__:
            fields.setdefault("at", self.at)
        if "launch" in body.__struct_fields__:
            fields.setdefault("launch", self.launch)
        return self.put(kind, body(**fields))

    def say(self, kind: str, message: dict[str, Any], *, cut: int = 0) -> SessionRecord:
        """A line of the agent; of `cut` bytes only, where that is given."""
        line = msgspec.json.encode({"type": kind.split("/")[0]} | message)
        self._end += len(line) + 1
        body = msgspec.json.encode(
            stream.Line(launch=self.launch, end=self._end, type=kind, line=Raw(line))
        )
        return self.put(stream.SAID, body[:cut] if cut else body, is_cut=bool(cut))

    def result(self, **fields: Any) -> SessionRecord:
        good = {"subtype": "success", "is_error": False, "session_id": "c1"}
        return self.say("result", good | fields)

    def begin(self, **fields: Any) -> SessionRecord:
        return self.say("system/init", {"subtype": "init", "session_id": "c0"} | fields)

    def prompt(self, uuid: str, *, text: str = "hi") -> SessionRecord:
        return self.tell(stream.PROMPTED, uuid=uuid, line=Raw(msgspec.json.encode(text)))

    def write(self, uuid: str) -> SessionRecord:
        return self.tell(stream.WROTE, start=0, what="prompt", id=uuid, line=Raw(b'"hi"'))

    def run(self, launch: str = LAUNCH) -> SessionRecord:
        """Queued, started, ready."""
        self.launch, self._end = launch, 0
        self.tell(stream.QUEUED)
        self.tell(stream.INTENDED)
        self.tell(stream.STARTED, pid=7, born=1.5, boot="b", version="2.1.12")
        return self.tell(stream.READY)

    def end(self, how: str = "exited", **fields: Any) -> SessionRecord:
        return self.tell(stream.ENDED, how=how, **fields)

    def ask(self, approval: str, **given: Any) -> SessionRecord:
        asked = Requested(
            session="s1", launch=self.launch, kind="tool", tool="Bash", input=given, id=approval,
            digest="d", created=self.at,
        )  # fmt: skip
        event = event_of(asked)
        return self.put(event.kind, event.body)

    def settle(self, approval: str, how: str = "decided") -> SessionRecord:
        endings: dict[str, Ending] = {
            "decided": Decided(by=Person("ann"), choice=Reject(), at=self.at),
            "expired": Expired(after=1, at=self.at),
            "cancelled": Cancelled(cause="withdrawn", at=self.at),
        }
        event = event_of(Ended(approval, endings[how]))
        return self.put(event.kind, event.body)


def session(name: str, *ancestors: str, limits: Limits | None = None, **fields: Any) -> Tape:
    """One that is idle, below these ancestors (root first)."""
    tape = Tape(
        name, lineage=ancestors, parent=ancestors[-1] if ancestors else None,
        limits=limits or Limits(), **fields,
    )  # fmt: skip
    tape.run()
    return tape
