"""Sessions by the API: made, listed, looked at and deleted; what agents and readers see of them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import httpx
import pytest

from bridle.server.house import House
from tests.supervisor.homes import LIMIT, ME, TURN, Home, Step, until

from .callers import SECRET, agent_of, reader_of, refused, told


def new(home: Home, *steps: Step, **fields: Any) -> dict[str, Any]:
    """The body for a session with a fake CLI."""
    launch = {"command": home.cli(*steps).command, **fields.pop("launch", {})}
    return {"folder": str(home.work), "launch": launch, **fields}


async def test_a_session_is_made_goes_to_work_and_is_shown(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    body = new(home, *TURN, prompt="go", name="a", labels={"team": "x"}, mode="plan", model="m")
    made = told(await client.post("/sessions", json=body), 201)
    assert made["name"] == "a"
    assert made["labels"] == {"team": "x"}
    assert (made["model"], made["mode"], made["by"]) == ("m", "plan", "me")
    await house.supervisor.wait(made["id"], lambda record: record.turns == 1, LIMIT)
    by_name, by_id = (await client.get("/sessions/a")), await client.get(f"/sessions/{made['id']}")
    assert told(by_name)["id"] == told(by_id)["id"] == made["id"]
    assert by_name.json()["turns"] == 1
    assert "stop" in by_name.json()["operations"]


async def test_a_session_is_told_pictures_too(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    parts = [
        {"type": "text", "text": "what is this?"},
        {"type": "image", "media_type": "image/png", "data": picture},
    ]
    cli = home.cli(*TURN)
    body = {"folder": str(home.work), "launch": {"command": cli.command}, "prompt": parts}
    made = told(await client.post("/sessions", json=body), 201)
    await house.supervisor.wait(made["id"], lambda record: record.turns == 1, LIMIT)
    [prompt] = [one for one in cli.told() if one["type"] == "user"]
    assert [part["type"] for part in prompt["message"]["content"]] == ["text", "image"]


async def test_what_is_given_for_the_environment_is_stored_only_if_it_is_no_secret(
    house: House, home: Home, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("from the file\n")
    env = {
        "A": {"type": "plain", "value": "a"},
        "B": {"type": "secret", "value": "very secret"},
        "C": {"type": "file", "path": str(tmp_path / "key")},
        "D": {"type": "env", "name": "HOME"},
    }
    made = told(await client.post("/sessions", json=new(home, *TURN, env=env, start=False)), 201)
    record = house.supervisor.get(made["id"])
    assert record.env == {
        "A": "plain:a",
        "B": "given",
        "C": f"file:{tmp_path / 'key'}",
        "D": "env:HOME",
    }


async def test_what_a_session_has_for_a_secret_is_shown_of_no_session(
    house: House,
    home: Home,
    client: httpx.AsyncClient,
    tmp_path: Path,
) -> None:
    secrets = ["gi;ven-1", "fi;led-2", "in;env-3", "la;ter-4"]
    (tmp_path / "key").write_text(f"{secrets[1]}\n")
    house.supervisor._means.environ = {"OF_OURS": secrets[2]}
    env = {
        "A": {"type": "secret", "value": secrets[0]},
        "B": {"type": "file", "path": str(tmp_path / "key")},
        "C": {"type": "env", "name": "OF_OURS"},
        "D": {"type": "plain", "value": "pl;ain-5"},
    }
    made = told(await client.post("/sessions", json=new(home, *TURN, env=env, start=False)), 201)
    body = {"env": {"A": secrets[3]}}
    told(await client.post(f"/sessions/{made['id']}/start", json=body))
    labels = {"all": " ".join((*secrets, "pl;ain-5"))}
    other = new(home, *TURN, labels=labels, start=False)
    told(await client.post("/sessions", json=other), 201)
    async with reader_of(house) as reader:
        [_, seen] = told(await reader.get("/sessions"))["items"]
    assert seen["labels"] == {"all": "[redacted:A] [redacted:B] [redacted:C] [redacted:A] pl;ain-5"}


IMPOSSIBLE: list[tuple[dict[str, Any], int, str]] = [
    ({"folder": "relative"}, 400, "invalid_folder"),
    ({"folder": "/nowhere/at/all"}, 400, "invalid_folder"),
    ({"folder": "~nobody/x"}, 400, "invalid_folder"),
    ({"folder": "/\0"}, 400, "invalid_folder"),
    ({"folder": "/" + "x" * 10_000}, 400, "invalid_folder"),
    ({"colour": "red"}, 400, "unknown_field"),
    ({"limits": {"turn": 1}}, 400, "unknown_field"),
    ({"limits": {"turns": -1}}, 400, "invalid_body"),
    ({"name": "a/b"}, 400, "invalid_name"),
    ({"name": "\0"}, 400, "invalid_name"),
    ({"name": "x" * 201}, 400, "invalid_name"),
    ({"policy": "no such one"}, 404, "unknown_policy"),
    ({"policy": "/nowhere/x.toml"}, 400, "invalid_policy"),
    ({"policy": "/\0.toml"}, 400, "invalid_policy"),
    ({"policy": "relative.toml"}, 404, "unknown_policy"),
    ({"parent": "nobody"}, 404, "unknown_session"),
    ({"launch": {"colour": "red"}}, 400, "invalid_launch"),
    ({"launch": {"cwd": "/"}}, 400, "invalid_launch"),
    ({"launch": {"prompt": "x"}}, 400, "invalid_launch"),
    ({"launch": {"model": "x"}}, 400, "unknown_field"),
    ({"launch": {"max_turns": "many"}}, 400, "invalid_body"),
    ({"launch": {"allowed_tools": 5}}, 400, "invalid_body"),
    ({"launch": {"allowed_tools": ["Bash("]}}, 400, "invalid_rule"),
    ({"env": {"A=B": {"type": "plain", "value": "x"}}}, 400, "invalid_body"),
    ({"env": {"A": {"type": "plain", "value": "\0"}}}, 400, "invalid_body"),
    ({"env": {"A": {"type": "file", "path": "/\0"}}}, 409, "missing_variables"),
    ({"env": {"A": {"type": "file", "path": "~nobody/x"}}}, 409, "missing_variables"),
    ({"env": {"A": {"type": "other"}}}, 400, "invalid_body"),
    ({"prompt": ""}, 400, "invalid_request"),
    ({"prompt": []}, 400, "invalid_request"),
    ({"prompt": 5}, 400, "invalid_body"),
    (
        {"prompt": [{"type": "image", "media_type": "image/png", "data": "?"}]},
        400,
        "invalid_body",
    ),
    (
        {"prompt": [{"type": "image", "media_type": "text/html", "data": "AAAA"}]},
        400,
        "invalid_body",
    ),
]


async def test_what_can_not_be_made_is_refused_and_nothing_is(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    for change, status, code in IMPOSSIBLE:
        body = {"folder": str(home.work), "start": False, **change}
        assert refused(await client.post("/sessions", json=body)) == (status, code)
        assert house.supervisor.list() == []


async def test_a_name_is_taken_once(home: Home, client: httpx.AsyncClient) -> None:
    body = new(home, *TURN, name="a", start=False)
    told(await client.post("/sessions", json=body), 201)
    assert refused(await client.post("/sessions", json=body)) == (409, "name_taken")


async def test_a_list_is_filtered_and_comes_in_parts(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    (home.work / "sub").mkdir()
    for number in range(5):
        labels = {"team": "x" if number % 2 else "y"}
        cwd = home.work / "sub" if number == 4 else home.work
        await house.supervisor.create(cwd=cwd, by=ME, name=f"s{number}", labels=labels, start=False)

    async def names(**params: Any) -> list[str]:
        page = told(await client.get("/sessions", params=params))
        return [one["name"] for one in page["items"]]

    assert await names() == ["s0", "s1", "s2", "s3", "s4"]
    assert await names(label="team=x") == ["s1", "s3"]
    assert await names(label=["team", "team=y"]) == ["s0", "s2", "s4"]
    assert await names(label="other") == []
    assert await names(state="stopped", folder=str(home.work / "sub")) == ["s4"]
    assert await names(folder=str(home.work)) == ["s0", "s1", "s2", "s3", "s4"]
    assert await names(state=["idle", "running"]) == []
    seen, after = [], ""
    while True:
        page = told(await client.get("/sessions", params={"limit": 2, "after": after}))
        seen += [one["name"] for one in page["items"]]
        after = page["next"]
        if after is None:
            break
        if len(seen) == 2:  # what goes meanwhile does not disturb those behind it
            await house.supervisor.delete("s1")
    assert seen == ["s0", "s1", "s2", "s3", "s4"]
    assert refused(await client.get("/sessions", params={"after": "x"})) == (400, "invalid_cursor")
    assert refused(await client.get("/sessions", params={"state": "x"})) == (
        400,
        "invalid_parameter",
    )
    for limit in ("0", "1001", "x"):
        assert refused(await client.get("/sessions", params={"limit": limit}))[0] == 400


async def test_children_are_found_by_their_parent(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    root = await home.start(house.supervisor, *TURN, name="root")
    await until(house.supervisor, root.id, "idle")
    body = new(home, *TURN, name="child", parent="root", start=False)
    child = told(await client.post("/sessions", json=body), 201)
    assert (child["parent"], child["lineage"]) == (root.id, [root.id])
    page = told(await client.get("/sessions", params={"parent": "root"}))
    assert [one["name"] for one in page["items"]] == ["child"]


async def test_an_agent_sees_itself_and_what_is_below_it_and_nothing_else(
    house: House, home: Home
) -> None:
    supervisor = house.supervisor
    root = await home.start(supervisor, *TURN, name="root")
    await until(supervisor, root.id, "idle")
    child = await home.start(supervisor, *TURN, name="child", parent=root.id, start=False)
    other = await home.start(supervisor, *TURN, name="other", start=False)
    async with agent_of(house, root.id) as agent:
        page = told(await agent.get("/sessions"))
        assert {one["name"] for one in page["items"]} == {"root", "child"}
        assert told(await agent.get("/sessions/child"))["id"] == child.id
        assert refused(await agent.get("/sessions/other")) == (404, "unknown_session")
        assert refused(await agent.get(f"/sessions/{other.id}")) == (404, "unknown_session")
        for parent in ("other", other.id, "nobody"):  # whether there is one is not told
            page = told(await agent.get("/sessions", params={"parent": parent}))
            assert page["items"] == []
        for path in ("info", "context", "mcp", "policy", "usage"):
            assert refused(await agent.get(f"/sessions/other/{path}")) == (404, "unknown_session")
        assert refused(await agent.post("/sessions", json={"folder": "/"})) == (403, "forbidden")
        assert refused(await agent.delete("/sessions/child")) == (403, "forbidden")
    async with agent_of(house, child.id) as agent:
        page = told(await agent.get("/sessions"))
        assert [one["name"] for one in page["items"]] == ["child"]


async def test_a_secret_in_its_last_words_is_shown_to_people_who_ask_for_it_alone(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    made = await home.start(house.supervisor, {"stderr": f"no {SECRET}"}, {"exit": 3})
    await until(house.supervisor, made.id, "failed")
    path = f"/sessions/{made.id}"
    for params in ({}, {"reveal": "false"}):
        answer = await client.get(path, params=params)
        assert told(answer)["launch"]["stderr"].strip() == "no [redacted:anthropic-key]"
    assert SECRET not in (await client.get("/sessions")).text
    assert SECRET in (await client.get(path, params={"reveal": "true"})).text
    assert SECRET in (await client.get("/sessions", params={"reveal": "true"})).text
    async with reader_of(house) as reader:
        assert SECRET not in (await reader.get(path)).text
        answer = await reader.get(path, params={"reveal": "true"})
        assert refused(answer) == (403, "forbidden")
    assert SECRET in str(house.supervisor.get(made.id).launch)  # what is stored is what was said


async def test_a_session_that_has_ended_is_deleted_and_one_that_runs_is_not(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    made = await home.start(house.supervisor, *TURN, name="a")
    await until(house.supervisor, made.id, "idle")
    assert refused(await client.delete("/sessions/a")) == (409, "not_possible")
    told(await client.post("/sessions/a/stop"))
    assert (await client.delete("/sessions/a")).status_code == 204
    assert refused(await client.get("/sessions/a")) == (404, "unknown_session")
    assert refused(await client.delete("/sessions/a")) == (404, "unknown_session")


@pytest.mark.parametrize(
    "name", ["%00", "%F0%9F", "..", "%2e%2e", "x" * 10_000, "a%2Fb", "%ED%A0%80"]
)
async def test_odd_names_in_an_address_are_simply_not_there(
    client: httpx.AsyncClient, name: str
) -> None:
    answer = await client.get(f"/sessions/{name}")
    assert answer.status_code in (400, 404), answer.text


ODD = (r"\ud800", r"\u0000", r"\udc00\ud800", "\\uFFFF", "x" * 10_000, "\u202e", "%s%n")


async def test_odd_texts_in_a_body_are_an_error_of_the_caller_or_none(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    await home.start(house.supervisor, *TURN, name="a")
    await until(house.supervisor, "a", "idle")
    folder = str(home.work)
    for text in ODD:
        bodies = {
            "POST /sessions": f'{{"folder": "{folder}", "start": false, "name": "{text}"}}',
            "POST  /sessions": f'{{"folder": "{text}"}}',
            "POST   /sessions": f'{{"folder": "{folder}", "start": false,'
            f' "labels": {{"{text}": "{text}"}}}}',
            "POST    /sessions": f'{{"folder": "{folder}", "start": false, "policy": "{text}"}}',
            "POST     /sessions": f'{{"folder": "{folder}", "start": false, "model": "{text}"}}',
            "POST /sessions/a/send": f'{{"prompt": "{text}"}}',
            "POST /sessions/a/stop": f'{{"words": "{text}"}}',
            "PUT /policies/x": f'{{"text": "{text}"}}',
            "POST /policies/check": f'{{"text": "{text}"}}',
            "PUT /trust": f'{{"folder": "{text}", "digest": "{text}"}}',
            "POST /audit/verify": f'{{"session": "{text}"}}',
            "POST /policies/test": f'{{"policy": "ask", "folder": "{folder}", "calls":'
            f' [{{"tool": "{text}", "input": {{"command": "{text}"}}, "cwd": "{text}"}}]}}',
        }
        for route, body in bodies.items():
            method, path = route.split()
            answer = await client.request(
                method, path, content=body.encode(), headers={"content-type": "application/json"}
            )
            assert answer.status_code < 500, (route, answer.text)
