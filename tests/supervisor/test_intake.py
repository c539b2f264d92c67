"""What is stored of what an agent says: each sort of line, and where reading goes on after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest_asyncio

from bridle.journal import Journal, memory_journal
from bridle.journal.owner import StreamOwner
from bridle.protocol.connection import Connection
from bridle.protocol.events import Event
from bridle.protocol.requests import Interrupt
from bridle.session.commit import Batch
from bridle.supervisor.intake import Intake
from bridle.supervisor.pen import MOST_EVENTS, Pen
from bridle.views import stream
from tests.protocol.lines import (
    assistant,
    can_use_tool,
    cancel,
    connect,
    init,
    line,
    message,
    success,
    system,
    text,
)


class Desk:
    """An intake with all that it needs, and what came of it."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.pen = Pen(StreamOwner(journal.log, "s"))
        self.dropped: list[str] = []
        self.routed: list[Batch] = []
        self.intake = Intake(self.pen, journal.log, "s", "l1", self)
        self.intake.consumed = lambda: self.end
        self.end = 0

    def drop(self, request_id: str, /) -> None:
        self.dropped.append(request_id)

    def route(self, batch: Batch, error: BaseException | None) -> None:
        assert error is None
        self.routed.append(batch)

    def hear(self, connection: Connection, data: bytes) -> list[Event]:
        batch = connection.receive(data)
        self.end += len(data)
        self.intake.commit(batch, self.route)
        return batch

    async def stored(self) -> list[tuple[str, stream.Line]]:
        await self.pen.idle()
        events = await self.journal.log.read("s", 0, 2 * MOST_EVENTS)
        return [(one.kind, msgspec.json.decode(one.body, type=stream.Line)) for one in events]


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    async with memory_journal() as journal:
        desk = Desk(journal)
        yield desk
        desk.pen.close()


async def test_each_sort_of_line_is_stored_as_what_it_is(desk: Desk) -> None:
    connection = connect(line_limit=2_000)
    asked, _ = connection.request(Interrupt())
    lines = [
        line(init()),
        line(assistant(text("hé"))),
        line({"type": "sing", "song": "la"}),
        line(can_use_tool()),
        line({"type": "control_request", "request_id": "q2", "request": {"subtype": "dance"}}),
        line(cancel("ask-1")),
        line(success(asked)),
        line(success("nobody's")),
        b'{"oops\n',
        line(assistant(text("x" * 3_000))),
        b'{"type":"control_request","request_id":"q3","request":{"subtype":"dance"\n',
    ]
    for one in lines:
        desk.hear(connection, one)
    found = await desk.stored()
    assert [(kind, told.type, told.id) for kind, told in found] == [
        (stream.SAID, "system/init", ""),
        (stream.SAID, "assistant", ""),
        (stream.SAID, "sing", ""),
        (stream.ASKED, "can_use_tool", "ask-1"),
        (stream.UNREADABLE, "dance", "q2"),
        (stream.WITHDREW, "", "ask-1"),
        (stream.ANSWERED, "interrupt", asked),
        (stream.IGNORED, "", ""),
        (stream.MALFORMED, "", ""),
        (stream.OVERSIZED, "", ""),
        (stream.MALFORMED, "", ""),
        (stream.UNREADABLE, "dance", "q3"),
    ]
    ends = [sum(map(len, lines[: number + 1])) for number in range(len(lines))]
    assert [told.end for _, told in found] == [*ends, ends[-1]]
    assert {told.launch for _, told in found} == {"l1"}
    for number in (*range(8), 11):  # what is whole stays what it is, what is torn is kept as bytes
        whole = lines[min(number, 10)].rstrip(b"\n")
        told = found[number][1]
        assert (bytes(told.line), told.bytes) == ((whole, b"") if number < 8 else (b"", whole))
    assert [found[number][1].bytes for number in (8, 9)] == [b'{"oops', lines[9][:1024]]
    reasons = [found[number][1].reason for number in (4, 7, 8, 9, 11)]
    assert all(reasons)
    assert reasons[3] == f"a line of {len(lines[9]) - 1} bytes"
    assert desk.dropped == ["ask-1"]
    assert desk.intake.stored == ends[-1]
    assert len(desk.routed) == len(lines)


async def test_pieces_of_messages_are_told_to_who_listens_and_not_stored(desk: Desk) -> None:
    feed = desk.journal.log.follow("s")
    connection = connect()
    desk.hear(connection, line(assistant(text())))
    piece = message("stream_event", event={"type": "ping"}, parent_tool_use_id=None)
    async with asyncio.timeout(20):
        said = await anext(feed)
        desk.hear(connection, line(piece) + line({"type": "keep_alive"}))
        told = await anext(feed)
    assert [event.kind for event in said.stored] == [stream.SAID]
    assert [(event.kind, event.body) for event in told.events] == [
        (stream.DELTA, line(piece).rstrip(b"\n"))
    ]
    assert [kind for kind, _ in await desk.stored()] == [stream.SAID]
    # Nothing behind it was stored: after a restart it is read again.
    assert desk.intake.stored == len(line(assistant(text())))
    assert len(desk.routed) == 2
    feed.close()


async def test_what_is_stored_in_parts_lets_reading_go_on_where_it_was_until_the_last(
    desk: Desk,
) -> None:
    connection = connect()
    desk.hear(connection, line(init()))
    await desk.pen.idle()
    first = desk.end
    many = line(system("session_title_changed", title="t")) * (MOST_EVENTS + 1)
    desk.hear(connection, many)
    assert desk.intake.stored == first
    _, *ends = [told.end for _, told in await desk.stored()]
    assert ends == [first] * MOST_EVENTS + [first + len(many)]
    assert desk.intake.stored == first + len(many)


async def test_what_fits_is_stored_together_and_routed_once_it_is(desk: Desk) -> None:
    connection = connect()
    batch = desk.hear(connection, line(init()) + line(assistant(text())))
    assert (desk.routed, desk.intake.stored) == ([], 0)
    assert [told.end for _, told in await desk.stored()] == [desk.end] * 2
    assert desk.routed == [batch]
    assert desk.intake.stored == desk.end


async def test_of_the_end_of_the_output_nothing_is_stored(desk: Desk) -> None:
    connection = connect()
    batch = connection.receive_eof()
    desk.intake.commit(batch, desk.route)
    assert await desk.stored() == []
    assert desk.routed == [batch]
