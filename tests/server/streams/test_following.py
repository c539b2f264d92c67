"""Following one session's events: in order, once each, from any cursor, by any number."""

from __future__ import annotations

import asyncio

import pytest

from bridle.journal import NewEvent
from bridle.server.house import House
from bridle.server.streams import frames
from tests.supervisor.homes import Home

from .conftest import OpenHouse
from .serving import READER, followed, grow, pass_by, served, silent, text_of
from .sse import Comment, ask, follow


async def test_a_stream_has_what_was_stored_then_what_comes(home: Home, house: House) -> None:
    supervisor = house.supervisor
    made = await silent(home, supervisor, name="one")
    first = await grow(supervisor, made.id, "a", "b")
    async with served(house) as port, follow(port, "/sessions/one/events") as stream:
        past = await stream.take(first)
        assert [told.json["seq"] for told in past] == list(range(1, first + 1))
        assert "session.created" in [told.name for told in past]
        assert [text_of(told) for told in past[-2:]] == ["a", "b"]
        await grow(supervisor, made.id, "c")
        told = await stream.told()
        assert (told.name, told.last, text_of(told)) == ("agent.stderr", str(first + 1), "c")
        assert told.json.keys() == {"seq", "at", "kind", "body"}
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["cache-control"] == "no-store"
        assert stream.retry == 1000


async def test_last_event_id_wins_over_after(home: Home, house: House) -> None:
    made = await silent(home, house.supervisor)
    last = await grow(house.supervisor, made.id, *"abcd")
    path = f"/sessions/{made.id}/events"
    async with served(house) as port:
        async with follow(port, f"{path}?after={last - 1}") as stream:
            assert text_of(await stream.told()) == "d"
        async with follow(port, f"{path}?after=0", last=str(last - 2)) as stream:
            assert [text_of(told) for told in await stream.take(2)] == ["c", "d"]


async def test_the_tip_is_only_what_is_new(home: Home, house: House) -> None:
    made = await silent(home, house.supervisor)
    await grow(house.supervisor, made.id, *"abcd")
    async with followed(house, f"/sessions/{made.id}/events?after=tip") as stream:
        await grow(house.supervisor, made.id, "e")
        assert text_of(await stream.told()) == "e"


async def test_a_stream_with_a_limit_ends_after_it(home: Home, house: House) -> None:
    made = await silent(home, house.supervisor)
    last = await grow(house.supervisor, made.id, *"abcd")
    path = f"/sessions/{made.id}/events?after={last - 2}&limit=3"
    async with served(house) as port, follow(port, path) as stream:
        assert [text_of(told) for told in await stream.take(2)] == ["c", "d"]
        await grow(house.supervisor, made.id, "e", "f")
        assert text_of(await stream.told()) == "e"
        assert await stream.next() is None


async def test_live_pieces_have_no_id_and_are_for_those_at_the_end(
    home: Home, house: House
) -> None:
    made = await silent(home, house.supervisor)
    last = await grow(house.supervisor, made.id, "a")
    pass_by(house.supervisor, made.id, "nobody hears this")
    async with served(house) as port:
        async with follow(port, f"/sessions/{made.id}/events?after={last}") as stream:
            await stream.joined()
            last = await grow(house.supervisor, made.id, "b")
            assert text_of(await stream.told()) == "b"
            pass_by(house.supervisor, made.id, "piece")
            await grow(house.supervisor, made.id, "whole")
            piece, whole = await stream.take(2)
            assert (piece.name, piece.last, piece.json["body"]) == (
                "agent.delta",
                str(last),
                {"text": "piece"},
            )
            assert "seq" not in piece.json
            assert text_of(whole) == "whole"
        async with follow(port, f"/sessions/{made.id}/events?after={last}&live=false") as stream:
            assert text_of(await stream.told()) == "whole"
            pass_by(house.supervisor, made.id, "piece")
            await grow(house.supervisor, made.id, "more")
            assert text_of(await stream.told()) == "more"


async def test_readers_get_no_pieces(home: Home, house: House) -> None:
    """A secret in pieces is not seen as one."""
    made = await silent(home, house.supervisor)
    async with followed(house, f"/sessions/{made.id}/events?after=tip", caller=READER) as stream:
        await stream.joined()
        pass_by(house.supervisor, made.id, "sk-an")
        await grow(house.supervisor, made.id, "whole")
        assert text_of(await stream.told()) == "whole"


