"""Policies by the API: kept under a name, checked with their line, tried, given to sessions."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from bridle.policy import Policy
from bridle.server.house import House
from tests.supervisor.homes import LIMIT, TURN, Home, until

from .callers import SECRET, agent_of, reader_of, refused, told

TEAM = 'preset = "edits"\n# a comment\nallow = ["Bash(npm test:*)"]\ndeny = ["WebFetch"]\n'


async def test_a_policy_is_kept_shown_changed_and_deleted(client: httpx.AsyncClient) -> None:
    kept = told(await client.put("/policies/team", json={"text": TEAM}))
    assert (kept["name"], kept["text"], kept["preset"]) == ("team", TEAM, "edits")
    assert {(rule["behavior"], rule["text"], rule["source"]) for rule in kept["rules"]} == {
        ("allow", "Bash(npm test:*)", "team:3"),
        ("deny", "WebFetch", "team:4"),
    }
    assert kept["by"]["name"] == "me"
    assert told(await client.get("/policies/team")) == kept
    listed = told(await client.get("/policies"))
    assert [one["name"] for one in listed] == [
        *("ask", "read-only", "edits", "plan", "autonomous"),
        "team",
    ]
    assert listed[1]["table"]["edit"] == "deny"
    body = {"text": 'preset = "ask"', "revision": kept["revision"]}
    changed = told(await client.put("/policies/team", json=body))
    assert changed["revision"] > kept["revision"]
    answer = await client.put("/policies/team", json=body)
    assert refused(answer) == (409, "changed_meanwhile")
    assert told(await client.get("/policies/team"))["preset"] == "ask"
    assert (await client.delete("/policies/team")).status_code == 204
    assert refused(await client.get("/policies/team")) == (404, "unknown_policy")
    assert refused(await client.delete("/policies/team")) == (404, "unknown_policy")
    told(await client.put("/policies/team", json={"text": TEAM, "revision": 0}))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('preset = "edits"\nallow = ["bash(ls)"]', 2, "the tool is called Bash"),
        ('preset = "edits"\n\ncolour = "red"', 3, "no such key"),
        ("allow = [", 1, "no TOML"),
        ('include = ["team.toml"]', 1, "can't be read here"),
        ("a = " + "[" * 5_000, None, "no TOML"),
        ("#" * 200_000, None, "128 KB"),
        ("allow = ['\0']", 1, "no TOML"),
    ],
    ids=range(7),
)
async def test_a_mistake_is_told_with_its_line_and_nothing_is_kept(
    client: httpx.AsyncClient, text: str, line: int | None, words: str
) -> None:
    answer = await client.put("/policies/team", json={"text": text})
    assert refused(answer) == (400, "invalid_policy")
    about = answer.json()["about"]
    assert about["source"] == "team"
    assert line in (about["line"], None)
    assert words in about["reason"]
    assert refused(await client.get("/policies/team")) == (404, "unknown_policy")
    checked = told(await client.post("/policies/check", json={"text": text}))
    assert (checked["type"], checked["line"]) == ("invalid", about["line"])


async def test_what_can_be_read_is_told_so(client: httpx.AsyncClient) -> None:
    checked = told(await client.post("/policies/check", json={"text": TEAM}))
    assert (checked["type"], checked["preset"], len(checked["rules"])) == ("valid", "edits", 2)


@pytest.mark.parametrize("name", ["a b", "-x", ".x", "x" * 101, "team.toml", "%00", "ü"])
async def test_a_name_is_plain(client: httpx.AsyncClient, name: str) -> None:
    answer = await client.put(f"/policies/{name}", json={"text": TEAM})
    assert refused(answer) == (400, "invalid_name")


@pytest.mark.parametrize("name", ["ask", "plan"])
async def test_a_preset_stays_what_it_is(client: httpx.AsyncClient, name: str) -> None:
    answer = await client.put(f"/policies/{name}", json={"text": TEAM})
    assert refused(answer) == (409, "name_taken")
    assert told(await client.get(f"/policies/{name}"))["type"] == "preset"
    assert refused(await client.delete(f"/policies/{name}")) == (404, "unknown_policy")


async def test_a_policy_is_tried_on_calls(
    home: Home, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    told(await client.put("/policies/team", json={"text": TEAM}))
    calls = [
        {"tool": "Bash", "input": {"command": "npm test"}, "expect": "allow"},
        {"tool": "Bash", "input": {"command": "npm publish"}, "expect": "deny"},
        {"tool": "WebFetch", "input": {"url": "https://example.com"}},
        {"tool": "Edit", "input": {"file_path": "a.py"}, "mode": "plan"},
    ]
    body = {"policy": "team", "folder": str(home.work), "calls": calls}
    trial = told(await client.post("/policies/test", json=body))
    assert [one["behavior"] for one in trial["results"]] == ["allow", "ask", "deny", "deny"]
    assert [one["is_expected"] for one in trial["results"]] == [True, False, None, None]
    assert trial["is_expected"] is False
    assert trial["results"][0]["verdict"]["source"] == "team:3"
    assert "npm publish" in trial["results"][1]["text"]
    file = tmp_path / "p.toml"
    file.write_text('preset = "autonomous"')
    trial = told(await client.post("/policies/test", json={**body, "policy": str(file)}))
    assert trial["results"][1]["behavior"] == "allow"
    for change, status, code in (
        ({"policy": "nothing"}, 404, "unknown_policy"),
        ({"folder": "here"}, 400, "invalid_folder"),
        ({"calls": [{"tool": "Bash"}]}, 400, "invalid_body"),
        ({"calls": [{"tool": "Bash", "input": {}, "expect": "maybe"}]}, 400, "invalid_body"),
    ):
        answer = await client.post("/policies/test", json={**body, **change})
        assert refused(answer) == (status, code)


async def test_a_session_is_made_under_a_policy_that_is_kept_and_put_under_another(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    told(await client.put("/policies/team", json={"text": TEAM}))
    command = home.cli(*TURN).command
    body = {"folder": str(home.work), "policy": "team", "launch": {"command": command}}
    made = told(await client.post("/sessions", json=body), 201)
    path = f"/sessions/{made['id']}/policy"
    policy = told(await client.get(path))
    assert (policy["source"], policy["preset"]) == ("stored policy team", "edits")
    assert {rule["text"] for rule in policy["rules"]} == {"Bash(npm test:*)", "WebFetch"}
    # It is under what the text said then.
    told(await client.put("/policies/team", json={"text": 'preset = "autonomous"'}))
    assert told(await client.get(path))["preset"] == "edits"
    await until(house.supervisor, made["id"], "idle")
    view = told(await client.put(path, json={"policy": "read-only"}))
    assert view["policy"] == Policy("read-only").digest
    policy = told(await client.get(path))
    assert (policy["preset"], policy["is_running"]) == ("read-only", True)
    assert (policy["by"]["name"], policy["source"]) == ("me", "policy read-only")
    answer = await client.put(path, json={"policy": "nothing"})
    assert refused(answer) == (404, "unknown_policy")
    assert house.supervisor.get(made["id"]).policy == view["policy"]


async def test_readers_see_policies_without_what_is_secret_in_them(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    text = f'allow = ["Bash(curl -H {SECRET})"]'
    told(await client.put("/policies/team", json={"text": text}))
    assert SECRET in (await client.get("/policies/team", params={"reveal": "true"})).text
    made = await home.start(house.supervisor, *TURN, name="a", start=False)
    told(await client.put("/sessions/a/policy", json={"policy": "team"}))
    async with reader_of(house) as reader, agent_of(house, made.id) as agent:
        for answer in (
            await reader.get("/policies"),
            await reader.get("/policies/team"),
            await agent.get("/sessions/a/policy"),
        ):
            assert answer.status_code == 200
            assert SECRET not in answer.text
            assert "[redacted:anthropic-key]" in answer.text
        assert refused(await agent.get("/policies")) == (403, "forbidden")


async def test_a_policy_that_was_given_to_one_that_runs_holds_for_its_next_call(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    ask = {"tool_name": "Bash", "input": {"command": "rm x"}, "tool_use_id": "t2"}
    cli = home.cli(*TURN, {"prompt": True}, {"ask": ask, "id": "q2"}, {"result": "done"})
    await home.start(house.supervisor, command=cli.command, name="a")
    await house.supervisor.wait("a", lambda record: record.turns == 1, LIMIT)
    told(await client.put("/sessions/a/policy", json={"policy": "read-only"}))
    told(await client.post("/sessions/a/send", json={"prompt": "go on"}), 202)
    await house.supervisor.wait("a", lambda record: record.turns == 2, LIMIT)
    answer = cli.answer_to("q2")
    assert answer
    assert answer["response"]["behavior"] == "deny"
