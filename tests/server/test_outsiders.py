"""Tokens of agents that somebody else runs: each has a session, and neither outlives the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from bridle.server.outsiders import match_tokens
from tests.supervisor.homes import ME, TURN, Home, until

from .served import Served, served


async def made(client: httpx.AsyncClient, folder: Path, **given: Any) -> dict[str, Any]:
    external = {"kind": "root", "folder": str(folder), **given}
    body = {"role": "agent", "name": "mine", "external": external}
    answer = await client.post("/api/v1/tokens", json=body)
    assert answer.status_code == 201, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def counts(server: Served, text: str) -> bool:
    async with server.client(text) as client:
        answer = await client.get("/api/v1/health")
    return answer.status_code == 200


@pytest.mark.parametrize(
    ("kind", "role", "start"), [("root", "agent", "a"), ("permit",) * 2 + ("m",)]
)
async def test_a_token_for_one_elsewhere_brings_its_session(
    home: Home, kind: str, role: str, start: str
) -> None:
    async with served(home.folder) as server, server.local() as person:
        told = await made(person, home.work, kind=kind, policy="read-only", limits={"turns": 5})
        assert told["text"].startswith(f"bridle_{start}_")
        assert told["token"]["role"] == role
        record = server.supervisor.get(told["token"]["session"])
        assert (record.name, record.external, record.state) == ("mine", kind, "idle")
        assert (record.folder, record.limits.turns) == (str(home.work), 5)
        view = (await person.get("/api/v1/sessions/mine")).json()
        assert (view["external"], view["operations"]) == (kind, ["stop"])
        assert await counts(server, told["text"])


IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"role": "agent", "name": "x"}, "invalid_body"),
    ({"role": "permit", "name": "x"}, "invalid_body"),
    ({"role": "person", "name": "x", "external": {"kind": "root"}}, "invalid_body"),
    ({"role": "agent", "name": "x", "session": "s", "external": {}}, "invalid_body"),
    ({"role": "agent", "name": "x", "external": {"kind": "leaf"}}, "invalid_body"),
    ({"role": "agent", "name": "x", "external": {"folder": "not/there"}}, "invalid_folder"),
    ({"role": "agent", "name": "x", "external": {"policy": "wild"}}, "unknown_policy"),
    ({"role": "agent", "name": "x/y", "external": {}}, "invalid_name"),
    ({"role": "agent", "name": "x", "external": {"limits": {"turns": -1}}}, "invalid_body"),
    ({"role": "agent", "name": "x", "external": {"mode": "plan"}}, "unknown_field"),
]


async def test_what_makes_no_sense_makes_neither_a_token_nor_a_session(home: Home) -> None:
    async with served(home.folder) as server, server.local() as person:
        external = {"kind": "root", "folder": str(home.work)}
        for given, code in IMPOSSIBLE:
            wanted = dict(given)
            if "external" in given:
                wanted["external"] = {**external, **given["external"]}
            answer = await person.post("/api/v1/tokens", json=wanted)
            assert (answer.status_code // 100, answer.json()["code"]) == (4, code)
            assert not server.supervisor.list()
            assert len(server.house.tokens.list()) == 1


async def test_a_second_one_of_the_same_name_is_refused(home: Home) -> None:
    async with served(home.folder) as server, server.local() as person:
        await made(person, home.work)
        body = {"role": "agent", "name": "mine", "external": {"kind": "root", "folder": "/"}}
        answer = await person.post("/api/v1/tokens", json=body)
        assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")


async def test_to_revoke_the_token_ends_the_session(home: Home) -> None:
    async with served(home.folder) as server, server.local() as person:
        told = await made(person, home.work)
        child = await home.start(server.supervisor, *TURN, parent=told["token"]["session"])
        await until(server.supervisor, child.id, "idle")
        answer = await person.delete(f"/api/v1/tokens/{told['token']['id']}")
        assert answer.status_code == 204
        await until(server.supervisor, "mine", "stopped")
        await until(server.supervisor, child.id, "stopped")
        assert not await counts(server, told["text"])


@pytest.mark.parametrize("how", ["the route", "the library"])
async def test_to_end_the_session_revokes_the_token(home: Home, how: str) -> None:
    async with served(home.folder) as server, server.local() as person:
        told = await made(person, home.work)
        if how == "the route":
            assert (await person.post("/api/v1/sessions/mine/stop")).status_code == 200
            assert not server.house.tokens.of_session(told["token"]["session"])
        else:
            await server.supervisor.stop("mine")
            await until(server.supervisor, "mine", "stopped")
        assert not await counts(server, told["text"])
        assert (await person.delete("/api/v1/sessions/mine")).status_code == 204
        assert not server.house.tokens.of_session(told["token"]["session"])


async def test_the_token_of_a_session_that_is_deleted_counts_no_more(home: Home) -> None:
    async with served(home.folder) as server, server.local() as person:
        record = await server.supervisor.create(cwd=home.work, by=ME, start=False)
        _, text = await server.house.tokens.create("agent", "its own", record.id)
        assert await counts(server, text)
        assert (await person.delete(f"/api/v1/sessions/{record.id}")).status_code == 204
        assert not await counts(server, text)


async def test_both_are_there_after_a_restart(home: Home) -> None:
    async with served(home.folder) as server, server.local() as person:
        told = await made(person, home.work)
    async with served(home.folder) as server:
        assert server.supervisor.get("mine").state == "idle"
        assert await counts(server, told["text"])


async def test_what_a_server_that_was_killed_had_not_come_to_is_done_at_the_next_start(
    home: Home,
) -> None:
    async with served(home.folder) as server, server.local() as person:
        kept = await made(person, home.work)
        ended = await server.supervisor.create_external(kind="root", folder=home.work, by=ME)
        _, left = await server.house.tokens.create("agent", "of one that has ended", ended.id)
        await server.supervisor.stop(ended.id)
        alone = await server.supervisor.create_external(kind="permit", folder=home.work, by=ME)
        assert alone.state == "idle"
    async with served(home.folder) as server:
        await until(server.supervisor, alone.id, "stopped")
        assert not server.house.tokens.of_session(ended.id)
        assert not await counts(server, left)
        assert await counts(server, kept["text"])
        await match_tokens(server.house)
        assert await counts(server, kept["text"])
