"""The order in which lines are written down and told, also where the log can't be written."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from bridle.errors import JournalUnwritable
from bridle.journal import Durability, Event, Journal, NewEvent, memory_journal
from bridle.journal.owner import StreamOwner
from bridle.process.spool import Spool
from bridle.protocol import Deny
from bridle.protocol.requests import Interrupt
from bridle.session.outgoing import Outgoing
from bridle.supervisor import outbox
from bridle.supervisor.outbox import Outbox
from bridle.supervisor.pen import Pen
from bridle.views import stream
from tests.journal.sqlite.disks import tmpfs
from tests.protocol.lines import can_use_tool, connect, line

from .homes import LIMIT

LAUNCH = "l1"


class MoodyOwner(StreamOwner):
    """A stream that refuses for as long as it is told to, or takes its time."""

    refuses = False
    held: asyncio.Event | None = None

    def append(
        self, events: Sequence[NewEvent], durability: Durability = Durability.PROCESS
    ) -> asyncio.Future[int]:
        if self.held:
            return asyncio.ensure_future(self._later(self.held, events, durability))
        if not self.refuses:
            return super().append(events, durability)
        refused: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        refused.set_exception(JournalUnwritable("no"))
        return refused

    async def _later(
        self, held: asyncio.Event, events: Sequence[NewEvent], durability: Durability
    ) -> int:
        await held.wait()
        return await super().append(events, durability)


class Desk:
    """An outbox with all that it needs, and what came of it."""

    def __init__(self, journal: Journal, folder: Path) -> None:
        self.journal = journal
        self.owner = MoodyOwner(journal.log, "s")
        self.pen = Pen(self.owner)
        self.spool = Spool(folder)
        self.spool.make()
        self.foreign: list[str] = []
        self.told: list[str] = []
        self._news = asyncio.Event()
        self.outbox = Outbox(self.pen, self.spool, LAUNCH, foreign=self.foreign.append)

    def send(self, name: str, what: str) -> None:
        text = f'{{"id":"{name}"}}\n'.encode()
        outgoing = Outgoing(text, what, name)  # type: ignore[arg-type]
        self.outbox.send(outgoing, lambda: self._tell(name))

    def _tell(self, name: str) -> None:
        self.told.append(name)
        self._news.set()

    async def until_told(self, number: int) -> None:
        async with asyncio.timeout(LIMIT):
            while len(self.told) < number:
                self._news.clear()
                await self._news.wait()

    def inbox(self) -> str:
        return self.spool.read_inbox(0, 1 << 20).decode()

    async def logged(self) -> list[stream.Wrote]:
        async with asyncio.timeout(LIMIT):
            await self.pen.idle()
        events: list[Event] = await self.journal.log.read("s", 0, 1000)
        entries = [stream.Entry(e.seq, e.at, e.kind, e.body) for e in events]
        return [stream.body_of(entry) for entry in entries]


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with memory_journal() as journal:
        desk = Desk(journal, tmp_path / "spool")
        yield desk
        desk.outbox.close()
        desk.pen.close()


def ids(text: str) -> list[str]:
    return [line.split('"')[3] for line in text.split("\n") if line]


async def test_lines_are_written_down_and_then_told_in_their_order(desk: Desk) -> None:
    names = [f"n{number}" for number in range(50)]
    for name in names:
        desk.send(name, "prompt")
    assert desk.inbox() == "", "nothing is told before it is written down"
    logged = await desk.logged()
    assert [wrote.id for wrote in logged] == names == desk.told == ids(desk.inbox())
    ends = [wrote.start for wrote in logged]
    assert ends == [desk.inbox().index(f'{{"id":"{name}"}}') for name in names]
    assert desk.outbox.is_idle
    assert desk.outbox.end == desk.spool.inbox_size()


async def test_what_stops_something_does_not_wait_for_a_log_that_refuses(desk: Desk) -> None:
    desk.owner.refuses = True
    desk.send("allow", "allow")
    await desk.pen.idle_or_stuck()
    for name, what in (("deny", "deny"), ("cancel", "cancel")):
        desk.send(name, what)
    assert desk.told == ["deny", "cancel"] == ids(desk.inbox())
    desk.owner.refuses = False
    logged = await desk.logged()
    assert [(wrote.id, wrote.is_late) for wrote in logged] == [
        ("allow", False),
        ("deny", True),
        ("cancel", True),
    ]
    assert ids(desk.inbox()) == ["deny", "cancel", "allow"]


async def test_what_was_taken_back_before_it_was_written_down_is_not_told(desk: Desk) -> None:
    desk.owner.refuses = True
    desk.send("first", "answer")
    await desk.pen.idle_or_stuck()
    for name in ("second", "third", "fourth"):
        desk.send(name, "allow")
    desk.outbox.drop("third")
    desk.owner.refuses = False
    logged = await desk.logged()
    assert [wrote.id for wrote in logged] == ["first", "second", "fourth"]
    assert ids(desk.inbox()) == desk.told == ["first", "second", "fourth"]


async def test_what_stops_something_does_not_wait_for_a_log_that_says_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "PATIENCE_SECONDS", 0.01)
    desk.owner.held = asyncio.Event()
    desk.send("allow", "allow")
    desk.send("deny", "deny")
    assert desk.told == [], "those before it may be stored at once"
    await desk.until_told(1)
    assert desk.told == ["deny"] == ids(desk.inbox())
    desk.owner.held.set()
    assert [(wrote.id, wrote.is_late) for wrote in await desk.logged()] == [
        ("allow", False),
        ("deny", True),
    ]
    assert ids(desk.inbox()) == ["deny", "allow"]


async def test_what_stops_something_and_is_taken_back_while_it_waits_is_not_told(
    desk: Desk,
) -> None:
    desk.send("first", "prompt")
    desk.send("deny", "deny")
    desk.outbox.drop("deny")
    desk.send("last", "prompt")
    assert [wrote.id for wrote in await desk.logged()] == ["first", "last"]
    assert desk.told == ["first", "last"] == ids(desk.inbox())


async def test_a_line_for_which_there_is_no_room_comes_later_whole_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "RETRY_SECONDS", 0.01)
    with tmpfs(tmp_path / "disk") as disk:
        async with memory_journal() as journal:
            desk = Desk(journal, disk.folder / "spool")
            disk.fill(leave=1 << 16)
            large = "x" * 100_000
            for name in ("one", large, "two"):
                desk.send(name, "prompt")
            await desk.logged()
            assert desk.told == ["one"]
            assert 13 < desk.spool.inbox_size() < len(large), "a part of it is there"
            disk.free()
            await desk.until_told(3)
            assert ids(desk.inbox()) == ["one", large, "two"]
            assert desk.outbox.end == desk.spool.inbox_size()
            assert desk.foreign == []
            desk.outbox.close()
            desk.pen.close()


async def test_what_is_written_beside_it_is_noticed_before_the_next_line(desk: Desk) -> None:
    desk.send("one", "prompt")
    await desk.logged()
    desk.spool.append(b"foreign\n")
    desk.send("two", "prompt")
    await desk.logged()
    assert len(desk.foreign) == 1
    assert "foreign" in desk.foreign[0]
    assert desk.told == ["one"]
    desk.outbox.check()
    assert len(desk.foreign) == 1, "it is told once"


async def test_nothing_is_written_down_for_one_that_is_closed(desk: Desk) -> None:
    desk.outbox.close()
    desk.send("one", "prompt")
    desk.send("two", "deny")
    assert await desk.logged() == []
    assert desk.inbox() == ""


async def test_a_doorbell_that_can_not_be_rung_does_not_double_the_line(desk: Desk) -> None:
    os.unlink(desk.spool.path("doorbell"))  # noqa: PTH108
    os.mkdir(desk.spool.path("doorbell"))  # noqa: PTH102 - nobody can ring such a thing
    desk.send("one", "prompt")
    await desk.logged()
    desk.send("two", "prompt")
    await desk.logged()
    os.rmdir(desk.spool.path("doorbell"))  # noqa: PTH106
    assert ids(desk.inbox()) == ["one", "two"]
    assert desk.told == ["one", "two"]
    assert desk.foreign == []


async def test_a_doorbell_that_could_not_be_rung_is_rung_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "RETRY_SECONDS", 0.01)
    bell = desk.spool.path("doorbell")
    os.unlink(bell)  # noqa: PTH108
    os.mkdir(bell)  # noqa: PTH102
    desk.send("one", "prompt")
    await desk.logged()
    os.rmdir(bell)  # noqa: PTH106
    os.mkfifo(bell)
    heard = os.open(bell, os.O_RDWR | os.O_NONBLOCK)
    rung = asyncio.Event()
    asyncio.get_running_loop().add_reader(heard, rung.set)
    async with asyncio.timeout(LIMIT):
        await rung.wait()
    asyncio.get_running_loop().remove_reader(heard)
    os.close(heard)


async def test_lines_that_an_earlier_controller_could_not_note_are_noted_as_what_they_are(
    desk: Desk,
) -> None:
    connection = connect(version="2.1.325")
    asked, request = connection.request(Interrupt())
    cancel = connection.cancel(asked)
    connection.receive(line(can_use_tool("q1")))
    answer = connection.answer("q1", Deny("no"))
    start = 7
    for one in (request, cancel, answer):
        desk.outbox.note_late(one, start)
        start += len(one)
    logged = await desk.logged()
    assert [(wrote.what, wrote.type, wrote.id) for wrote in logged] == [
        ("request", "interrupt", asked),
        ("cancel", "", asked),
        ("deny", "", "q1"),
    ]
    assert [wrote.start for wrote in logged] == [7, 7 + len(request), start - len(answer)]
    assert [bytes(wrote.line) + b"\n" for wrote in logged] == [request, cancel, answer]
    assert all(wrote.is_late and wrote.launch == LAUNCH for wrote in logged)
    assert desk.inbox() == ""


async def test_what_is_left_of_a_line_goes_before_all_others(desk: Desk) -> None:
    half = b'{"id":"earlier"}\n'
    desk.spool.append(half[:5])
    desk.outbox.close()
    desk.outbox = Outbox(desk.pen, desk.spool, LAUNCH, end=5, foreign=desk.foreign.append)
    desk.outbox.add(half[5:])
    desk.send("later", "prompt")
    logged = await desk.logged()
    assert ids(desk.inbox()) == ["earlier", "later"]
    assert [wrote.start for wrote in logged] == [len(half)]
    assert desk.outbox.asked_end == desk.outbox.end == desk.spool.inbox_size()
    assert desk.foreign == []


async def test_an_inbox_that_somebody_shortened_is_noticed(desk: Desk) -> None:
    desk.send("one", "prompt")
    await desk.logged()
    os.truncate(desk.spool.path("inbox"), 3)
    desk.outbox.check()
    assert desk.foreign == ["somebody shortened it"]
    desk.send("two", "prompt")
    assert await desk.logged()
    assert desk.told == ["one"]
