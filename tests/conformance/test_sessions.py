"""Sessions: ids, resume, fork, continue."""

from __future__ import annotations

from typing import Any

from bridle.protocol.messages import Result
from bridle.protocol.requests import Initialize
from bridle.testing import Conversation

from .lab import Lab

CHOSEN = "11111111-2222-4333-8444-555555555555"


async def _turn(lab: Lab, *flags: str, words: str = "hi") -> tuple[Result, str]:
    """One turn of a new process: its result, and all that the model was sent."""
    async with lab.run(["Hello."], flags=list(flags), initialize=Initialize()) as run:
        run.cli.prompt(words)
        result = await run.cli.result()
        return result, run.model.requests[-1].everything


async def test_session_id(lab: Lab) -> None:
    """--session-id sets the id"""
    result, _ = await _turn(lab, f"--session-id={CHOSEN}")
    assert result.session_id == CHOSEN


async def test_session_id_in_use(lab: Lab) -> None:
    """--session-id with an id that was used before: refused at start"""
    await _turn(lab, f"--session-id={CHOSEN}")
    async with lab.run(flags=[f"--session-id={CHOSEN}"]) as run:
        assert await run.cli.exit_code() == 1
        assert "already in use" in run.cli.stderr


async def test_resume(lab: Lab) -> None:
    """--resume: the same id, and the conversation is remembered"""
    first, _ = await _turn(lab, words="remember the horse")
    second, sent = await _turn(lab, f"--resume={first.session_id}", words="what was it?")
    assert second.session_id == first.session_id
    assert "remember the horse" in sent


async def test_fork(lab: Lab) -> None:
    """--resume with --fork-session: a new id, and the conversation is remembered"""
    first, _ = await _turn(lab, words="remember the horse")
    flags = [f"--resume={first.session_id}", "--fork-session"]
    second, sent = await _turn(lab, *flags, words="what was it?")
    assert second.session_id not in (None, first.session_id)
    assert "remember the horse" in sent


async def test_continue(lab: Lab) -> None:
    """--continue: the newest conversation of the folder goes on"""
    first, _ = await _turn(lab, words="remember the horse")
    second, sent = await _turn(lab, "--continue", words="what was it?")
    assert second.session_id == first.session_id
    assert "remember the horse" in sent


async def test_resume_unknown(lab: Lab) -> None:
    """--resume with an id that does not exist: the process ends with 1"""
    async with lab.run(Conversation([]), flags=[f"--resume={CHOSEN}"]) as run:
        run.cli.prompt("hi")
        assert await run.cli.exit_code() == 1
        told: list[Any] = [result.errors for result in run.cli.messages(Result)]
        said = run.cli.stderr + str(told)
        assert "No conversation found" in said
        lab.saw(" and ".join(_where(run.cli.stderr, told)))


def _where(stderr: str, told: list[Any]) -> list[str]:
    return ["told on stderr"] * bool(stderr) + ["told by a `result`"] * bool(told)


async def test_no_persistence(lab: Lab) -> None:
    """--no-session-persistence: it can't be resumed"""
    first, _ = await _turn(lab, "--no-session-persistence")
    async with lab.run(Conversation([]), flags=[f"--resume={first.session_id}"]) as run:
        run.cli.prompt("hi")
        assert await run.cli.exit_code() == 1
        told = [result.errors for result in run.cli.messages(Result)]
        assert "No conversation found" in run.cli.stderr + str(told)
