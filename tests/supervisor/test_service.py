"""The service behind the agents refuses: all are held, told until when, and let go."""

from __future__ import annotations

import time
from typing import Any

import pytest

from bridle.supervisor import SessionRecord, Supervisor
from bridle.views import stream

from .homes import DONE, INIT, LIMIT, PROMPT, TURN, WORKS, Home, Step, bodies, published, until


def rejected(until: float) -> Step:
    info = {"status": "rejected", "resetsAt": until, "rateLimitType": "five_hour"}
    return {"message": {"type": "rate_limit_event", "rate_limit_info": info}}


def retry(status: int, error: str, delay_ms: float) -> Step:
    told = {"attempt": 1, "max_retries": 10, "retry_delay_ms": delay_ms, "error_status": status}
    return {"message": {"type": "system", "subtype": "api_retry", "error": error, **told}}


def refused(error: str) -> Step:
    inner: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "model": "fake"}
    text = {"type": "text", "text": "Please run /login"}
    inner |= {"content": [text], "usage": {"input_tokens": 0, "output_tokens": 0}}
    return {"message": {"type": "assistant", "message": inner, "error": error}}


async def held(home: Home, supervisor: Supervisor, *steps: Step) -> SessionRecord:
    """One agent that is told to wait, one that is idle, and one that waits for a place."""
    await home.start(supervisor, *TURN * 3, name="other")
    await supervisor.wait("other", lambda r: r.turns == 1, LIMIT)
    await home.start(supervisor, PROMPT, INIT, *steps, *WORKS, name="first")
    record = await until(supervisor, "first", "rate limited", "needs login")
    await home.start(supervisor, *TURN, name="later")
    return record


@pytest.mark.slow
async def test_a_rate_limit_holds_all_until_its_time(home: Home) -> None:
    async with home.open(size=3) as supervisor:
        end = time.time() + 2.0
        record = await held(home, supervisor, rejected(end))
        assert (record.state, record.until) == ("rate limited", end)
        await supervisor.send("other", "not now")
        assert supervisor.get("later").launches == 0
        assert supervisor.get("other").waiting
        assert supervisor.get("other").turns == 1
        await supervisor.wait("other", lambda r: r.turns == 2, LIMIT)
        assert time.time() >= end
        await supervisor.wait("later", lambda r: r.turns == 1, LIMIT)
        assert (await until(supervisor, "first", "running")).until is None


@pytest.mark.slow
async def test_a_retry_says_how_long(home: Home) -> None:
    async with home.open() as supervisor:
        start = time.time()
        record = await held(home, supervisor, retry(429, "rate_limit", 1500))
        assert record.until is not None
        assert start + 1.5 <= record.until < time.time() + 1.5
        await supervisor.wait("later", lambda r: r.turns == 1, LIMIT)
        assert time.time() >= start + 1.5


@pytest.mark.parametrize("step", [refused("authentication_failed"), retry(401, "unknown", 10)])
async def test_a_login_is_waited_for_until_somebody_has(home: Home, step: Step) -> None:
    async with home.open() as supervisor:
        record = await held(home, supervisor, step)
        assert (record.state, record.until) == ("needs login", None)
        await supervisor.send("other", "not now")
        assert supervisor.get("later").launches == 0
        assert supervisor.get("other").waiting
        supervisor.logged_in()
        await supervisor.wait("other", lambda r: r.turns == 2, LIMIT)
        await supervisor.wait("later", lambda r: r.turns == 1, LIMIT)
        await until(supervisor, "first", "running")


async def test_a_limit_can_be_lifted_before_its_time(home: Home) -> None:
    async with home.open() as supervisor:
        await held(home, supervisor, rejected(time.time() + 3600))
        supervisor.logged_in()
        await supervisor.wait("later", lambda r: r.turns == 1, LIMIT)
        await until(supervisor, "first", "running")


async def test_a_longer_limit_after_a_short_one_holds(home: Home) -> None:
    end = time.time() + 3600
    async with home.open() as supervisor:
        await held(home, supervisor, retry(429, "rate_limit", 300), rejected(end))
        record = await supervisor.wait("first", lambda r: r.until == end, LIMIT)
        assert record.state == "rate limited"
        assert supervisor.get("later").launches == 0


async def test_a_login_that_is_needed_counts_more_than_a_limit(home: Home) -> None:
    async with home.open() as supervisor:
        limit = rejected(time.time() + 1)
        await held(home, supervisor, limit, refused("authentication_failed"))
        await until(supervisor, "first", "needs login")
        supervisor.logged_in()
        await until(supervisor, "first", "running")


async def test_one_that_is_answered_again_is_limited_no_more(home: Home) -> None:
    async with home.open() as supervisor:
        steps = (PROMPT, INIT, rejected(time.time() + 3600), {"await_request": "interrupt"}, DONE)
        await home.start(supervisor, *steps, name="a")
        await until(supervisor, "a", "rate limited")
        await supervisor.interrupt("a", timeout=LIMIT)
        seen = await published(supervisor, "a", "idle")
        assert seen[-2:] == ["rate limited", "idle"]


async def test_a_warning_holds_nobody(home: Home) -> None:
    info = {"status": "allowed_warning", "resetsAt": time.time() + 3600}
    warning = {"message": {"type": "rate_limit_event", "rate_limit_info": info}}
    async with home.open() as supervisor:
        await home.start(supervisor, PROMPT, INIT, warning, DONE, name="a")
        await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        assert await bodies(supervisor, "a", stream.LIMITED) == []


@pytest.mark.slow
async def test_a_limit_outlives_the_supervisor_and_ends_at_its_time(home: Home) -> None:
    end = time.time() + 2.5
    async with home.open(keep=True) as supervisor:
        await held(home, supervisor, rejected(end))
    async with home.open() as supervisor:
        assert supervisor.get("first").state == "rate limited"
        assert supervisor.get("later").launches == 0
        await supervisor.wait("later", lambda r: r.turns == 1, LIMIT)
        assert time.time() >= end
        await until(supervisor, "first", "running")


async def test_nobody_is_started_before_it_is_known_that_all_are_held(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        await held(home, supervisor, rejected(time.time() + 600))
    async with home.open() as supervisor:
        # Whatever was begun while it opened comes to the log before this.
        await supervisor.pause("later")
        assert await bodies(supervisor, "later", stream.INTENDED) == []


async def test_a_limit_that_passed_while_nobody_looked_holds_nobody(home: Home) -> None:
    async with home.open(keep=True) as supervisor:
        await held(home, supervisor, rejected(time.time() + 600))
    async with home.open(now=lambda: time.time() + 700) as supervisor:
        await supervisor.wait("later", lambda r: r.turns == 1, LIMIT)
        await until(supervisor, "first", "running")
