"""A program that forks writers and kills them: `python -m tests.journal.sqlite.crashing FOLDER`.

For each line on its input (a moment to kill at, see `Moment`) it forks a child, which opens the
journal and writes as fast as it can; it kills the child at the moment and prints what the child
said. It imports everything once and has neither a loop nor threads, so that a fork is quick and
safe.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from bridle.journal import Durability, Event, Journal, Projection
from bridle.journal.sqlite.store import open_journal

from .contents import LARGE, SEALED, batch, count_in, value_of

STREAMS = ("plain-0", "plain-1", "plain-2", f"{SEALED}-0", f"{LARGE}-0")
#: Those that have a projection too.
PROJECTED = ("plain-0", f"{SEALED}-0")
BUCKET = "crash"
KEYS = ("a", "b", "c")
#: How many batches of a stream may be on their way.
PIPELINED = 6
#: After so many batches the stream with large payloads is deleted, and goes on.
SHED_AFTER = 12
LIMIT = 60.0


class Moment(Struct):
    """Kill so many seconds after the fork, or after the child has opened the journal."""

    seconds: float
    is_after_opening: bool


class Said(Struct):
    """What a child said before it was killed. Numbers are the last of a batch, a stream's name
    before them; for records they count the values that were put."""

    is_opened: bool = False
    asked: dict[str, list[int]] = {}
    acknowledged: dict[str, list[int]] = {}
    deleting: list[int] = []
    deleted: list[int] = []
    put: dict[str, int] = {}
    complaints: list[str] = []

    @property
    def in_flight(self) -> int:
        return sum(map(len, self.asked.values())) - sum(map(len, self.acknowledged.values()))


class Ask(Struct, tag=True):
    stream: str
    last: int


class Ack(Struct, tag=True):
    stream: str
    last: int


class Deleting(Struct, tag=True):
    upto: int


class Deleted(Struct, tag=True):
    upto: int


class HasPut(Struct, tag=True):
    key: str
    count: int


class Opened(Struct, tag=True):
    pass


class Complaint(Struct, tag=True):
    text: str


Line = Ask | Ack | Deleting | Deleted | HasPut | Opened | Complaint
_LINE = msgspec.json.Decoder(Line)
_MOMENT = msgspec.json.Decoder(Moment)


def main(folder: Path) -> None:
    for number, line in enumerate(sys.stdin.buffer):
        said = one_round(folder, _MOMENT.decode(line), number)
        sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
        sys.stdout.buffer.flush()


# --- the parent


def one_round(folder: Path, moment: Moment, number: int) -> Said:
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        _be_child(folder, writing, number)
    os.close(writing)
    try:
        lines = _heard(reading, pid, moment)
    finally:
        os.close(reading)
        os.waitpid(pid, 0)
    return _summary(lines)


def _heard(reading: int, pid: int, moment: Moment) -> list[bytes]:
    """All that the child says, in lines. Killed at the moment, at the latest after the limit."""
    heard = bytearray()
    deadline = time.monotonic() + (LIMIT if moment.is_after_opening else moment.seconds)
    waits_for_opening = moment.is_after_opening
    is_killed = False
    while True:
        left = max(0.0, deadline - time.monotonic())
        if not is_killed and not select.select([reading], [], [], left)[0]:
            os.kill(pid, signal.SIGKILL)
            is_killed = True
        data = os.read(reading, 1 << 16)
        if not data:
            return bytes(heard).splitlines()
        heard += data
        if waits_for_opening and b"Opened" in heard:
            waits_for_opening = False
            deadline = time.monotonic() + moment.seconds


def _summary(lines: list[bytes]) -> Said:
    said = Said()
    for line in map(_LINE.decode, lines):
        match line:
            case Opened():
                said.is_opened = True
            case Ask(stream, last):
                said.asked.setdefault(stream, []).append(last)
            case Ack(stream, last):
                said.acknowledged.setdefault(stream, []).append(last)
            case Deleting(upto):
                said.deleting.append(upto)
            case Deleted(upto):
                said.deleted.append(upto)
            case HasPut(key, count):
                said.put[key] = count
            case Complaint(text):
                said.complaints.append(text)
    return said


# --- the child


def _be_child(folder: Path, writing: int, number: int) -> None:
    def say(line: Line) -> None:
        os.write(writing, msgspec.json.encode(line) + b"\n")  # short: a pipe takes it whole

    try:
        asyncio.run(_write(folder, say, random.Random(number)))
    except BaseException as error:  # noqa: BLE001 - the test must hear of it, whatever it is
        say(Complaint(repr(error)[:1000]))
    finally:
        os._exit(1)


async def _write(folder: Path, say: Callable[[Line], None], luck: random.Random) -> None:
    async with open_journal(folder) as journal:
        say(Opened())
        async with asyncio.TaskGroup() as group:
            for stream in STREAMS:
                group.create_task(_append(journal, stream, say, luck))
            for key in KEYS:
                group.create_task(_put(journal, key, say, luck))
            group.create_task(_project(journal))


def counts(journal: Journal) -> Projection[int]:
    """How many events a stream has: a fold that would notice a gap or a double."""

    def count(so_far: int, event: Event) -> int:
        assert event.seq == so_far + 1
        return event.seq

    return Projection(journal.log, journal.records, "counts", int, start=lambda _: 0, fold=count)


async def _project(journal: Journal) -> None:
    """Again and again, so that a kill comes between an append and its projection."""
    projection = counts(journal)
    while True:
        for stream in PROJECTED:
            await projection.get(stream)


async def _append(
    journal: Journal, stream: str, say: Callable[[Line], None], luck: random.Random
) -> None:
    def acknowledged(done: asyncio.Future[int]) -> None:
        if not done.exception():
            say(Ack(stream, done.result()))

    last = (await journal.log.info(stream)).last_seq
    underway: list[asyncio.Future[int]] = []
    for count in itertools.count(1):
        events = batch(stream, last + 1)
        durability = luck.choice((Durability.PROCESS, Durability.PROCESS, Durability.POWER))
        say(Ask(stream, last + len(events)))
        future = journal.log.append(stream, events, last, durability)
        future.add_done_callback(acknowledged)
        last += len(events)
        underway.append(future)
        if len(underway) >= PIPELINED:
            await underway.pop(0)
        if stream.startswith(LARGE) and count % SHED_AFTER == 0:
            await asyncio.gather(*underway)
            say(Deleting(last))
            await journal.log.delete(stream, last)
            say(Deleted(last))


async def _put(
    journal: Journal, key: str, say: Callable[[Line], None], luck: random.Random
) -> None:
    record = await journal.records.get(BUCKET, key)
    revision = record.revision if record else 0
    count = count_in(key, record.value) if record else 0
    while True:
        durability = luck.choice((Durability.PROCESS, Durability.POWER))
        count += 1
        value = value_of(key, count)
        revision = await journal.records.put(BUCKET, key, value, revision, durability)
        say(HasPut(key, count))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