async def test_only_the_kinds_that_are_wanted_are_told(home: Home, house: House) -> None:
    made = await silent(home, house.supervisor)
    owner = house.supervisor._means.owners.of(made.id)
    kinds = ("x.one", "x.two", "y.one")
    last = await owner.append([NewEvent(kind, b"{}") for kind in kinds * 3])
    async with served(house) as port:
        path = f"/sessions/{made.id}/events?kinds=x.*,y.other"
        async with follow(port, path) as stream:
            assert [told.name for told in await stream.take(6)] == ["x.one", "x.two"] * 3
            await owner.append([NewEvent("y.one", b"{}"), NewEvent("x.two", b"{}")])
            assert (await stream.told()).last == str(last + 2)


async def test_what_was_passed_over_is_not_read_again(home: Home, opened: OpenHouse) -> None:
    """The heartbeat of a stream of few kinds says how far it is."""
    async with opened(heartbeat=0.05) as house:
        made = await silent(home, house.supervisor)
        last = await grow(house.supervisor, made.id, *"abc")
        path = f"/sessions/{made.id}/events?kinds=session.created"
        async with served(house) as port, follow(port, path) as stream:
            first = (await stream.told()).last
            while stream.last == first:
                await stream.next(comments=True)
            assert stream.last == str(last)


async def test_silence_is_broken_by_comments(home: Home, opened: OpenHouse) -> None:
    async with opened(heartbeat=0.02) as house:
        made = await silent(home, house.supervisor)
        async with followed(house, f"/sessions/{made.id}/events?after=tip") as stream:
            beats = [await stream.next(comments=True) for _ in range(3)]
            assert beats == [Comment("")] * 3


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "9" * 16, "1 2", "0x1"])
async def test_a_malformed_id_is_refused(home: Home, house: House, last: str) -> None:
    made = await silent(home, house.supervisor)
    headers = {"Accept": "text/event-stream", "Last-Event-ID": last}
    async with served(house) as port, ask(port, f"/sessions/{made.id}/events", headers) as answer:
        assert answer.status == 400
        assert b'"code":"invalid_cursor"' in await answer.body()


async def test_a_cursor_beyond_the_end_is_told_where_the_end_is(home: Home, house: House) -> None:
    """The stream was longer once: what the client has after its end is not so any more."""
    made = await silent(home, house.supervisor)
    last = await grow(house.supervisor, made.id, "a")
    async with followed(house, f"/sessions/{made.id}/events", last=str(last + 9)) as stream:
        reset = await stream.told()
        assert (reset.name, reset.json, reset.last) == ("reset", {"seq": last}, str(last))
        await grow(house.supervisor, made.id, "b")
        assert text_of(await stream.told()) == "b"


async def test_an_event_with_line_breaks_is_one_event(home: Home, house: House) -> None:
    made = await silent(home, house.supervisor)
    owner = house.supervisor._means.owners.of(made.id)
    last = await owner.append([NewEvent("x", b'{"a":\r\n1,\n\r"b":"\\n"}')])
    async with followed(house, f"/sessions/{made.id}/events?after={last - 1}") as stream:
        assert (await stream.told()).json["body"] == {"a": 1, "b": "\n"}


async def test_all_who_follow_share_one_encoding(
    home: Home, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await silent(home, house.supervisor)
    encoded, hidden = 0, 0
    encode, hide = frames.stored_frame, house.redactor.bytes

    def counted(event: object) -> frames.Frame:
        nonlocal encoded
        encoded += 1
        return encode(event)  # type: ignore[arg-type]

    def counted_too(data: bytes) -> bytes:
        nonlocal hidden
        hidden += 1
        return hide(data)

    monkeypatch.setattr("bridle.server.streams.channel.stored_frame", counted)
    monkeypatch.setattr(house.redactor, "bytes", counted_too)
    async with served(house) as port:
        path = f"/sessions/{made.id}/events?after=tip"
        async with asyncio.TaskGroup() as group:
            begun = asyncio.Barrier(21)

            async def listen() -> None:
                async with follow(port, path) as stream:
                    await stream.joined()
                    await begun.wait()
                    assert [text_of(told) for told in await stream.take(30)] == texts

            texts = [str(number) for number in range(30)]
            for _ in range(20):
                group.create_task(listen())
            await begun.wait()
            for text in texts:
                await grow(house.supervisor, made.id, text)
    assert (encoded, hidden) == (30, 30)
