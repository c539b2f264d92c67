"""Sessions: ids, resume, fork, continue."""

from __future__ import annotations

from typing import Unpack

import pytest

import bridle
from bridle.errors import SessionEnded
from bridle.process.spec import LaunchOptions
from bridle.protocol.messages import Assistant, Result
from bridle.testing import Conversation

from .lab import Lab
from .talk import Heard, prompts

CHOSEN = "11111111-2222-4333-8444-555555555555"


async def one_turn(
    lab: Lab, words: str = "hi", **launch: Unpack[LaunchOptions]
) -> tuple[Heard, str]:
    """One turn of a new process, and all that the model was sent."""
    async with lab.session(["Hello."], **launch) as talk:
        heard = await talk.say(words)
        assert talk.session.id == heard.result.session_id
        return heard, talk.model.requests[-1].everything


async def test_session_id(lab: Lab) -> None:
    """--session-id sets the id"""
    heard, _ = await one_turn(lab, session_id=CHOSEN)
    assert heard.result.session_id == CHOSEN


async def test_session_id_in_use(lab: Lab) -> None:
    """--session-id with an id that was used before: refused at start"""
    await one_turn(lab, session_id=CHOSEN)
    refused, _ = await _refused(lab, session_id=CHOSEN)
    assert refused.exit_code == 1
    assert "already in use" in refused.stderr


async def test_resume(lab: Lab) -> None:
    """--resume: the same id, and the conversation is remembered"""
    first, _ = await one_turn(lab, "remember the horse")
    second, sent = await one_turn(lab, "what was it?", resume=first.result.session_id)
    assert second.result.session_id == first.result.session_id
    assert "remember the horse" in sent


async def test_fork(lab: Lab) -> None:
    """--resume with --fork-session: a new id, and the conversation is remembered"""
    first, _ = await one_turn(lab, "remember the horse")
    old = first.result.session_id
    second, sent = await one_turn(lab, "what was it?", resume=old, fork_session=True)
    assert second.result.session_id not in (None, old)
    assert "remember the horse" in sent
    stored = bridle.list_sessions(lab.cwd, lab.config_dir)
    assert [one.id for one in stored] == [second.result.session_id, old]
    forked, kept = (prompts(bridle.read_transcript(one).branch()) for one in stored)
    assert forked == ["remember the horse", "what was it?"]
    assert kept == ["remember the horse"]


async def test_continue(lab: Lab) -> None:
    """--continue: the newest conversation of the folder goes on"""
    first, _ = await one_turn(lab, "remember the horse")
    second, sent = await one_turn(lab, "what was it?", continue_last=True)
    assert second.result.session_id == first.result.session_id
    assert "remember the horse" in sent


async def test_resume_at(lab: Lab) -> None:
    """--resume-session-at a message: what came after it is forgotten, and kept as a branch"""
    async with lab.session(["A horse.", "A cow."]) as talk:
        first = await talk.say("the horse")
        await talk.say("the cow")
    old, at = talk.session.id, first.of(Assistant)[-1].uuid
    second, sent = await one_turn(lab, "the sheep", resume=old, resume_session_at=at)
    assert second.result.session_id == old
    assert ("the horse" in sent, "the cow" in sent) == (True, False)
    assert len(bridle.list_sessions(lab.cwd, lab.config_dir)) == 1
    transcript = bridle.read_transcript(str(old), lab.cwd, lab.config_dir)
    found = [prompts(branch) for branch in transcript.branches()]
    assert found == [["the horse", "the cow"], ["the horse", "the sheep"]]
    assert prompts(transcript.branch()) == ["the horse", "the sheep"]


async def test_resume_unknown(lab: Lab) -> None:
    """--resume with an id that does not exist: the process ends with 1"""
    refused, told = await _refused(lab, resume=CHOSEN)
    assert refused.exit_code == 1
    assert "No conversation found" in str(refused)
    lab.saw(" and ".join(_where(refused.stderr, told)))


def _where(stderr: str, told: list[list[str]]) -> list[str]:
    return ["told on stderr"] * bool(stderr) + ["told by a `result`"] * bool(told)


async def test_no_persistence(lab: Lab) -> None:
    """--no-session-persistence: it can't be resumed"""
    first, _ = await one_turn(lab, session_persistence=False)
    refused, told = await _refused(lab, resume=first.result.session_id)
    assert refused.exit_code == 1
    assert "No conversation found" in refused.stderr + str(told)


async def _refused(
    lab: Lab, **launch: Unpack[LaunchOptions]
) -> tuple[SessionEnded, list[list[str]]]:
    """How a session ended that could not start, and the errors of the results that it wrote."""
    with pytest.raises(SessionEnded) as raised:
        async with lab.session(Conversation([]), **launch):
            raise AssertionError("it has started")
    return raised.value, [result.errors for result in lab.wire.messages(Result)]
