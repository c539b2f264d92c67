"""Four prompts at once, on every version that merges them in its own way."""

from __future__ import annotations

import os

import pytest

import bridle
from bridle.errors import PromptCancelled
from bridle.protocol.permissions import Allow
from bridle.testing import Conversation, Hold, Turn, tool_use

from .lab import Fifo, Lab
from .talk import Desk, Judge, Talk, hear, reached
from .versions import CORE

WAIT = tool_use("Bash", command="echo up > ready; read word < go", description="wait")
WORDS = ("two", "three", "four", "five")


@pytest.fixture(params=CORE)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def ended(talk: Talk, turns: list[bridle.Turn]) -> list[str]:
    """What each was answered, once the model has seen all prompts."""
    results = [(await hear(turn)).result for turn in turns]
    seen = [str(request.messages) for request in talk.model.requests]
    assert all(any(words in one for one in seen) for words in WORDS)
    return [result.result or "" for result in results]


async def test_queued_while_a_tool_runs(lab: Lab) -> None:
    """Four prompts while a tool runs: each ends, and the next one is answered by its own turn"""
    ready, go = Fifo(lab.cwd / "ready"), Fifo(lab.cwd / "go")
    script = Conversation([Turn(WAIT)], then="Done.")
    with go.open() as end:
        async with lab.session(script, approver=Judge()) as talk:
            first = await talk.session.send("one")
            assert await ready.read() == "up"
            turns = [await talk.session.send(words) for words in WORDS]
            await talk.has_read()
            os.write(end, b"on\n")
            assert (await hear(first)).result.result == "Done."
            assert await ended(talk, turns) == ["Done."] * 4
            before = len(talk.model.requests)
            assert (await talk.say("and six")).result.result == "Done."
            assert "and six" in talk.model.requests[-1].everything
            assert len(talk.model.requests) == before + 1


async def test_queued_while_an_approval_is_pending(lab: Lab) -> None:
    """Four prompts while somebody is asked: each ends, and the next one has its own turn"""
    desk = Desk()
    touch = tool_use("Bash", command="touch x.txt", description="x")
    script = Conversation([Turn(touch)], then="Done.")
    async with lab.session(script, approver=desk, policy="ask") as talk:
        first = await talk.session.send("one")
        question = await desk.question()
        turns = [await talk.session.send(words) for words in WORDS]
        await talk.has_read()
        question.decision.set_result(Allow())
        assert (await hear(first)).result.result == "Done."
        assert await ended(talk, turns) == ["Done."] * 4
        assert lab.exists("x.txt")
        assert (await talk.say("and six")).result.result == "Done."
        assert "and six" in talk.model.requests[-1].everything


async def test_queued_with_an_interrupt(lab: Lab) -> None:
    """Four prompts, then an interrupt: the turn that runs ends, the others are answered"""
    hold = Hold()
    script = Conversation([Turn("Busy", hold, "no more.")], then="Done.")
    async with lab.session(script) as talk:
        first = await talk.session.send("one")
        await reached(hold)
        turns = [await talk.session.send(words) for words in WORDS]
        await talk.has_read()
        await talk.session.interrupt()
        hold.release()
        assert (await hear(first)).result.is_interrupted
        assert await ended(talk, turns) == ["Done."] * 4
        assert (await talk.say("and six")).result.result == "Done."


async def test_queued_with_one_taken_back(lab: Lab) -> None:
    """Four prompts of which one is taken back: it says so, the others are answered"""
    hold = Hold()
    script = Conversation([Turn("Busy", hold, "no more.")], then="Done.")
    async with lab.session(script) as talk:
        if talk.session.capabilities.answers("cancel_async_message") == "no":
            lab.saw("can't be done")
            return
        first = await talk.session.send("one")
        await reached(hold)
        turns = [await talk.session.send(words) for words in WORDS]
        await talk.has_read()
        assert (await talk.session.cancel_prompt(str(turns[1].uuid))).cancelled
        with pytest.raises(PromptCancelled):
            await hear(turns[1])
        hold.release()
        assert (await hear(first)).result.result == "no more."
        left = [turns[0], *turns[2:]]
        assert [(await hear(turn)).result.result for turn in left] == ["Done."] * 3
        assert WORDS[1] not in talk.model.requests[-1].everything
        assert (await talk.say("and six")).result.result == "Done."
