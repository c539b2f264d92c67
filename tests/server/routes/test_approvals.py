"""Approvals by the API: seen, explained, decided once; and the rules that were remembered."""

from __future__ import annotations

from typing import Any

import httpx

from bridle.approvals import Approval
from bridle.server.house import House, open_house
from bridle.supervisor import open_supervisor
from tests.server.conftest import PERSON, client_of
from tests.supervisor.homes import (
    ASKS,
    DONE,
    INIT,
    LIMIT,
    PROMPT,
    TURN,
    Home,
    Step,
    asked,
    until,
)

from .callers import SECRET, agent_of, reader_of, refused, told

#: A call with a secret in it.
TELLS: tuple[Step, ...] = (
    PROMPT,
    INIT,
    {
        "ask": {
            "tool_name": "Bash",
            "input": {"command": f"curl -H {SECRET}"},
            "tool_use_id": "t1",
        },
        "id": "q1",
    },
    DONE,
)


async def waiting(house: House, home: Home, *steps: Step, **options: Any) -> Approval:
    made = await home.start(house.supervisor, *(steps or ASKS), **options)
    approval = await asked(house.supervisor, made.id)
    await until(house.supervisor, made.id, "awaiting approval")
    return approval


async def test_what_waits_is_listed_shown_and_decided(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    approval = await waiting(house, home, name="a")
    page = told(await client.get("/approvals", params={"status": "pending"}))
    assert [one["id"] for one in page["items"]] == [approval.id]
    shown = told(await client.get(f"/approvals/{approval.id}"))
    assert (shown["tool"], shown["input"]) == ("Bash", {"command": "rm x"})
    body = {"choice": {"type": "approve"}, "shown": shown["digest"]}
    decided = told(await client.post(f"/approvals/{approval.id}/decide", json=body))
    assert decided["status"] == "allowed"
    assert decided["ending"]["by"] == {"type": "person", "name": "me", "via": "terminal"}
    await house.supervisor.wait("a", lambda record: record.turns == 1, LIMIT)
    answer = await client.post(f"/approvals/{approval.id}/decide", json=body)
    assert refused(answer) == (409, "already_decided")
    assert answer.json()["about"]["approval"]["status"] == "allowed"
    assert told(await client.get("/approvals", params={"status": "pending"}))["items"] == []
    assert len(told(await client.get("/approvals", params={"session": "a"}))["items"]) == 1


async def test_a_no_reaches_the_agent_with_its_words(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    cli = home.cli(*ASKS)
    approval = await waiting(house, home, command=cli.command, name="a")
    body = {"choice": {"type": "reject", "message": "not that"}}
    told(await client.post(f"/approvals/{approval.id}/decide", json=body))
    await house.supervisor.wait("a", lambda record: record.turns == 1, LIMIT)
    answer = cli.answer_to("q1")
    assert answer
    assert "not that" in answer["response"]["message"]


NO_DECISION = [
    ({}, 400, "invalid_body"),
    ({"choice": {"type": "approve", "colour": "red"}}, 400, "unknown_field"),
    ({"choice": {"type": "perhaps"}}, 400, "invalid_body"),
    ({"choice": {"type": "approve_plan"}}, 400, "invalid_decision"),
    ({"choice": {"type": "approve"}, "shown": "something else"}, 409, "shown_otherwise"),
    (
        {"choice": {"type": "approve", "remember": {"type": "session", "rule": "Bash("}}},
        400,
        "invalid_rule",
    ),
]


async def test_what_is_no_decision_decides_nothing(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    approval = await waiting(house, home)
    for body, status, code in NO_DECISION:
        answer = await client.post(f"/approvals/{approval.id}/decide", json=body)
        assert refused(answer) == (status, code)
        assert (await house.supervisor.approvals.get(approval.id)).status == "pending"


async def test_one_that_there_is_not_is_not_known(client: httpx.AsyncClient) -> None:
    for answer in (
        await client.get("/approvals/x"),
        await client.get("/approvals/x/explain"),
        await client.post("/approvals/x/decide", json={"choice": {"type": "reject"}}),
        await client.get("/approvals/" + "x" * 5_000),
        await client.get("/approvals/%00"),
    ):
        assert refused(answer) == (404, "unknown_approval")
    answer = await client.get("/approvals", params={"session": "nobody"})
    assert refused(answer) == (404, "unknown_session")


async def test_the_person_who_decides_sees_the_secret_and_others_do_not(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    approval = await waiting(house, home, *TELLS)
    path = f"/approvals/{approval.id}"
    assert SECRET in (await client.get(path)).text
    assert SECRET in (await client.get(f"{path}/explain")).text
    assert SECRET not in (await client.get("/approvals")).text
    assert SECRET in (await client.get("/approvals", params={"reveal": "true"})).text
    async with reader_of(house) as reader, agent_of(house, approval.session) as agent:
        for other in (reader, agent):
            assert SECRET not in (await other.get(path)).text
            assert SECRET not in (await other.get("/approvals")).text
            assert SECRET not in (await other.get(f"{path}/explain")).text
            assert "[redacted:anthropic-key]" in (await other.get(path)).text
            answer = await other.get(path, params={"reveal": "true"})
            assert refused(answer) == (403, "forbidden")


async def test_an_agent_sees_what_is_asked_below_it_and_decides_nothing(
    house: House, home: Home
) -> None:
    supervisor = house.supervisor
    root = await home.start(supervisor, *TURN, name="root")
    await until(supervisor, root.id, "idle")
    below = await waiting(house, home, name="child", parent=root.id)
    other = await waiting(house, home, name="other")
    async with agent_of(house, root.id) as agent:
        page = told(await agent.get("/approvals"))
        assert [one["id"] for one in page["items"]] == [below.id]
        assert told(await agent.get(f"/approvals/{below.id}"))["id"] == below.id
        for path in (f"/approvals/{other.id}", f"/approvals/{other.id}/explain"):
            assert refused(await agent.get(path)) == (404, "unknown_approval")
        answer = await agent.get("/approvals", params={"session": "other"})
        assert refused(answer) == (404, "unknown_session")
        body = {"choice": {"type": "approve"}}
        answer = await agent.post(f"/approvals/{below.id}/decide", json=body)
        assert refused(answer) == (403, "forbidden")
    assert (await supervisor.approvals.get(below.id)).status == "pending"


async def test_a_list_comes_in_parts(house: House, home: Home, client: httpx.AsyncClient) -> None:
    found = [(await waiting(house, home)).id for _ in range(3)]
    first = told(await client.get("/approvals", params={"limit": 2}))
    rest = told(await client.get("/approvals", params={"limit": 2, "after": first["next"]}))
    assert [one["id"] for one in (*first["items"], *rest["items"])] == found
    assert rest["next"] is None


async def test_it_is_explained_with_the_rules_that_would_allow_it(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    approval = await waiting(house, home)
    (home.work / "sub").mkdir()
    why = told(await client.get(f"/approvals/{approval.id}/explain"))
    assert why["text"].startswith("Asked")
    assert why["rule"] == approval.rule
    assert [one["rule"] for one in why["always"]] == ["Bash(rm x)", "Bash(rm:*)"]
    scopes = why["always"][0]["scopes"]
    assert [scope["where"] for scope in scopes] == ["session", "folder", "everywhere"]
    assert scopes[0]["remember"] == {"type": "session", "rule": "Bash(rm x)"}
    assert scopes[1]["remember"] == {
        "type": "always",
        "rule": "Bash(rm x)",
        "folder": str(home.work),
    }
    assert scopes[2]["remember"] == {"type": "always", "rule": "Bash(rm x)", "folder": ""}
    assert [scope["sessions"] for scope in scopes] == [1, 1, 1]


async def test_an_agent_is_told_of_no_more_sessions_than_it_sees(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    approval = await waiting(house, home, name="a")
    await home.start(house.supervisor, *TURN, name="b", start=False)

    async def covered(by: httpx.AsyncClient) -> list[int]:
        why = told(await by.get(f"/approvals/{approval.id}/explain"))
        return [scope["sessions"] for scope in why["always"][0]["scopes"]]

    assert await covered(client) == [1, 2, 2]
    async with agent_of(house, approval.session) as agent:
        assert await covered(agent) == [1, 1, 1]


async def test_what_is_explained_can_be_remembered_and_taken_back(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    again = {"tool_name": "Bash", "input": {"command": "rm x"}, "tool_use_id": "t2"}
    approval = await waiting(house, home, *ASKS, PROMPT, {"ask": again}, DONE, name="a")
    why = told(await client.get(f"/approvals/{approval.id}/explain"))
    remember = why["always"][0]["scopes"][1]["remember"]
    body = {"choice": {"type": "approve", "remember": remember}}
    told(await client.post(f"/approvals/{approval.id}/decide", json=body))
    [rule] = told(await client.get("/rules"))
    assert (rule["rule"], rule["folder"], rule["behavior"]) == (
        "Bash(rm x)",
        str(home.work),
        "allow",
    )
    policy = told(await client.get("/sessions/a/policy"))
    assert [one["id"] for one in policy["remembered"]] == [rule["id"]]
    assert (await client.delete(f"/rules/{rule['id']}")).status_code == 204
    assert told(await client.get("/rules")) == []
    assert refused(await client.delete("/rules/nothing")) == (404, "unknown_rule")
    await house.supervisor.wait("a", lambda record: record.turns == 1, LIMIT)
    told(await client.post("/sessions/a/send", json={"prompt": "again"}), 202)
    second = await asked(house.supervisor, approval.session)
    body = {"choice": {"type": "approve", "remember": {"type": "session", "rule": "Bash(rm x)"}}}
    told(await client.post(f"/approvals/{second.id}/decide", json=body))
    [own] = told(await client.get("/rules", params={"session": "a"}))
    path = f"/rules/{own['id']}"
    assert (await client.delete(path, params={"session": "a"})).status_code == 204
    assert told(await client.get("/rules", params={"session": "a"})) == []


async def test_of_a_home_that_is_asleep_approvals_are_seen_and_not_decided(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        made = await home.start(supervisor, *ASKS, name="a")
        approval = await asked(supervisor, made.id)
    async with (
        open_supervisor(home.folder, is_asleep=True) as supervisor,
        open_house(home.folder, supervisor) as house,
        client_of(house, PERSON) as client,
    ):
        assert told(await client.get(f"/approvals/{approval.id}"))["status"] == "pending"
        assert told(await client.get(f"/approvals/{approval.id}/explain"))["always"]
        assert told(await client.get("/sessions/a/policy"))["is_running"] is False
        assert told(await client.get("/usage"))["sessions"][0]["name"] == "a"
        assert told(await client.get("/health"))["is_asleep"] is True
        assert told(await client.get("/sessions/a/usage"))["launches"]
        assert told(await client.get("/sessions/a/transcript"))["entries"]
        assert told(await client.get("/sessions/a/events"))["items"]
        assert told(await client.post("/audit/verify"))["is_intact"] is True
        assert told(await client.put("/policies/team", json={"text": ""}))["name"] == "team"
        assert (await client.get("http://localhost/metrics")).status_code == 200
        body = {"choice": {"type": "reject"}}
        for answer in (
            await client.post(f"/approvals/{approval.id}/decide", json=body),
            await client.post("/sessions/a/stop"),
            await client.post("/sessions", json={"folder": str(home.work)}),
            await client.post("/fleet/release"),
            await client.put("/sessions/a/policy", json={"policy": "ask"}),
        ):
            assert refused(answer) == (409, "asleep")
    async with home.open() as supervisor:
        await until(supervisor, "a", "awaiting approval")
