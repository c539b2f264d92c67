"""An agent of whose words a part was lost is asked where it stands, until it has said so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bridle.approvals import Approve
from bridle.session.making import HANDSHAKE_VARIABLE
from bridle.supervisor import Plain, Supervisor
from bridle.views import stream

from .homes import DONE, INIT, LIMIT, ME, PROMPT, TURN, Home, Step, asked, bodies, kinds, until

RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "x" * 50}
REQUEST: dict[str, Any] = {"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "t1"}
REQUEST["input"] = {"command": "rm x"}
QUESTION = {"type": "control_request", "request_id": "q1", "request": REQUEST}
USE = {"tool_use": {"name": "Bash", "id": "t1", "input": {"command": "rm x"}}}
SOON = {HANDSHAKE_VARIABLE: Plain("3000")}


async def test_a_turn_whose_end_was_lost_is_over_and_said_to_be_lost(home: Home) -> None:
    command = home.wild(PROMPT, INIT, {"lose": RESULT}, {"say": "glued to it"}, *TURN)
    async with home.open() as supervisor:
        await home.start(supervisor, command=command, name="a")
        await until(supervisor, "a", "running")
        record = await until(supervisor, "a", "idle")
        assert record.outcome == "lost"
        [resynced] = await bodies(supervisor, "a", stream.RESYNCED)
        assert resynced.is_idle
        assert stream.MALFORMED in await kinds(supervisor, "a")
        await supervisor.send("a", "again")
        record = await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        assert record.outcome == "complete"


async def test_a_question_of_which_the_id_is_left_is_answered_with_no(home: Home) -> None:
    steps = ({"lose": QUESTION}, {"say": "glued to it"}, {"await": "q1"}, DONE)
    async with home.open() as supervisor:
        await home.start(supervisor, command=home.wild(PROMPT, INIT, USE, *steps), name="a")
        await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        wrote = await bodies(supervisor, "a", stream.WROTE)
        assert [body.what for body in wrote if body.id == "q1"] == ["deny"]


async def test_a_question_that_was_lost_is_found_again(home: Home) -> None:
    steps = ({"lose": QUESTION, "keep": 20}, {"say": "glued to it"}, {"await": "q1"}, DONE)
    async with home.open() as supervisor:
        command = home.wild(PROMPT, INIT, USE, *steps)
        record = await home.start(supervisor, command=command, name="a")
        approval = await asked(supervisor, record.id)
        assert approval.tool_use_id == "t1"
        await supervisor.approvals.decide(approval.id, Approve(), by=ME)
        record = await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        assert (record.state, record.outcome) == ("idle", "complete")


async def test_a_turn_that_runs_on_is_not_lost(home: Home) -> None:
    lost = {"type": "assistant", "message": {"role": "assistant", "content": []}}
    steps = ({"lose": lost}, {"say": "glued to it"}, {"await_request": "interrupt"}, DONE)
    async with home.open() as supervisor:
        await home.start(supervisor, command=home.wild(PROMPT, INIT, *steps), name="a")
        await resynced(supervisor, "a")
        assert supervisor.get("a").state == "running"
        await supervisor.interrupt("a", timeout=LIMIT)
        record = await until(supervisor, "a", "idle")
        assert record.outcome == "complete"


async def resynced(supervisor: Supervisor, session: str) -> None:
    """Until it was."""
    async with asyncio.timeout(LIMIT):
        async for _ in supervisor.watch():
            if stream.RESYNCED in await kinds(supervisor, session):
                return


@pytest.mark.slow
@pytest.mark.parametrize("torn", [1, 2])
async def test_it_is_asked_again_until_the_answer_is_whole(home: Home, torn: int) -> None:
    steps: tuple[Step, ...] = ({"torn": torn}, {"lose": RESULT}, {"say": "glued to it"}, *TURN)
    async with home.open() as supervisor:
        command = home.wild(PROMPT, INIT, *steps)
        await home.start(supervisor, command=command, name="a", env=SOON)
        await until(supervisor, "a", "running")
        record = await until(supervisor, "a", "idle")
        assert record.outcome == "lost"
        assert len(await bodies(supervisor, "a", stream.RESYNCED)) == 1
        asked = [b for b in await bodies(supervisor, "a", stream.WROTE) if b.type == "initialize"]
        assert len(asked) > 1 + torn // 2


async def test_a_healthy_agent_is_asked_once_whatever_noise_it_makes(home: Home) -> None:
    noise = ({"raw": "npm WARN deprecated\n"}, {"raw": "\n"}, {"nonsense": 3000})
    async with home.open() as supervisor:
        command = home.wild(PROMPT, INIT, *noise, DONE)
        await home.start(supervisor, command=command, name="a")
        await supervisor.wait("a", lambda r: r.turns == 1, LIMIT)
        asked = [b for b in await bodies(supervisor, "a", stream.WROTE) if b.type == "initialize"]
        assert len(asked) == 1
        assert await bodies(supervisor, "a", stream.RESYNCED) == []


async def test_an_old_cli_that_says_it_was_initialised_already_is_clean(home: Home) -> None:
    broken = {"raw": '{"type":"assist'}
    async with home.open() as supervisor:
        steps = (PROMPT, INIT, broken, {"say": "glued to it"}, DONE)
        settings = {"replies": {"initialize": {"error": "Already initialized"}}}
        # It answers so to the first one as well, and can't be used.
        record = await home.start(supervisor, *steps, settings=settings, name="a")
        record = await until(supervisor, record.id, "failed")
        assert record.launch
        assert "Already initialized" in record.launch.words
