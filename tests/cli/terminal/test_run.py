"""`bridle run` at a terminal: a process under a pseudo-terminal, with a fake CLI as the agent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from typing import Any

import pytest

from bridle.approvals import Person
from bridle.cli.terminal import signals
from bridle.cli.terminal.local import Plan, open_agent
from bridle.cli.terminal.outlet import Outlet
from bridle.cli.terminal.printer import Printer
from bridle.cli.terminal.rendering import Look
from bridle.cli.terminal.running import Running
from bridle.cli.terminal.screen import PlainScreen
from bridle.cli.terminal.sitting import Sitting
from bridle.cli.terminal.status import Underway
from bridle.cli.terminal.view import PeopleView
from bridle.process.spec import LaunchSpec
from bridle.testing import FakeCli

from .places import DONE, INIT, INTERRUPTED, PROMPT, Place, asks, gives, judged
from .windows import COMMAND, LIMIT

EDIT = {"file_path": "/app/a.py", "old_string": "x = 1\n", "new_string": "x = 2\n"}
KEYS = "[y]es  [n]o  [a]lways"


def answer_to(cli: FakeCli, id_: str) -> dict[str, Any]:
    answer = cli.answer_to(id_)
    assert answer
    return dict(answer["response"])


async def test_y_lets_an_edit_run_that_was_shown_as_a_diff(place: Place) -> None:
    cli = place.cli(PROMPT, INIT, {"say": "I will **edit** it."}, *asks("Edit", EDIT), DONE)
    async with place.window("run", "Edit a.py") as window:
        seen = await window.sees(KEYS)
        assert "I will edit it." in seen
        assert "-x = 1" in seen
        assert "+x = 2" in seen
        window.types("y")
        await window.sees("allowed by you")
        assert await window.ends() == 0
        assert "✓ done · 1 turn · 12 s · $0.0421" in window.screen.text
        assert "bridle run --resume 00000000-0000-4000-8000-000000000000" in window.screen.text
        assert window.screen.is_cursor_shown
    assert answer_to(cli, "t1")["behavior"] == "allow"


async def test_n_tells_the_model_why_not(place: Place) -> None:
    cli = place.cli(PROMPT, INIT, *asks("Bash", {"command": "npm publish"}), DONE)
    async with place.window("run", "Publish it") as window:
        await window.sees(KEYS)
        window.types("n")
        await window.sees("Why?")
        window.types("not on friday\n")
        await window.sees("denied by you: not on friday")
        assert await window.ends() == 0
    answer = answer_to(cli, "t1")
    assert answer["behavior"] == "deny"
    assert "not on friday" in answer["message"]


async def test_always_holds_for_the_rest_of_the_run_and_is_not_asked_again(place: Place) -> None:
    test = {"command": "npm test"}
    place.cli(PROMPT, INIT, *asks("Bash", test, "t1"), *asks("Bash", test, "t2"), DONE)
    async with place.window("run", "Test it") as window:
        await window.sees(KEYS)
        window.types("a")
        assert "1) Bash(npm test)" in await window.sees("Which rule?")
        window.types("1\n")
        # Nothing is kept of this agent, so nothing else is offered.
        await window.sees("Add Bash(npm test) for this [s]ession?")
        window.types("s")
        assert await window.ends() == 0
        assert window.seen.count("wants to use Bash") == 1


async def test_the_words_that_come_are_seen_while_they_come_and_stand_there_once(
    place: Place,
) -> None:
    words = "These words come **piece by piece**, and it takes a while until all are there."
    steps = ({"partial": words, "chunk": 12}, {"await_request": "interrupt"})
    place.cli(PROMPT, INIT, *steps, *INTERRUPTED[1:])
    async with place.window("run", "Speak") as window:
        await window.sees("● These words come piece by piece, and it takes")
        assert window.screen.text.count("These words come") == 1
        window.types("\x03")
        assert await window.ends() == 130


async def test_ctrl_c_once_interrupts_the_turn_and_the_exit_code_says_so(place: Place) -> None:
    cli = place.cli(PROMPT, INIT, {"say": "At it."}, *INTERRUPTED)
    async with place.window("run", "Go") as window:
        await window.sees("At it.")
        window.types("\x03")
        await window.sees("interrupting")
        assert await window.ends() == 130
        assert "! interrupted · 1 turn" in window.screen.text
    assert "interrupt" in [told.get("request", {}).get("subtype") for told in cli.told()]


async def test_ctrl_c_takes_a_question_off_the_screen(place: Place) -> None:
    place.cli(PROMPT, INIT, *asks("Bash", {"command": "npm test"}), *INTERRUPTED)
    async with place.window("run", "Go") as window:
        await window.sees(KEYS)
        window.types("\x03")
        await window.sees("it is no longer asked: interrupted")
        assert await window.ends() == 130


async def test_after_a_prompt_ctrl_c_is_a_first_one_again_and_stops_no_agent(place: Place) -> None:
    place.cli(PROMPT, INIT, {"say": "One."}, DONE, PROMPT, {"say": "Two."}, *INTERRUPTED)
    async with place.window("run", "-i", "Go") as window:
        await window.sees("✓ done")
        window.types("\x03")
        await window.sees("Ctrl-C again, or Ctrl-D, leaves")
        window.types("more\r")
        await window.sees("● Two.")
        window.types("\x03")
        await window.sees("interrupting")
        await window.sees("! interrupted")
        window.types("\x04")
        assert await window.ends() == 0


async def test_long_after_a_turn_was_interrupted_ctrl_c_is_a_wish_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "TWICE_SECONDS", -1.0)  # all that comes is late
    cli = place.cli(PROMPT, INIT, {"say": "At it."}, *INTERRUPTED, PROMPT)
    spec = LaunchSpec(cwd=place.work, command=cli.command, env=place.env)
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    me, seen = Person("ada", "terminal"), ""

    async def sees(text: str) -> None:
        nonlocal seen
        async with asyncio.timeout(LIMIT):
            while text not in seen:
                assert not going.done(), seen
                await asyncio.sleep(0.01)
                with contextlib.suppress(BlockingIOError):
                    seen += os.read(reading, 65536).decode()

    async with open_agent(Plan(name="one", spec=spec), me) as agent, Outlet(writing) as outlet:
        screen, underway = PlainScreen(outlet), Underway(str(place.work))
        view = PeopleView(screen, Printer(Look(folder=str(place.work))), underway)
        sitting = Sitting(outlet, view, screen, underway)
        going = asyncio.ensure_future(Running(agent, sitting, me, is_interactive=True).go("Go"))
        try:
            await sees("At it.")
            signal.raise_signal(signal.SIGINT)
            await sees("! interrupted")
            signal.raise_signal(signal.SIGINT)
            await sees("Ctrl-C again, or Ctrl-D, leaves")
        finally:
            going.cancel()
            await asyncio.wait([going])
    os.close(reading)
    os.close(writing)


@pytest.mark.slow
async def test_ctrl_c_twice_stops_an_agent_that_will_not_and_all_that_it_has_started(
    place: Place,
) -> None:
    deaf = {"ignore": ["SIGINT", "SIGTERM", "SIGHUP"]}
    cli = place.cli(deaf, PROMPT, INIT, {"spawn": {}}, {"say": "At it."}, {"stall": 600})
    async with place.window("run", "Go") as window:
        await window.sees("At it.")
        window.types("\x03")
        await window.sees("Ctrl-C again stops the agent at once")
        window.types("\x03")
        assert await window.ends() == 130
        assert "! stopped" in window.screen.text
    assert [entry for entry in cli.report() if "spawned" in entry]
    assert place.alive() == []


async def test_ctrl_c_while_it_starts_ends_it(place: Place) -> None:
    place.cli({"prompt": True}, replies={"initialize": None})
    async with place.window("run", "Go") as window:
        await window.sees("Starting Claude Code")
        window.types("\x03")
        assert await window.ends() == 130


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_a_signal_to_end_ends_the_agent_too(
    place: Place, number: signal.Signals, code: int
) -> None:
    place.cli(PROMPT, INIT, {"spawn": {}}, {"say": "At it."}, {"await_request": "never"})
    async with place.window("run", "Go") as window:
        await window.sees("At it.")
        window.process.send_signal(number)
        assert await window.ends() == code
    assert place.alive() == []


async def test_put_aside_by_ctrl_z_it_leaves_a_clean_terminal_and_goes_on(place: Place) -> None:
    place.cli(PROMPT, INIT, {"say": "At it."}, {"await_request": "interrupt"}, *INTERRUPTED[1:])
    async with place.window("run", "Go", command=COMMAND) as window:
        await window.sees("At it.")
        await window.until(lambda: not window.screen.is_cursor_shown, "no region was drawn")
        window.types("\x1a")
        pid, flags = window.process.pid, os.WSTOPPED | os.WNOWAIT
        async with asyncio.timeout(LIMIT):
            await asyncio.to_thread(os.waitid, os.P_PID, pid, flags)
        await window.until(lambda: window.screen.is_cursor_shown, "the cursor stayed hidden")
        assert "Working" not in window.screen.text
        window.process.send_signal(signal.SIGCONT)
        await window.until(lambda: "Working" in window.screen.text, "it did not go on")
        window.types("\x03")
        assert await window.ends() == 130


async def test_further_prompts_are_typed_below_and_ctrl_d_leaves(place: Place) -> None:
    turn = (PROMPT, INIT, {"say": "One."}, DONE, {"prompt": "andé now"}, {"say": "Two."}, DONE)
    place.cli(*turn)
    async with place.window("run", "-i", "Go") as window:
        await window.sees("One.")
        await window.sees("✓ done")
        window.types("andx\x7fé now\x1b[D\x1b[C\r")
        await window.sees("● Two.")
        await window.sees("✓ done")
        window.types("\x04")
        assert await window.ends() == 0
        assert "2 turns" in window.screen.text
        assert "> andé now" in window.screen.text


async def test_a_prompt_that_is_pasted_is_sent_as_one(place: Place) -> None:
    cli = place.cli(PROMPT, INIT, {"say": "Read."}, DONE)
    async with place.window("run", "--interactive") as window:
        await window.sees("> ")
        window.types("\x1b[200~one\rtwo\tthree\x1b[201~")
        await window.shows("one⏎two")
        window.types("\r")
        await window.sees("Read.")
        window.types("\x04")
        assert await window.ends() == 0
    (prompt,) = [told for told in cli.told() if told["type"] == "user"]
    assert prompt["message"]["content"] == "one\ntwo\tthree"


async def test_what_was_put_off_is_asked_again_at_a_key(place: Place) -> None:
    place.cli(PROMPT, INIT, *asks("Bash", {"command": "npm test"}), DONE)
    async with place.window("run", "Go") as window:
        await window.sees(KEYS)
        window.types("l")
        await window.sees("1 put off: any key shows it")
        window.types(" ")
        await window.sees(KEYS)
        window.types("y")
        assert await window.ends() == 0


async def test_whoever_leaves_a_question_by_ctrl_d_is_not_asked_again_and_it_is_denied(
    place: Place,
) -> None:
    cli = place.cli(PROMPT, INIT, *asks("Bash", {"command": "npm test"}), DONE)
    async with place.window("run", "Go") as window:
        await window.sees(KEYS)
        window.types("\x04")
        await window.sees("nobody can be asked here")
        assert await window.ends() == 6
    assert answer_to(cli, "t1")["behavior"] == "deny"


async def test_an_agent_that_dies_is_told_with_its_last_words(place: Place) -> None:
    place.cli(PROMPT, INIT, {"stderr": "out of luck\n"}, {"exit": 7})
    async with place.window("run", "Go") as window:
        assert await window.ends() == 1
        assert "exited code 7" in window.screen.text
        assert "out of luck" in window.screen.text


async def test_an_agent_that_is_ended_when_its_work_is_done_is_not_said_to_have_ended_by_itself(
    place: Place,
) -> None:
    place.cli(PROMPT, INIT, {"say": "Hi."}, DONE)
    run = await place.piped("run", "Go", "--json")
    entries = [json.loads(line) for line in run.out.splitlines()]
    launch = [entry["value"] for entry in entries if entry.get("topic") == "launch"]
    assert launch == ["intended", "ready", "stopped"]


async def test_a_turn_that_fails_is_told_and_the_exit_code_says_so(place: Place) -> None:
    failed = {"result": {"subtype": "error_max_turns", "is_error": True, "result": None}}
    place.cli(PROMPT, INIT, failed)
    async with place.window("run", "Go", "--max-turns", "3") as window:
        assert await window.ends() == 1
        assert "error_max_turns" in window.screen.text
        assert "✗ failed" in window.screen.text


async def test_what_a_folder_brings_is_kept_out_and_that_is_said(place: Place) -> None:
    settings = place.work / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}')
    place.cli(PROMPT, INIT, {"say": "Hi."}, DONE)
    async with place.window("run", "Go") as window:
        assert "hooks" in await window.sees("if you trust it: bridle trust")
        assert await window.ends() == 0


async def test_results_stand_below_their_calls_also_when_many_run_at_once(place: Place) -> None:
    place.cli(
        PROMPT,
        INIT,
        *judged("Read", {"file_path": str(place.work / "a.py")}, "r1"),
        *judged("Grep", {"pattern": "foo"}, "g1"),
        gives("r1", "one\ntwo"),
        gives("g1", "a.py:1:foo"),
        DONE,
    )
    async with place.window("run", "Look") as window:
        assert await window.ends() == 0
        lines = [line.rstrip() for line in window.screen.text.splitlines()]
    start = lines.index("● Read  a.py")
    assert lines[start : start + 7] == [
        "● Read  a.py",
        "● Grep  foo",
        "",
        "✓ Read a.py",
        "  2 lines",
        "",
        "✓ Grep foo",
    ]
