"""The stream of everything: the present, then the latest of each thing that changes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bridle.approvals import Reject
from bridle.server.house import House
from bridle.server.streams.board import Board, BoardFollower, Place, place_of
from bridle.server.streams.wants import Want
from bridle.supervisor import Limits
from bridle.supervisor.notes import note
from bridle.views import stream
from tests.supervisor.homes import ASKS, ME, Home, asked, until

from .serving import READER, followed, served, silent
from .sse import Sse, Told, ask, follow


async def told_until(follower: Sse, wanted: str, words: str) -> list[Told]:
    """All up to the event of this name that has these words in it."""
    found = []
    while True:
        found.append(await follower.told())
        if found[-1].name == wanted and words in found[-1].data:
            return found


async def test_a_new_client_gets_the_present_then_what_changes(home: Home, house: House) -> None:
    supervisor = house.supervisor
    first = await silent(home, supervisor, name="first", labels={"a": "b"})
    async with followed(house, "/events") as follower:
        reset, *rest = await told_until(follower, "session", first.id)
        assert (reset.name, reset.last) == ("reset", "")
        assert {told.name for told in rest} == {"fleet", "session"}
        assert rest[-1].json["labels"] == {"a": "b"}
        second = await silent(home, supervisor, name="second")
        assert (await told_until(follower, "session", second.id))[-1].json["name"] == "second"
        await supervisor.delete(first.id)
        gone = (await told_until(follower, "session.deleted", first.id))[-1]
        assert gone.json == {"id": first.id}


async def test_an_approval_is_told_from_asked_to_decided(home: Home, house: House) -> None:
    supervisor = house.supervisor
    async with followed(house, "/events", caller=READER) as follower:
        made = await home.start(supervisor, *ASKS)
        pending = (await told_until(follower, "approval", '"pending"'))[-1]
        assert (pending.json["session"], pending.json["tool"]) == (made.id, "Bash")
        approval = await asked(supervisor, made.id)
        await supervisor.approvals.decide(approval.id, Reject("no"), by=ME)
        denied = (await told_until(follower, "approval", '"denied"'))[-1]
        assert denied.json["id"] == approval.id
        idle = (await told_until(follower, "session", '"idle"'))[-1]
        assert (idle.json["id"], idle.json["turns"]) == (made.id, 1)
    await until(supervisor, made.id, "idle")


async def test_a_resume_has_only_what_has_changed_and_the_latest_of_it(
    home: Home, house: House
) -> None:
    supervisor = house.supervisor
    quiet, gone, loud = [await silent(home, supervisor, name=name) for name in ("q", "g", "l")]
    async with served(house) as port:
        async with follow(port, "/events") as follower:
            waiting = {quiet.id, gone.id, loud.id}
            while waiting:
                waiting.discard((await follower.until("session")).json["id"])
            last = follower.last
        async with follow(port, "/events?reveal=true") as other:
            await supervisor.delete(gone.id)
            for turns in range(1, 5):
                await supervisor.set_limits(loud.id, Limits(turns=turns), by="me")
                await told_until(other, "session", f'"turns":{turns}')
        async with follow(port, "/events", last=last) as follower:
            told = await told_until(follower, "session", loud.id)
            names = [(one.name, one.json.get("id")) for one in told]
            assert names == [("session.deleted", gone.id), ("session", loud.id)]
            assert told[-1].json["limits"]["turns"] == 4


async def test_the_fleet_is_told_when_it_is_held_and_released(home: Home, house: House) -> None:
    supervisor = house.supervisor
    async with followed(house, "/events") as follower:
        assert (await follower.until("fleet")).json == {"held": None}
        limited = stream.Limited(at=1.0, needs_login=True, words="log in")
        supervisor._fleet.hold(limited)
        supervisor._pen.write([note(stream.HELD, limited)])
        assert (await follower.until("fleet")).json["held"]["words"] == "log in"
        supervisor.logged_in()
        assert (await follower.until("fleet")).json == {"held": None}


async def test_another_boot_is_a_reset(home: Home, house: House) -> None:
    made = await silent(home, house.supervisor)
    async with followed(house, "/events", last="0123abcd-7") as follower:
        assert (await follower.told()).name == "reset"
        await told_until(follower, "session", made.id)


@pytest.mark.parametrize("last", ["7", "x", "-", "a-", "-1", "a-b", "a-1.5", "a b-1"])
async def test_an_id_of_no_board_is_refused(house: House, last: str) -> None:
    async with served(house) as port, ask(port, "/events", {"Last-Event-ID": last}) as answer:
        assert answer.status == 400
        assert b"invalid_cursor" in await answer.body()


# --- the board itself


def ids(data: bytes) -> list[int]:
    return [int(line.rpartition(b"-")[2]) for line in data.split(b"\n") if line[:3] == b"id:"]


def events(data: bytes) -> list[Any]:
    return [msgspec.json.decode(line[6:]) for line in data.split(b"\n") if line[:5] == b"data:"]


async def test_the_slow_get_the_latest_of_each_in_order_of_change() -> None:
    board = Board()
    follower = BoardFollower(board, None, Want())
    assert await follower.more() == b"event: reset\ndata: {}\n\n"
    for round_ in range(3):
        for key in "abc":
            board.put(key, "session", [key, round_])
    board.put("a", "session", ["a", 9])
    data = await follower.more()
    assert events(data) == [["b", 2], ["c", 2], ["a", 9]]
    assert ids(data) == [8, 9, 10]
    assert await follower.more() == b""


async def test_what_is_over_is_remembered_for_the_absent_and_not_part_of_the_present() -> None:
    board = Board()
    board.put("a", "session", "a")
    place = Place(board.boot, board.last)
    board.put("b", "session", "b")
    board.put("a", "session.deleted", "a is gone", is_over=True)
    assert events(await BoardFollower(board, place, Want()).more()) == ["b", "a is gone"]
    assert events(await BoardFollower(board, None, Want()).more()) == [{}, "b"]


async def test_who_was_away_for_too_long_gets_all_of_the_present() -> None:
    board = Board(max_over=2)
    board.put("stays", "session", "stays")
    place = Place(board.boot, board.last)
    slow = BoardFollower(board, place, Want())
    assert await slow.more() == b""
    for key in "abc":
        board.put(key, "session.deleted", key, is_over=True)
    for follower in (slow, BoardFollower(board, place, Want())):
        assert events(await follower.more()) == [{}, "stays"]
    near = BoardFollower(board, Place(board.boot, board.floor), Want())
    assert events(await near.more()) == ["b", "c"]


async def test_a_place_that_the_board_never_had_is_not_believed() -> None:
    board = Board()
    board.put("a", "session", "a")
    assert not board.is_known(Place(board.boot, board.last + 1))
    assert not board.is_known(Place("0000", board.last))
    assert place_of(f"{board.boot}-{board.last}") == Place(board.boot, 1)


async def test_a_large_present_comes_in_parts_that_resume() -> None:
    board = Board()
    for number in range(40):
        board.put(str(number), "session", "x" * 10_000)
    seen: list[int] = []
    place: Place | None = None
    while len(seen) < 40:
        data = await BoardFollower(board, place, Want()).more()
        assert len(data) < 200_000
        seen += ids(data)
        place = Place(board.boot, seen[-1])
    assert seen == list(range(1, 41))
