"""How an agent's end is noticed, and what is kept of it."""

from __future__ import annotations

import asyncio
import shutil

import pytest

from bridle.process.transport import StopLimits
from bridle.session.making import HANDSHAKE_VARIABLE
from bridle.supervisor import Plain
from bridle.views import stream

from .homes import DONE, INIT, ME, PROMPT, TURN, WORKS, Home, Step, bodies, published, until

KILLED = 9

#: The steps of the agent; its state and outcome; how, code, signal, had_result.
ENDS: dict[str, tuple[tuple[Step, ...], tuple[str, str], tuple[object, ...]]] = {
    "exits with 0 after its result": (
        (*TURN, {"exit": 0}),
        ("stopped", "complete"),
        ("exited", 0, None, True),
    ),
    "exits with 0 in the middle of a turn": (
        (*WORKS, {"exit": 0}),
        ("failed", "lost"),
        ("exited", 0, None, False),
    ),
    "exits with 3 in the middle of a turn": (
        (*WORKS, {"stderr": "no more memory\n"}, {"exit": 3}),
        ("failed", "lost"),
        ("exited", 3, None, False),
    ),
    "exits with 3 after its result": (
        (*TURN, {"exit": 3}),
        ("failed", "complete"),
        ("exited", 3, None, True),
    ),
    "is killed": (
        (*WORKS, {"die": "SIGKILL"}),
        ("failed", "lost"),
        ("killed", None, KILLED, False),
    ),
}


@pytest.mark.parametrize("end", ENDS)
async def test_how_an_agent_ended_is_kept(home: Home, end: str) -> None:
    steps, (state, outcome), facts = ENDS[end]
    async with home.open() as supervisor:
        record = await home.start(supervisor, *steps)
        record = await until(supervisor, record.id, "stopped", "failed", "lost")
        assert (record.state, record.outcome) == (state, outcome)
        [ended] = await bodies(supervisor, record.id, stream.ENDED)
        assert (ended.how, ended.code, ended.signal, ended.had_result) == facts
        assert ("no more memory" in ended.stderr) == ("stderr" in str(steps))
        assert record.launch
        assert record.launch.stderr == ended.stderr
        assert list((home.folder / "spool").iterdir()) == []


async def test_the_end_of_a_long_stderr_is_kept_and_all_of_it_is_logged(home: Home) -> None:
    noise = "".join(f"line {number}\n" for number in range(2000))
    async with home.open() as supervisor:
        record = await home.start(supervisor, *WORKS, {"stderr": noise}, {"exit": 1})
        record = await until(supervisor, record.id, "failed")
        assert record.launch
        assert record.launch.stderr.endswith("line 1999\n") or "line 1999" in record.launch.stderr
        told = "".join(body.text for body in await bodies(supervisor, record.id, stream.STDERR))
        assert [line for line in told.split("\n") if line] == noise.split("\n")[:-1]


async def test_a_program_that_is_not_there_fails_with_words(home: Home) -> None:
    async with home.open() as supervisor:
        record = await supervisor.create(cwd=home.work, by=ME, command=["no-such-program-at-all"])
        record = await until(supervisor, record.id, "failed")
        assert record.launch
        assert record.launch.how == "not started"
        assert "no-such-program-at-all" in record.launch.words
        assert await published(supervisor, record.id, "failed") == ["queued", "starting", "failed"]
        assert list((home.folder / "spool").iterdir()) == []


async def test_a_folder_that_is_gone_fails_with_words_and_can_be_there_again(home: Home) -> None:
    async with home.open() as supervisor:
        record = await home.start(supervisor, *TURN, start=False)
        shutil.rmtree(home.work)
        await supervisor.resume(record.id)
        record = await until(supervisor, record.id, "failed")
        assert record.launch
        assert record.launch.how == "not started"
        assert str(home.work) in record.launch.words
        home.work.mkdir()
        await supervisor.resume(record.id)
        record = await until(supervisor, record.id, "idle")
        assert record.launches == 2
        assert record.launch
        assert [one.name for one in (home.folder / "spool").iterdir()] == [record.launch.id]


async def test_a_cli_that_does_not_answer_the_handshake_is_ended(home: Home) -> None:
    env = {HANDSHAKE_VARIABLE: Plain("200")}
    async with home.open() as supervisor:
        settings: Step = {"settings": {"replies": {"initialize": None}}}
        record = await home.start(supervisor, *TURN, env=env, **settings)
        record = await until(supervisor, record.id, "failed")
        assert record.launch
        assert "initialize" in record.launch.words
        assert record.waiting, "its prompt was never told, and waits for a resume"
        assert home.alive() == []


async def test_a_cli_that_ends_before_the_handshake_says_why(home: Home) -> None:
    async with home.open() as supervisor:
        record = await home.start(supervisor, {"stderr": "bad flag\n"}, {"exit": 2})
        record = await until(supervisor, record.id, "failed")
        assert record.launch
        assert (record.launch.how, record.launch.code) == ("exited", 2)
        assert "bad flag" in record.launch.stderr


async def test_a_stop_while_it_starts_does_not_wait_for_the_handshake(home: Home) -> None:
    limits = StopLimits(graceful=0.3, signal=0.3, total=3)
    async with home.open(stop_limits=limits) as supervisor:
        settings: Step = {"settings": {"replies": {"initialize": None}}}
        record = await home.start(supervisor, *TURN, **settings)
        await until(supervisor, record.id, "starting")
        async with asyncio.timeout(5):
            await supervisor.stop(record.id)
            record = await until(supervisor, record.id, "stopped")
        assert home.alive() == []


async def test_a_stop_while_it_waits_for_a_place_starts_nothing(home: Home) -> None:
    async with home.open(size=1) as supervisor:
        await home.start(supervisor, *WORKS)
        record = await home.start(supervisor, *TURN)
        assert record.state == "queued"
        assert await supervisor.stop(record.id) is None
        assert await published(supervisor, record.id, "stopped") == ["queued", "stopped"]
        assert supervisor.get(record.id).launches == 0


async def test_a_result_that_says_error_is_a_failed_turn_of_a_live_agent(home: Home) -> None:
    bad = {"result": {"subtype": "error_max_turns", "is_error": True}}
    async with home.open() as supervisor:
        record = await home.start(supervisor, PROMPT, INIT, bad, PROMPT, INIT, DONE)
        record = await until(supervisor, record.id, "running")
        record = await until(supervisor, record.id, "idle")
        assert record.outcome == "failed"
