"""Server-sent events: split wherever the bytes break, and followed over breaks."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.cli.client import sse
from bridle.cli.client.sse import ServerEvent, Splitter, follow
from bridle.cli.errors import NoServer, Refused
from tests.levels import tries

TEXT = (
    b": hello\n\n"
    b'id: 1\nevent: a\ndata: {"x": 1}\n\n'
    b"event: delta\ndata: piece\n\n"
    b"id: 2\r\nevent: b\r\ndata: one\r\ndata:two\r\n\r\n"
    b"retry: 10\n\n"
    b"data: plain\n\n"
)
EVENTS = [
    ServerEvent("1", "a", b'{"x": 1}'),
    ServerEvent("", "delta", b"piece"),
    ServerEvent("2", "b", b"one\ntwo"),
    ServerEvent("", "message", b"plain"),
]


@settings(max_examples=tries(50, 500), deadline=None)
@given(st.lists(st.integers(0, len(TEXT)), max_size=8))
def test_events_are_the_same_wherever_the_bytes_break(places: list[int]) -> None:
    splitter = Splitter()
    cuts = [0, *sorted(places), len(TEXT)]
    found = [
        event for start, end in itertools.pairwise(cuts) for event in splitter.add(TEXT[start:end])
    ]
    assert found == EVENTS
    assert splitter.last_id == "2"


class Server:
    """Streams that break: each is a list of pieces, or an error."""

    def __init__(self, *streams: list[bytes] | Exception) -> None:
        self._streams = list(streams)
        self.last_ids: list[str | None] = []

    async def open(self, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
        self.last_ids.append(headers.get("Last-Event-ID"))
        stream = self._streams.pop(0) if self._streams else NoServer()
        if isinstance(stream, Exception):
            raise stream
        for piece in stream:
            yield piece


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(sse, "LAST_PAUSE", 0.001)


async def test_after_a_break_it_goes_on_where_it_was_and_half_an_event_is_not_told() -> None:
    server = Server(
        [b"id: 1\ndata: a\n\n", b"id: 2\ndata: hal"],
        NoServer("connection refused"),
        [b"id: 2\ndata: b\n\ndata: live\n\n"],
        [b"id: 3\ndata: c\n\n"],
    )
    broken: list[str] = []
    told: list[bytes] = []
    async with asyncio.timeout(5):
        async for event in follow(server.open, on_break=broken.append):
            told.append(event.data)
            if event.id == "3":
                break
    assert told == [b"a", b"b", b"live", b"c"]
    assert server.last_ids == [None, "1", "1", "2"]
    assert broken == ["the stream has ended", "connection refused", "the stream has ended"]


async def test_it_begins_behind_the_id_that_is_given() -> None:
    server = Server([b"id: 8\ndata: a\n\n"])
    stream = follow(server.open, "7")
    assert (await anext(stream)).id == "8"
    assert server.last_ids == ["7"]


async def test_what_the_server_refuses_is_raised_and_not_tried_again() -> None:
    server = Server(Refused(404, "unknown_session", "there is no session x", "list them"))
    with pytest.raises(Refused, match="there is no session x"):
        await anext(follow(server.open))
    assert len(server.last_ids) == 1


async def test_a_server_that_does_not_come_back_is_given_up() -> None:
    with pytest.raises(NoServer, match=r"has not come back for 0\.01 s"):
        async with asyncio.timeout(5):
            await anext(follow(Server().open, patience=0.01))


def test_an_id_alone_moves_the_cursor_and_belongs_to_no_later_event() -> None:
    splitter = Splitter()
    assert splitter.add(b"id: 7\n\n") == []
    assert splitter.last_id == "7"
    assert splitter.add(b"event: delta\ndata: x\n\n") == [ServerEvent("", "delta", b"x")]
    assert splitter.last_id == "7"
