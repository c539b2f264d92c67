"""Events as pages, and one event however large it is."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from bridle.journal import NewEvent
from bridle.server.house import House
from bridle.server.routes import events
from bridle.views import stream
from tests.supervisor.homes import Home

from .serving import followed, grow, silent


async def test_pages_go_on_from_one_to_the_next(
    home: Home, house: House, client: httpx.AsyncClient
) -> None:
    made = await silent(home, house.supervisor, name="one")
    last = await grow(house.supervisor, made.id, *map(str, range(25)))
    seen: list[Any] = []
    after = "0"
    while after is not None:
        answer = await client.get("/sessions/one/events", params={"after": after, "limit": 10})
        page = answer.json()
        assert len(page["items"]) <= 10
        seen += page["items"]
        after = page["next"]
    assert [event["seq"] for event in seen] == list(range(1, last + 1))
    assert seen[-1]["body"]["text"] == "24"
    beyond = await client.get("/sessions/one/events", params={"after": last + 5})
    assert beyond.json() == {"items": [], "next": None}
    tip = await client.get("/sessions/one/events", params={"after": "tip"})
    assert tip.json() == {"items": [], "next": None}


async def test_a_page_is_bounded_in_bytes(
    home: Home, house: House, client: httpx.AsyncClient
) -> None:
    made = await silent(home, house.supervisor)
    last = await grow(house.supervisor, made.id, *["x" * 200_000] * 12)
    path = f"/sessions/{made.id}/events"
    first = (await client.get(path, params={"after": last - 12})).json()
    assert 5 <= len(first["items"]) <= 7
    rest = (await client.get(path, params={"after": first["next"]})).json()
    assert rest["items"][0]["seq"] == first["items"][-1]["seq"] + 1


async def test_a_page_of_few_kinds_looks_through_so_many_and_says_where_to_go_on(
    home: Home, house: House, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MAX_SCANNED", 10)
    monkeypatch.setattr(events, "READ", 10)
    made = await silent(home, house.supervisor)
    await grow(house.supervisor, made.id, *["x"] * 25)
    owner = house.supervisor._means.owners.of(made.id)
    last = await owner.append([NewEvent("wanted", b"{}")])
    found, after, pages = [], "0", 0
    while after is not None:
        params = {"after": after, "kinds": "wanted"}
        page = (await client.get(f"/sessions/{made.id}/events", params=params)).json()
        found += [event["seq"] for event in page["items"]]
        after, pages = page["next"], pages + 1
    assert (found, pages) == ([last], 3)


@pytest.mark.parametrize(
    "params",
    [
        {"after": "x"},
        {"after": "-1"},
        {"limit": "0"},
        {"limit": "1001"},
        {"limit": "x"},
        {"reveal": "perhaps"},
        {"kinds": "x" * 2000},
    ],
    ids=str,
)
async def test_parameters_that_can_not_be_are_refused(
    home: Home, house: House, client: httpx.AsyncClient, params: dict[str, str]
) -> None:
    made = await silent(home, house.supervisor)
    answer = await client.get(f"/sessions/{made.id}/events", params=params)
    assert answer.status_code == 400, answer.text
    assert answer.json()["code"] in ("invalid_parameter", "invalid_cursor")


@pytest.mark.parametrize("seq", [0, -1, 99, 1 << 70])
async def test_an_event_that_is_not_there_is_unknown(
    home: Home, house: House, client: httpx.AsyncClient, seq: int
) -> None:
    made = await silent(home, house.supervisor)
    answer = await client.get(f"/sessions/{made.id}/events/{seq}")
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_event")


@pytest.mark.slow
async def test_a_very_large_event_is_cut_in_streams_and_whole_at_its_own_address(
    home: Home, house: House, client: httpx.AsyncClient
) -> None:
    made = await silent(home, house.supervisor)
    text = "many words, " * (60_000_000 // 12)
    body = stream.Stderr(launch="l1", end=0, text=text)
    owner = house.supervisor._means.owners.of(made.id)
    large = await owner.append([NewEvent(stream.STDERR, msgspec.json.encode(body))])
    last = await grow(house.supervisor, made.id, "after it")
    path = f"/sessions/{made.id}/events"
    page = (await client.get(path, params={"after": large - 1})).json()
    async with followed(house, f"{path}?after={large - 1}") as follower:
        streamed = [told.json for told in await follower.take(2)]
    assert page["items"] == streamed
    assert streamed[0]["is_cut"]
    assert streamed[0]["size"] == len(msgspec.json.encode(body))
    assert streamed[0]["body"].startswith('{"launch":"l1","end":0,"text":"many words')
    assert streamed[1]["seq"] == last
    whole = await client.get(f"{path}/{large}")
    assert int(whole.headers["content-length"]) == len(whole.content)
    assert whole.json()["body"]["text"] == text
    assert "is_cut" not in whole.json()
