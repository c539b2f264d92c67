"""How the server is: health, metrics, usage, audit, and letting a fleet go on."""

from __future__ import annotations

import sqlite3

import httpx
from prometheus_client.parser import text_string_to_metric_families

from bridle import __version__
from bridle.approvals import Reject
from bridle.journal import SqliteJournal
from bridle.server.access import Caller
from bridle.server.app import make_app
from bridle.server.house import House
from tests.server.conftest import client_of
from tests.supervisor.homes import ASKS, INIT, LIMIT, ME, PROMPT, TURN, WORKS, Home, asked, until
from tests.supervisor.test_service import rejected

from .callers import SECRET, agent_of, reader_of, refused, told

#: A turn that cost something.
RESULT = {
    "subtype": "success",
    "total_cost_usd": 0.25,
    "usage": {"input_tokens": 10, "output_tokens": 5},
    "modelUsage": {"opus": {"inputTokens": 10, "outputTokens": 5, "costUSD": 0.25}},
}
#: In the year 2096.
LATER = 4_000_000_000.0
COSTS = (PROMPT, INIT, {"result": RESULT})


async def test_anybody_is_told_that_it_is_up_and_those_with_a_token_how_it_is(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    await home.start(house.supervisor, *ASKS, name="a")
    await until(house.supervisor, "a", "awaiting approval")
    await home.start(house.supervisor, *TURN, name="b", start=False)
    health = told(await client.get("/health"))
    assert (health["status"], health["version"], health["home"]) == (
        "ok",
        __version__,
        str(home.folder),
    )
    assert health["sessions"] == {"awaiting approval": 1, "stopped": 1}
    assert (health["running"], health["queued"], health["approvals"]) == (1, 0, 1)
    assert health["disk_free"] > 0
    assert health["uptime"] >= 0
    assert health["journal"]["is_writable"] is True
    assert health["journal"]["size_bytes"] > 0
    assert health["held"] is None
    plain = {"status": "ok", "version": __version__}
    async with agent_of(house, house.supervisor.get("a").id) as agent:
        assert told(await agent.get("/health")) == plain
    transport = httpx.ASGITransport(make_app(house))  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as nobody:
        assert told(await nobody.get("/api/v1/health")) == plain
        assert refused(await nobody.get("/metrics")) == (401, "unauthorized")


async def test_what_was_used_is_summed_up_by_session_and_by_model(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    for name in ("a", "b"):
        made = await home.start(house.supervisor, *COSTS, name=name)
        await house.supervisor.wait(made.id, lambda record: record.turns == 1, LIMIT)
    usage = told(await client.get("/usage"))
    assert (usage["total"]["turns"], usage["total"]["cost_usd"]) == (2, 0.5)
    assert usage["total"]["tokens"] == {"input": 20, "output": 10}
    assert [one["name"] for one in usage["sessions"]] == ["a", "b"]
    assert usage["models"] is None
    models = told(await client.get("/usage", params={"models": "true"}))["models"]
    assert models["opus"] == {"tokens": {"input": 20, "output": 10}, "cost_usd": 0.5}
    own = told(await client.get("/sessions/a/usage"))
    assert (own["turns"], own["cost_usd"]) == (1, 0.25)
    assert own["models"]["opus"]["cost_usd"] == 0.25
    async with reader_of(house) as reader:
        assert told(await reader.get("/usage"))["total"]["turns"] == 2
        await home.start(house.supervisor, *TURN, name=SECRET, start=False)
        assert told(await reader.get("/usage"))["sessions"][2]["name"] == "[redacted:anthropic-key]"
    assert refused(await client.get("/sessions/nobody/usage")) == (404, "unknown_session")


async def test_numbers_are_given_as_prometheus_reads_them(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    made = await home.start(house.supervisor, *COSTS, name="a")
    await house.supervisor.wait(made.id, lambda record: record.turns == 1, LIMIT)
    other = await home.start(house.supervisor, *ASKS, name="b")
    approval = await asked(house.supervisor, other.id)
    await until(house.supervisor, other.id, "awaiting approval")
    await client.get("/sessions/nobody")
    before = await numbers(client)
    assert before["bridle_sessions", "idle"] == 1
    assert before["bridle_sessions", "awaiting approval"] == 1
    assert before["bridle_sessions", "lost"] == 0
    assert before["bridle_agents_running", ""] == 2
    assert before["bridle_approvals_pending", ""] == 1
    assert before["bridle_approvals_oldest_pending_seconds", ""] > 0
    assert before["bridle_turns", ""] == 1
    assert before["bridle_cost_usd", ""] == 0.25
    assert before["bridle_tokens", "output"] == 5
    assert before["bridle_events", ""] > 10
    assert before["bridle_listeners", ""] == 0
    assert before["bridle_disk_free_bytes", ""] > 0
    assert before["bridle_journal_bytes", ""] > 0
    assert before["bridle_http_requests_total", "/api/v1/sessions/{session} GET 404"] == 1
    assert before["bridle_approvals_ended_total", "denied"] == 0
    await house.supervisor.approvals.decide(approval.id, Reject(), by=ME)
    await until(house.supervisor, other.id, "idle")
    after = await numbers(client)
    assert after["bridle_approvals_ended_total", "denied"] == 1
    assert after["bridle_approvals_pending", ""] == 0
    assert after["bridle_approvals_oldest_pending_seconds", ""] == 0
    assert after["bridle_http_requests_total", "/metrics GET 200"] == 1
    assert after["bridle_http_seconds_count", "/metrics GET"] == 1


async def test_of_approvals_that_wait_the_age_of_the_oldest_is_given(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    created = []
    for name in ("a", "b"):
        made = await home.start(house.supervisor, *ASKS, name=name)
        created.append((await asked(house.supervisor, made.id)).created)
    house.now = lambda: LATER
    assert created[0] < created[1]
    found = await numbers(client)
    assert found["bridle_approvals_pending", ""] == 2
    assert found["bridle_approvals_oldest_pending_seconds", ""] == LATER - created[0]


async def numbers(client: httpx.AsyncClient) -> dict[tuple[str, str], float]:
    """By name and by what tells them apart."""
    answer = await client.get("http://localhost/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    names = ("state", "kind", "route", "method", "status")
    return {
        (sample.name, " ".join(sample.labels[n] for n in names if n in sample.labels)): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
        if "le" not in sample.labels
    }


async def test_the_log_is_verified_stream_by_stream(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    made = await home.start(house.supervisor, *TURN, name="a", start=False)
    audit = told(await client.post("/audit/verify"))
    assert audit["is_intact"] is True
    assert {one["stream"] for one in audit["streams"]} == {made.id, "supervisor"}
    one = told(await client.post("/audit/verify", json={"session": "a"}))
    intact = {"is_intact": True, "broken_at": None, "reason": "", "remedy": ""}
    assert one["streams"] == [{"stream": made.id, "sealed": 1, **intact}]
    assert one["anchors"]["is_intact"] is True
    answer = await client.post("/audit/verify", json={"session": "nobody"})
    assert refused(answer) == (404, "unknown_session")
    async with reader_of(house) as reader:
        assert told(await reader.post("/audit/verify"))["is_intact"] is True
        assert refused(await reader.post("/audit/accept")) == (403, "forbidden")
    async with agent_of(house, made.id) as agent:
        assert refused(await agent.post("/audit/verify")) == (403, "forbidden")
        assert refused(await agent.post("/audit/accept")) == (403, "forbidden")


async def test_a_stream_that_is_cut_is_told_with_what_to_do_and_can_be_accepted(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    made = await home.start(house.supervisor, *TURN, name="a", start=False)
    assert isinstance(house.supervisor.journal, SqliteJournal)
    await house.supervisor.journal.anchor()
    copy = (house.home / "journal.anchors").read_text()
    with sqlite3.connect(house.home / "journal.db") as journal:
        journal.execute("DELETE FROM event WHERE key & 0xff > 1")
    journal.close()
    for body in ({}, {"anchors": copy}, {"session": "a"}):
        audit = told(await client.post("/audit/verify", json=body))
        assert audit["is_intact"] is False
        (one,) = [one for one in audit["streams"] if one["stream"] == made.id]
        assert one["broken_at"] == 2
        assert "missing" in one["reason"]
        assert "bridle audit accept" in one["remedy"]
    answer = await client.post("/audit/verify", json={"anchors": "what?"})
    assert refused(answer)[0] == 400
    accepted = told(await client.post("/audit/accept", json={"stream": made.id}))["accepted"]
    assert accepted.keys() == {made.id}
    again = told(await client.post("/audit/accept"))["accepted"]
    assert made.id not in again


async def test_a_fleet_that_was_held_back_goes_on(
    house: House, home: Home, client: httpx.AsyncClient
) -> None:
    assert told(await client.post("/fleet/release")) == {"was_held": False}
    await home.start(house.supervisor, PROMPT, INIT, rejected(LATER), *WORKS, name="a")
    await until(house.supervisor, "a", "rate limited")
    assert told(await client.get("/health"))["held"]["until"] == LATER
    assert told(await client.post("/fleet/release")) == {"was_held": True}
    assert told(await client.get("/health"))["held"] is None


async def test_logging_out_takes_away_the_login_that_asks_and_no_token(house: House) -> None:
    first, _ = await house.tokens.log_in("me")
    second, _ = await house.tokens.log_in("me")
    token, _ = await house.tokens.create("reader", "grafana")
    for found, role in ((token, "reader"), (first, "person")):
        caller = Caller(role=role, name="me", token=found.id)  # type: ignore[arg-type]
        async with client_of(house, caller) as client:
            answer = await client.post("http://localhost/logout")
            assert (answer.status_code, answer.headers["location"]) == (303, "/")
    kept = {one.id for one in house.tokens.list()}
    assert {second.id, token.id} <= kept
    assert first.id not in kept
