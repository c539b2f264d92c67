"""`bridle run` without a terminal: in scripts, in pipes, for programs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import Any

import pytest

from tests.process.children import gone

from .places import DONE, INIT, PROMPT, Place, asks, calls, gives, judged
from .windows import COMMAND, LIMIT


async def test_it_prints_lines_without_escapes_and_says_what_came_of_it(place: Place) -> None:
    edit = {"file_path": str(place.work / "a.py"), "old_string": "x = 1", "new_string": "x = 2"}
    place.cli(
        PROMPT,
        INIT,
        {"say": "I will **edit** it.\n\n1. now"},
        *judged("Edit", edit, "e1"),
        gives("e1", "ok"),
        DONE,
    )
    run = await place.piped("run", "Edit it", "--policy", "edits")
    assert run.code == 0
    # What is kept in a file is what the agent said and did.
    assert run.err == (
        "done · 1 turn · 12 s · $0.0421\n"
        "go on with: bridle run --resume 00000000-0000-4000-8000-000000000000\n"
    )
    assert run.out == (
        "● I will **edit** it.\n\n  1. now\n\n● Edit  a.py\n    - x = 1\n    + x = 2\n"
    )


async def test_an_agent_that_runs_what_nobody_judged_is_stopped_and_that_is_said(
    place: Place,
) -> None:
    place.cli(PROMPT, INIT, calls("Bash", {"command": "make"}), gives("t1", "made"), {"prompt": ""})
    run = await place.piped("run", "Make it")
    assert run.code == 1
    words = "Bridle stopped the agent: a tool ran although Claude Code did not ask about it"
    assert words in " ".join((run.out + run.err).split())


async def test_where_nobody_can_be_asked_it_is_denied_and_said_once(place: Place) -> None:
    ls = {"command": "npm test"}
    cli = place.cli(PROMPT, INIT, *asks("Bash", ls, "t1"), *asks("Bash", ls, "t2"), DONE)
    run = await place.piped("run", "Test it")
    assert run.code == 6
    assert run.out.count("nobody can be asked here") == 1
    assert run.out.count("denied: nobody sits at this terminal") == 2
    answer = cli.answer_to("t1")
    assert answer
    assert answer["response"]["behavior"] == "deny"
    assert "nobody is there to approve it" in answer["response"]["message"]


async def test_what_is_allowed_beforehand_needs_nobody(place: Place) -> None:
    test = {"command": "npm test -- --fast"}
    cli = place.cli(PROMPT, INIT, *asks("Bash", test), DONE)
    run = await place.piped("run", "Test it", "--yes-to", "Bash(npm test:*)")
    assert run.code == 0
    answer = cli.answer_to("t1")
    assert answer
    assert answer["response"]["behavior"] == "allow"


@pytest.mark.parametrize("words", [("run", "-"), ("run",)], ids=["dash", "nothing"])
async def test_the_prompt_may_come_from_stdin(place: Place, words: tuple[str, ...]) -> None:
    cli = place.cli(PROMPT, INIT, {"say": "Read."}, DONE)
    run = await place.piped(*words, given=b"Read\nthis\n")
    assert run.code == 0
    (prompt,) = [told for told in cli.told() if told["type"] == "user"]
    assert prompt["message"]["content"] == "Read\nthis\n"


async def test_for_programs_each_entry_is_a_line_of_json_and_the_last_says_how_it_ended(
    place: Place,
) -> None:
    place.cli(PROMPT, INIT, {"say": "Hi."}, *asks("Bash", {"command": "npm test"}), DONE)
    run = await place.piped("run", "Go", "--json")
    assert run.code == 6
    lines: list[dict[str, Any]] = [json.loads(line) for line in run.out.splitlines()]
    kinds = [line["kind"] for line in lines]
    assert [kind for kind in kinds if kind != "status"][:2] == ["prompt", "prompt"]
    said = next(line for line in lines if line["kind"] == "text")
    assert said["text"] == {"text": "Hi."}
    # An entry that changes comes again, under the same position.
    calls_ = [line for line in lines if line["kind"] == "tool_call"]
    assert len({line["position"] for line in calls_}) == 1
    assert calls_[-1]["end"]["outcome"] == "denied"
    assert lines[-1] == {
        "kind": "run_end",
        "outcome": "done",
        "exit_code": 6,
        "turns": 1,
        "cost_usd": 0.0421,
        "seconds": 12.345,
        "unasked": 1,
        "session_id": "00000000-0000-4000-8000-000000000000",
    }
    assert run.err.count("nobody can be asked here") == 1


async def test_whoever_sits_at_a_terminal_is_asked_there_though_the_output_goes_elsewhere(
    place: Place,
) -> None:
    place.cli(PROMPT, INIT, *asks("Bash", {"command": "npm test"}), DONE)
    shell = ("sh", "-c", f"{' '.join(COMMAND)} run Go > out.txt; echo code $?")
    async with place.window(command=shell) as window:
        await window.sees("[y]es  [n]o")
        window.types("y")
        await window.sees("code 0")
        await window.ends()
    text = (place.work / "out.txt").read_text()
    assert "✓ allowed by you" in text
    assert "\x1b" not in text
    assert "[y]es" not in text


async def test_options_reach_the_cli(place: Place) -> None:
    cli = place.cli(PROMPT, INIT, {"say": "Hi."}, DONE)
    words = ("--model", "opus", "--mode", "plan", "--resume", "abc", "--max-turns", "3")
    run = await place.piped("run", "Go", *words, "--max-cost", "1.5", "--cwd", str(place.work))
    assert run.code == 0
    argv = " ".join(cli.report()[0]["argv"])
    for given in ("--model=opus", "--permission-mode=plan", "--resume=abc", "--max-turns=3"):
        assert given in argv
    assert "--max-budget-usd=1.5" in argv


IMPOSSIBLE = [
    (("run", "Go", "--cwd", "nowhere"), 2, "there is no folder"),
    (("run", " "), 2, "there is no prompt"),
    (("run", "-i"), 2, "there is no terminal to type at"),
    (("run", "-i", "--json"), 2, "for people"),
    (("run", "Go", "--resume", "a", "--continue"), 2, "exclude each other"),
    (("run", "Go", "--policy", "nonsense"), 1, "no such preset"),
    (("run", "Go", "--yes-to", "bash(x)"), 1, "the tool is called Bash"),
    (("run", "Go", "--claude", "/no/such/claude"), 1, "there is no program"),
    (("run", "Go", "--detach"), 3, "bridle up"),
    (("run", "Go", "--detach", "--continue"), 2, "--continue can't be handed"),
]


async def test_what_can_not_be_run_is_told_on_one_line(place: Place) -> None:
    place.cli(PROMPT, INIT, DONE)
    for words, code, told in IMPOSSIBLE:
        run = await place.piped(*words)
        assert (run.code, run.out) == (code, "")
        assert told in run.err
        assert run.err.startswith("bridle: ")
        assert run.err.count("\n") == 1


async def test_a_reader_who_goes_away_ends_the_agent(place: Place) -> None:
    place.cli(PROMPT, INIT, {"repeat": 100_000, "steps": [{"say": "x" * 200}]})
    process = await place.start("run", "Go")
    assert process.stdout
    assert process.stdin
    process.stdin.close()
    async with asyncio.timeout(LIMIT):
        await process.stdout.readline()
        # As `head -1` does.
        process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
        assert await process.wait() == 141
    assert await gone(place.alive(), LIMIT)


@pytest.mark.slow
async def test_a_reader_who_has_stopped_reading_keeps_nobody_from_deciding_or_ending_it(
    place: Place,
) -> None:
    talk = {"repeat": 5_000, "steps": [{"say": "x" * 1_000}]}
    place.cli(PROMPT, INIT, talk, *asks("Bash", {"command": "npm test"}), {"pause": 60})
    reading, writing = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *("run", "Go", "--yes-to", "Bash(npm test)"),
        cwd=place.work,
        env=place.env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=writing,
    )
    os.close(writing)
    try:
        # The pipe is full, and still it is heard to the end and answered.
        await place.reported('"behavior": "allow"')
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(LIMIT):
            assert await process.wait() == 143
    finally:
        os.close(reading)
    assert place.alive() == []
