"""What is done with a session by the API."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from bridle.server.house import House
from bridle.views import stream
from tests.supervisor.homes import LIMIT, PROMPT, TURN, WORKS, Home, bodies, until

from .callers import agent_of, reader_of, refused, told


async def test_an_agent_is_told_and_answers(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    await home.start(house.supervisor, *TURN, *TURN, name="a")
    await house.supervisor.wait("a", lambda record: record.turns == 1, LIMIT)
    sent = told(await client.post("/sessions/a/send", json={"prompt": "again"}), 202)
    record = await house.supervisor.wait("a", lambda record: record.turns == 2, LIMIT)
    assert record.state == "idle"
    prompts: list[stream.Prompted] = await bodies(house.supervisor, "a", stream.PROMPTED)
    assert (prompts[-1].uuid, prompts[-1].by) == (sent["uuid"], "me")


async def test_a_turn_is_interrupted(house: House, home: Home, client: httpx.AsyncClient) -> None:
    await home.start(house.supervisor, *WORKS, name="a")
    await until(house.supervisor, "a", "running")
    assert told(await client.post("/sessions/a/interrupt")) == {"still_queued": [], "cancelled": []}


async def test_it_is_stopped_started_again_and_resumed(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    await home.start(house.supervisor, *TURN, name="a")
    await house.supervisor.wait("a", lambda record: record.turns == 1, LIMIT)
    stopped = told(await client.post("/sessions/a/stop", json={"words": "enough"}))
    assert (stopped["state"], stopped["launch"]["how"]) == ("stopped", "stopped")
    asked: list[stream.StopAsked] = await bodies(house.supervisor, "a", stream.STOP_ASKED)
    assert (asked[0].by, asked[0].words) == ("me", "enough")
    resumed = told(await client.post("/sessions/a/resume", json={"prompt": "go on"}))
    assert resumed["state"] != "stopped"
    await house.supervisor.wait("a", lambda record: record.turns == 2, LIMIT)
    told(await client.post("/sessions/a/stop"))
    started = told(await client.post("/sessions/a/start"))
    assert started["waiting"] == 0
    await until(house.supervisor, "a", "idle")
    launch = house.supervisor.get("a").launch
    assert launch
    assert launch.resume is None


async def test_a_value_that_was_given_by_hand_is_asked_for_again(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    await home.start(house.supervisor, *TURN, name="a", env={"KEY": "x"}, start=False)
    house.supervisor._means.secrets.clear()  # as after a restart
    answer = await client.post("/sessions/a/resume")
    assert refused(answer) == (409, "missing_variables")
    assert answer.json()["about"]["names"] == {"KEY": "it was given by hand, and is not stored"}
    told(await client.post("/sessions/a/resume", json={"env": {"KEY": "y"}}))
    await house.supervisor.wait("a", lambda record: record.turns == 1, LIMIT)


async def test_it_is_paused_and_goes_on(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    await home.start(house.supervisor, *TURN, name="a")
    await house.supervisor.wait("a", lambda record: record.turns == 1, LIMIT)
    assert told(await client.post("/sessions/a/pause"))["state"] == "paused"
    assert told(await client.post("/sessions/a/unpause"))["state"] == "idle"
    assert refused(await client.post("/sessions/a/unpause")) == (409, "not_possible")


async def test_a_fork_goes_on_by_itself(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    first = await home.start(house.supervisor, *TURN, name="a")
    await house.supervisor.wait("a", lambda record: record.turns == 1, LIMIT)
    body = {"prompt": "another way", "name": "b"}
    made = told(await client.post("/sessions/a/fork", json=body), 201)
    assert (made["forked_from"], made["name"]) == (first.id, "b")
    await house.supervisor.wait("b", lambda record: record.turns == 1, LIMIT)
    told(await client.post("/sessions/a/fork"), 201)


async def test_limits_are_changed_and_shown(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    await home.start(house.supervisor, *TURN, name="a")
    view = told(await client.put("/sessions/a/limits", json={"turns": 7, "cost_usd": 1.5}))
    assert view["limits"] == {"turns": 7, "cost_usd": 1.5}
    assert told(await client.put("/sessions/a/limits", json={}))["limits"] == {}


async def test_the_cli_is_asked_for_another_mode_and_model(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    replies = {"replies": {"set_permission_mode": {"mode": "plan"}, "set_model": {"model": "m"}}}
    await home.start(house.supervisor, *TURN, name="a", settings=replies)
    await house.supervisor.wait("a", lambda record: record.turns == 1, LIMIT)
    asked = told(await client.put("/sessions/a/mode", json={"mode": "plan"}))
    assert asked == {"mode": "plan", "note": ""}
    wide = told(await client.put("/sessions/a/mode", json={"mode": "acceptEdits"}))
    assert wide["note"] == (
        "the mode acceptEdits has no effect under the policy ask; use the policy `edits`"
    )
    assert told(await client.put("/sessions/a/model", json={"model": "m"})) == {"model": "m"}
    bad = await client.put("/sessions/a/mode", json={"mode": "reckless"})
    assert refused(bad) == (400, "invalid_body")


async def test_files_are_put_back_or_it_is_only_told_which(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    reply = {"canRewind": True, "filesChanged": ["a.py"], "insertions": 2, "deletions": 1}
    cli = home.cli(*TURN, replies={"rewind_files": reply})
    await home.start(house.supervisor, command=cli.command, name="a")
    await house.supervisor.wait("a", lambda record: record.turns == 1, LIMIT)
    body = {"uuid": "u1", "dry_run": True}
    assert told(await client.post("/sessions/a/rewind", json=body)) == {
        "can_rewind": True,
        "error": None,
        "files_changed": ["a.py"],
        "insertions": 2,
        "deletions": 1,
    }
    asked = [one["request"] for one in cli.told() if one["type"] == "control_request"]
    [request] = [one for one in asked if one["subtype"] == "rewind_files"]
    assert request["dry_run"] is True


async def test_the_cli_tells_of_itself(house: House, home: Home, client: httpx.AsyncClient) -> None:
    replies = {
        "initialize": {"commands": [{"name": "compact"}], "claude_code_version": "2.1.325"},
        "get_context_usage": {"totalTokens": 5, "maxTokens": 10},
        "mcp_status": {"mcpServers": [{"name": "github", "status": "connected"}]},
    }
    await home.start(house.supervisor, *TURN, name="a", settings={"replies": replies})
    await house.supervisor.wait("a", lambda record: record.turns == 1, LIMIT)
    assert told(await client.get("/sessions/a/info"))["commands"] == [{"name": "compact"}]
    context = told(await client.get("/sessions/a/context"))
    assert (context["totalTokens"], context["maxTokens"]) == (5, 10)
    servers = told(await client.get("/sessions/a/mcp"))["mcpServers"]
    assert servers == [{"name": "github", "status": "connected"}]


LIVE: list[tuple[str, str, Any]] = [
    ("POST", "interrupt", None),
    ("PUT", "mode", {"mode": "plan"}),
    ("PUT", "model", {"model": "m"}),
    ("POST", "rewind", {"uuid": "u"}),
    ("GET", "info", None),
    ("GET", "context", None),
    ("GET", "mcp", None),
]


@pytest.mark.parametrize(("method", "path", "body"), LIVE, ids=str)
async def test_what_needs_an_agent_that_runs_says_so(
    house: House, home: Home, client: httpx.AsyncClient, method: str, path: str, body: Any
) -> None:
    await home.start(house.supervisor, *TURN, name="a", start=False)
    answer = await client.request(method, f"/sessions/a/{path}", json=body)
    assert refused(answer) == (409, "not_possible")


WRITES: list[tuple[str, str, Any]] = [
    ("POST", "/sessions", {"folder": "/"}),
    ("DELETE", "/sessions/a", None),
    ("POST", "/sessions/a/send", {"prompt": "x"}),
    *(("POST", f"/sessions/a/{what}", None) for what in ("interrupt", "stop", "start", "resume")),
    *(("POST", f"/sessions/a/{what}", None) for what in ("pause", "unpause", "fork")),
    ("PUT", "/sessions/a/limits", {}),
    ("PUT", "/sessions/a/mode", {"mode": "plan"}),
    ("PUT", "/sessions/a/model", {"model": "m"}),
    ("PUT", "/sessions/a/policy", {"policy": "ask"}),
    ("POST", "/sessions/a/rewind", {"uuid": "u"}),
    ("POST", "/approvals/x/decide", {"choice": {"type": "reject"}}),
    ("DELETE", "/rules/x", None),
    ("PUT", "/policies/x", {"text": ""}),
    ("DELETE", "/policies/x", None),
    ("POST", "/policies/check", {"text": ""}),
    ("POST", "/policies/test", {"policy": "ask", "folder": "/", "calls": []}),
    ("PUT", "/trust", {"folder": "/", "digest": "x"}),
    ("DELETE", "/trust?folder=/", None),
    ("POST", "/fleet/release", None),
]


async def test_only_people_change_anything(house: House, home: Home) -> None:
    made = await home.start(house.supervisor, *TURN, name="a", start=False)
    before = (await house.supervisor.journal.log.info(made.id)).last_seq
    for method, path, body in WRITES:
        for caller in (agent_of(house, made.id), reader_of(house)):
            async with caller:
                answer = await caller.request(method, path, json=body)
                assert refused(answer) == (403, "forbidden")
        assert (await house.supervisor.journal.log.info(made.id)).last_seq == before
        assert len(house.supervisor.list()) == 1


async def test_a_prompt_that_the_cli_would_not_survive_is_refused(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    await home.start(house.supervisor, PROMPT, name="a", start=False)
    nothing: list[Any] = ["", []]
    for prompt in nothing:
        answer = await client.post("/sessions/a/resume", json={"prompt": prompt})
        assert refused(answer) == (400, "invalid_request")
    assert house.supervisor.get("a").state == "stopped"
