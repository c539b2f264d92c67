"""The stream of an agent that runs here: what it says and is told, as a supervisor writes it down.

Owns the events of one launch. They are kept in a journal in memory, so that all who show something
of an agent do it by the same views, whoever looks after it.
"""

from __future__ import annotations

import time

import msgspec
from msgspec import Raw, Struct

from ...ids import new_uuid
from ...journal import Journal
from ...journal.owner import Owners
from ...process.transport import Exit
from ...protocol.outbound import prompt_line
from ...session.wirelog import Direction
from ...supervisor.intake import Intake
from ...supervisor.notes import note
from ...supervisor.pen import Pen
from ...views import stream

MOST_WORDS = 16_000


class _Line(Struct):
    type: str = ""
    uuid: str = ""


_decode = msgspec.json.Decoder(_Line).decode


class _NothingWaits:
    """What is answered here is written at once."""

    def drop(self, _: str, /) -> None:
        pass


class Recording:
    """Of one launch of one session. `commit`, `wire` and `complained` are for `connect`."""

    def __init__(self, journal: Journal, owners: Owners, session: str, launch: str) -> None:
        self._launch = launch
        self._start = 0
        self._pen = Pen(owners.of(session))
        intake = Intake(self._pen, journal.log, session, launch, _NothingWaits())
        self.commit = intake.commit

    def intended(self, resume: str | None) -> None:
        body = stream.Intended(launch=self._launch, at=time.time(), resume=resume)
        self._pen.write([note(stream.INTENDED, body)])

    def ready(self) -> None:
        self._pen.write([note(stream.READY, stream.Ready(launch=self._launch, at=time.time()))])

    def prompt(self, text: str, by: str) -> tuple[str, bytes]:
        """Somebody wants the agent to be told this: the uuid and the line for it."""
        uuid = new_uuid()
        line = prompt_line(text, uuid=uuid)
        body = stream.Prompted(uuid=uuid, line=Raw(line.rstrip(b"\n")), at=time.time(), by=by)
        self._pen.write([note(stream.PROMPTED, body)])
        return uuid, line

    def wire(self, direction: Direction, line: bytes) -> None:
        """Of what the agent is told, a transcript needs the prompts."""
        if direction != "in":
            return
        start, self._start = self._start, self._start + len(line) + 1
        told = _decode(line)
        if told.type == "user":
            body = stream.Wrote(
                launch=self._launch, start=start, what="prompt", id=told.uuid, line=Raw(line)
            )
            self._pen.write([note(stream.WROTE, body)])

    def complained(self, text: str) -> None:
        for at in range(0, len(text), MOST_WORDS):
            body = stream.Stderr(launch=self._launch, end=0, text=text[at : at + MOST_WORDS])
            self._pen.write([note(stream.STDERR, body)])

    async def ended(
        self, exit_: Exit | None, *, was_stopped: bool, killed_because: str = "", stderr: str = ""
    ) -> int:
        """The process is gone; the number of the last event that there will be."""
        status = exit_ or Exit()
        is_killed = bool(killed_because) or status.signal is not None
        how: stream.LaunchEnd = "killed" if is_killed else "exited"
        body = stream.LaunchEnded(
            launch=self._launch,
            how="stopped" if was_stopped else how,
            at=time.time(),
            code=status.code,
            signal=status.signal,
            words=killed_because[:MOST_WORDS],
            stderr=stderr[-MOST_WORDS:],
        )
        await self._pen.stored([note(stream.ENDED, body)])
        return self._pen.last_seq
