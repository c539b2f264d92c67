"""Transcripts: pages from either end, and streams that end up with the same as a fold of all."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import httpx
import msgspec
import pytest

from bridle.errors import UnknownSession
from bridle.journal import NewEvent
from bridle.server.house import House
from bridle.server.routes import transcript as routes
from bridle.server.streams import channel
from bridle.server.streams.channel import Channel, Sizes
from bridle.server.streams.news import News
from bridle.server.streams.rooms import Rooms
from bridle.server.streams.transcripts import Story
from bridle.supervisor import Supervisor
from bridle.supervisor.notes import entry as entry_of
from bridle.views import Transcript
from tests.supervisor.homes import ASKS, Home, asked, until
from tests.views.helpers import Told as Tale

from .conftest import OpenHouse
from .serving import followed, grow, pass_by, served, silent
from .sse import LIMIT, follow

Entries = dict[int, Any]


async def folded(supervisor: Supervisor, session: str) -> Transcript:
    """All that the log has of it, folded anew."""
    found = Transcript()
    while events := await supervisor.journal.log.read(session, found.state.seq, 500):
        for event in events:
            found.add(entry_of(event))
    return found


def shown(found: Transcript) -> Entries:
    entries = found.page(after=0, limit=len(found))
    return {entry.position: msgspec.to_builtins(entry) for entry in entries}


async def tell(supervisor: Supervisor, session: str, tale: Tale) -> int:
    """Append what a tale has told."""
    owner = supervisor._means.owners.of(session)
    last = await owner.append([NewEvent(one.kind, one.body) for one in tale.entries])
    tale.entries.clear()
    return last


def a_turn(number: int) -> Tale:
    """Entries that change later: calls that end, approvals that are decided."""
    tale = Tale()
    tale.text(f"turn {number}")
    for call in (f"a{number}", f"b{number}"):
        tale.calls(call, "Bash", command="ls")
    tale.asks(f"q{number}", f"a{number}")
    tale.decides(f"q{number}")
    for call in (f"b{number}", f"a{number}"):
        tale.gives(call, "README.md")
    tale.result(0.1 * number)
    return tale


async def test_a_stream_of_a_running_agent_ends_up_with_its_transcript(
    home: Home, house: House
) -> None:
    supervisor = house.supervisor
    made = await home.start(supervisor, *ASKS)
    seen: Entries = {}
    async with followed(house, f"/sessions/{made.id}/transcript") as follower:
        approval = await asked(supervisor, made.id)
        await supervisor.approvals.cancel(approval.id)
        while not any(entry["kind"] == "turn_end" for entry in seen.values()):
            told = await follower.until("entry")
            seen[told.json["position"]] = told.json
    await until(supervisor, made.id, "idle")
    final = await folded(supervisor, made.id)
    upto = max(entry["changed"] for entry in seen.values())
    assert {at: one for at, one in shown(final).items() if one["changed"] <= upto} == seen


@pytest.mark.parametrize("frames", [4, 2048])
async def test_cut_streams_add_up_to_the_fold_of_everything(
    home: Home, opened: OpenHouse, frames: int
) -> None:
    """Wherever a connection breaks, whether what comes next is in the ring or not."""
    dice = random.Random(frames)
    async with opened(sizes=Sizes(frames=frames)) as house, served(house) as port:
        supervisor = house.supervisor
        made = await silent(home, supervisor)
        path = f"/sessions/{made.id}/transcript"
        seen: Entries = {}
        last, upto = "", 0
        for number in range(30):
            upto = await tell(supervisor, made.id, a_turn(number))
            async with follow(port, path, last) as follower:
                for _ in range(dice.randint(1, 12)):
                    told = await follower.until("entry")
                    assert not last or told.json["changed"] > int(last)
                    seen[told.json["position"]] = told.json
                    if told.json["changed"] == upto:
                        break
                last = follower.last
        async with follow(port, path, last) as follower:
            while int(last) < upto:
                told = await follower.until("entry")
                seen[told.json["position"]], last = told.json, told.last
        assert seen == shown(await folded(supervisor, made.id))


async def test_a_resume_has_just_the_entries_that_have_changed(home: Home, house: House) -> None:
    supervisor = house.supervisor
    made = await silent(home, supervisor)
    await tell(supervisor, made.id, a_turn(1))
    middle = await tell(supervisor, made.id, a_turn(2))
    last = await tell(supervisor, made.id, a_turn(3))
    final = shown(await folded(supervisor, made.id))
    path = f"/sessions/{made.id}/transcript?after={middle - 3}"
    async with followed(house, path) as follower:
        found = []
        while follower.last != str(last):
            found.append((await follower.until("entry")).json)
    wanted = [entry for entry in final.values() if entry["changed"] > middle - 3]
    assert found == sorted(wanted, key=lambda entry: (entry["changed"], entry["position"]))


async def test_pieces_pass_by_between_entries(home: Home, house: House) -> None:
    supervisor = house.supervisor
    made = await silent(home, supervisor)
    async with followed(house, f"/sessions/{made.id}/transcript?after=tip") as follower:
        await follower.joined()
        pass_by(supervisor, made.id, "Hel")
        pass_by(supervisor, made.id, "lo")
        await grow(supervisor, made.id, "Hello")
        first, second, whole = await follower.take(3)
        assert [one.name for one in (first, second, whole)] == ["delta", "delta", "entry"]
        assert [one.json["body"]["text"] for one in (first, second)] == ["Hel", "lo"]
        assert whole.json["text"]["text"] == "Hello"


async def test_pages_come_from_either_end(
    home: Home, house: House, client: httpx.AsyncClient
) -> None:
    made = await silent(home, house.supervisor)
    for number in range(5):
        await tell(house.supervisor, made.id, a_turn(number))
    final = shown(await folded(house.supervisor, made.id))
    count, path = len(final), f"/sessions/{made.id}/transcript"

    async def page(**params: int) -> list[int]:
        answer = (await client.get(path, params=params)).json()
        assert (answer["count"], answer["seq"]) == (count, house.supervisor.get(made.id).seq)
        assert all(entry == final[entry["position"]] for entry in answer["entries"])
        return [entry["position"] for entry in answer["entries"]]

    assert await page(limit=3) == [count - 2, count - 1, count]
    assert await page(limit=3, before=count - 2) == [count - 5, count - 4, count - 3]
    assert await page(limit=3, after=0) == [1, 2, 3]
    assert await page(limit=3, after=3) == [4, 5, 6]
    assert await page(limit=1000) == list(range(1, count + 1))
    assert await page(after=count) == []


async def test_a_page_of_long_entries_is_cut_at_the_far_end(
    home: Home, house: House, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "MAX_PAGE_BYTES", 3_000)
    made = await silent(home, house.supervisor)
    tale = Tale()
    for _ in range(9):
        tale.text("x" * 1_000)
    await tell(house.supervisor, made.id, tale)
    path = f"/sessions/{made.id}/transcript"
    end = (await client.get(path)).json()
    assert [entry["position"] for entry in end["entries"]] == [end["count"] - 1, end["count"]]
    start = (await client.get(path, params={"after": end["count"] - 9})).json()
    first = end["count"] - 8
    assert [entry["position"] for entry in start["entries"]] == [first, first + 1]


@pytest.mark.parametrize("after", [None, 0])
async def test_an_entry_that_is_larger_than_a_page_is_a_page_of_its_own(
    home: Home,
    house: House,
    client: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    after: int | None,
) -> None:
    monkeypatch.setattr(routes, "MAX_PAGE_BYTES", 20)
    made = await silent(home, house.supervisor)
    await tell(house.supervisor, made.id, a_turn(1))
    params = {} if after is None else {"after": after}
    page = (await client.get(f"/sessions/{made.id}/transcript", params=params)).json()
    expected = page["count"] if after is None else 1
    assert [entry["position"] for entry in page["entries"]] == [expected]


async def test_a_transcript_is_folded_once_for_all_who_look(
    home: Home, house: House, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await silent(home, house.supervisor)
    last = await tell(house.supervisor, made.id, a_turn(1))
    events, frames = [], Story._frames

    def counted(story: Story, event: Any) -> Any:
        events.append(event)
        return frames(story, event)

    monkeypatch.setattr(Story, "_frames", counted)
    for path in ("transcript", "files", "timeline", "transcript"):
        assert (await client.get(f"/sessions/{made.id}/{path}")).json()["seq"] == last
    assert len(events) == last


async def test_a_long_stream_is_folded_in_slices_between_which_others_have_their_turn(
    home: Home, house: House, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "SLICE_SECONDS", 0.0)  # so that a slice is one event
    made = await silent(home, house.supervisor)
    for number in range(100):
        await tell(house.supervisor, made.id, a_turn(number))
    turns = 0

    async def look() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    looking = asyncio.ensure_future(look())
    answer = (await client.get(f"/sessions/{made.id}/transcript")).json()
    looking.cancel()
    assert answer["seq"] == house.supervisor.get(made.id).seq
    assert turns > answer["seq"] / 2


async def test_what_nobody_follows_is_let_go(
    home: Home, opened: OpenHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: asyncio.Queue[type] = asyncio.Queue()
    shut = Rooms._shut

    def noted(rooms: Rooms[Any], kept: Any) -> None:
        shut(rooms, kept)
        closed.put_nowait(type(kept.room))

    monkeypatch.setattr(Rooms, "_shut", noted)
    async with opened(heartbeat=0.1, idle=0.0) as house, served(house) as port:
        made = await silent(home, house.supervisor)
        for view in ("transcript", "events"):
            async with follow(port, f"/sessions/{made.id}/{view}") as follower:
                await follower.told()
        async with asyncio.timeout(LIMIT):
            found = {await closed.get() for _ in range(3)}
        assert found == {Channel, Story, News}


async def test_of_too_many_entries_those_go_that_nobody_has_looked_at_for_longest(
    home: Home, opened: OpenHouse
) -> None:
    async with opened(entries=25) as house:
        made = [await silent(home, house.supervisor) for _ in range(3)]
        for one in made:  # 11 entries and spans each
            last = await tell(house.supervisor, one.id, a_turn(1))
            with house.streams.story(one.id) as story:
                await story.reached(last)
        with house.streams.story(made[0].id):
            house.streams._sweep()
        assert set(house.streams._stories._kept) == {made[0].id, made[2].id}


async def test_whoever_waits_for_a_session_that_is_deleted_is_told(
    home: Home, opened: OpenHouse
) -> None:
    async with opened(heartbeat=0.1) as house:
        made = await silent(home, house.supervisor)
        with house.streams.story(made.id) as story:
            waiting = asyncio.ensure_future(story.reached(1_000))
            await asyncio.sleep(0)
            await house.supervisor.delete(made.id)
            async with asyncio.timeout(LIMIT):
                with pytest.raises(UnknownSession):
                    await waiting


async def test_files_and_timeline_are_as_folded(
    home: Home, house: House, client: httpx.AsyncClient
) -> None:
    made = await silent(home, house.supervisor)
    tale = Tale()
    tale.calls("w", "Write", file_path="/f/new.txt", content="a")
    tale.gives("w", "done", tool_use_result={"type": "create", "filePath": "/f/new.txt"})
    tale.calls("r", "Read", file_path="/f/old.txt")
    tale.gives("r", "text")
    last = await tell(house.supervisor, made.id, tale)
    files = (await client.get(f"/sessions/{made.id}/files")).json()
    assert [use["path"] for use in files["changed"]] == ["/f/new.txt"]
    assert [use["path"] for use in files["read"]] == ["/f/old.txt"]
    assert (files["more"], files["seq"]) == (0, last)
    spans = (await client.get(f"/sessions/{made.id}/timeline", params={"limit": 1})).json()
    assert (spans["count"], spans["spans"][0]["name"]) == (2, "Read")
    first = (await client.get(f"/sessions/{made.id}/timeline?after=0&limit=1")).json()
    assert first["spans"][0]["outcome"] == "ok"
