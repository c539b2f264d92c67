"""`bridle attach` at a terminal: an agent behind a server, followed, answered and talked to."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import msgspec
import pytest

from bridle.cli.client import Client, sse
from bridle.cli.terminal.attaching import Following
from bridle.cli.terminal.outlet import Outlet
from bridle.cli.terminal.printer import Printer
from bridle.cli.terminal.rendering import Look
from bridle.cli.terminal.screen import PlainScreen
from bridle.cli.terminal.sitting import Sitting
from bridle.cli.terminal.status import Underway
from bridle.cli.terminal.view import PeopleView
from bridle.server.examples import SESSION
from bridle.testing import FakeCli

from .places import DONE, INIT, INTERRUPTED, PROMPT, Place, asks, gives, judged
from .windows import LIMIT

KEYS = "[y]es  [n]o  [a]lways"
ASKS = (PROMPT, INIT, {"say": "I must **test** it."}, *asks("Bash", {"command": "npm test"}))


async def test_what_happened_is_shown_and_what_is_asked_is_decided_by_a_key(served: Place) -> None:
    cli = await served.agent(*ASKS, {"say": "Tested."}, DONE)
    async with served.window("attach", "fixer") as window:
        seen = await window.sees(KEYS)
        assert "● I must test it." in seen
        assert "fixer wants to use Bash" in seen
        window.types("y")
        await window.sees("● Tested.")
        await window.sees("✓ done")
        window.types("\x04")
        assert await window.ends() == 0
        assert "✓ allowed by you" in window.screen.text
        assert window.screen.text.endswith("fixer runs on: bridle attach fixer")
        assert window.screen.is_cursor_shown
    answer = cli.answer_to("t1")
    assert answer
    assert answer["response"]["behavior"] == "allow"
    assert await served.state_of("fixer") == "idle"


async def test_a_rule_may_be_remembered_for_more_than_this_session(served: Place) -> None:
    await served.agent(*ASKS, DONE)
    async with served.window("attach", "fixer") as window:
        await window.sees(KEYS)
        window.types("a")
        await window.sees("Which rule?")
        window.types("1\n")
        await window.sees("or [e]verywhere?")
        window.types("e")
        await window.sees("✓ done")
        window.types("\x04")
        assert await window.ends() == 0


@pytest.mark.slow
async def test_a_server_that_is_killed_is_waited_for_and_the_question_can_still_be_answered(
    served: Place,
) -> None:
    cli = await served.agent(*ASKS, {"say": "Tested."}, DONE)
    async with served.window("attach", "fixer") as window:
        await window.sees(KEYS)
        await served.kill_server()
        window.types("y")
        await window.sees("no server answers")
        await window.sees(KEYS)
        await served.up()
        window.types("y")
        await window.sees("● Tested.")
        await window.sees("✓ done")
        window.types("\x04")
        assert await window.ends() == 0
        assert window.screen.text.count("● I must test it.") == 1
    answers = [told for told in cli.told() if told["type"] == "control_response"]
    assert [one["response"]["request_id"] for one in answers] == ["t1"]


@pytest.mark.slow
async def test_it_says_that_the_server_is_gone_and_when_it_is_back(served: Place) -> None:
    await served.agent(PROMPT, INIT, {"say": "One."}, DONE, PROMPT, {"say": "Two."}, DONE)
    async with served.window("attach", "fixer") as window:
        await window.sees("✓ done")
        await served.kill_server()
        await window.sees("the server is gone, waiting for it")
        await served.up()
        await window.sees("the server is back")
        window.types("more\r")
        await window.sees("● Two.")
        await window.sees("✓ done")
        window.types("\x04")
        assert await window.ends() == 0


async def test_each_time_that_the_server_is_gone_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "FIRST_PAUSE", 0.0)
    breaks: asyncio.Queue[asyncio.Event] = asyncio.Queue()

    async def until(broken: asyncio.Event) -> AsyncIterator[bytes]:
        yield b": hello\n\n"
        await broken.wait()

    async def answer(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/transcript"):
            return httpx.Response(200, content=msgspec.json.encode(SESSION))
        breaks.put_nowait(broken := asyncio.Event())
        return httpx.Response(200, content=until(broken))

    http = httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://x")
    async with asyncio.timeout(LIMIT), http, printed() as (sitting, lines):
        following = Following(Client(http, "there"), SESSION, sitting)
        going = asyncio.ensure_future(following.go_on(0))
        for _ in range(3):
            (await breaks.get()).set()
            told = await lines.readuntil(b"the server is back")
            assert b"the server is gone, waiting for it" in told
        going.cancel()
        await asyncio.wait([going])


@asynccontextmanager
async def printed() -> AsyncIterator[tuple[Sitting, asyncio.StreamReader]]:
    """Nobody's terminal: what is shown can be read."""
    lines, (out, to) = asyncio.StreamReader(), os.pipe()
    reading, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(out, "rb")
    )
    with contextlib.closing(reading), os.fdopen(to, "wb"):
        async with Outlet(to) as outlet:
            screen, underway = PlainScreen(outlet), Underway(Look().folder)
            view = PeopleView(screen, Printer(Look()), underway)
            yield Sitting(outlet, view, screen, underway), lines


async def test_of_two_who_are_attached_the_first_decides_and_the_other_is_told(
    served: Place,
) -> None:
    await served.agent(*ASKS, {"say": "Tested."}, DONE)
    async with served.window("attach", "fixer") as one, served.window("attach", "fixer") as other:
        await one.sees(KEYS)
        await other.sees(KEYS)
        one.types("n")
        await one.sees("Why?")
        one.types("not now\r")
        assert "denied by" in await other.sees(", elsewhere")
        for window in (one, other):
            await window.sees("● Tested.")
            await window.sees("✓ done")
            window.types("\x04")
            assert await window.ends() == 0


def interrupts(cli: FakeCli) -> int:
    """How often the agent was told to end its turn."""
    return [told.get("request", {}).get("subtype") for told in cli.told()].count("interrupt")


async def test_ctrl_c_once_interrupts_and_twice_leaves_the_agent_running(served: Place) -> None:
    cli = await served.agent(
        PROMPT, INIT, {"say": "At it."}, *INTERRUPTED, PROMPT, {"say": "Again."}, {"pause": 600}
    )
    async with served.window("attach", "fixer") as window:
        await window.sees("At it.")
        window.types("\x03")
        await window.sees("interrupting its turn")
        await window.sees("! interrupted")
        window.types("go on\r")
        await window.sees("● Again.")
        window.types("\x03")
        await window.until(lambda: interrupts(cli) == 2, "it was not interrupted again")
        window.types("\x03")
        assert await window.ends() == 0
        assert "fixer runs on" in window.screen.text
    assert interrupts(cli) == 2
    assert await served.state_of("fixer") == "running"


async def test_whoever_wants_it_stopped_when_they_leave_has_it_stopped(served: Place) -> None:
    await served.agent(PROMPT, INIT, {"say": "Done."}, DONE)
    async with served.window("attach", "fixer", "--stop-on-exit") as window:
        await window.sees("✓ done")
        window.types("\x04")
        assert await window.ends() == 0
        assert "fixer was stopped" in window.screen.text
    assert await served.state_of("fixer") == "stopped"


async def test_who_only_looks_on_is_told_who_is_waited_for_and_has_no_keys(served: Place) -> None:
    await served.agent(*ASKS, DONE)
    async with served.window("attach", "fixer", "--read-only") as window:
        await window.sees("Bash npm test waits to be allowed")
        await window.sees("1 approval pending")
        window.types("y")
        window.types("\x03")
        assert await window.ends() == 0
    assert await served.state_of("fixer") == "awaiting approval"


async def test_what_can_not_be_told_is_said_with_what_to_do(served: Place) -> None:
    await served.agent(PROMPT, INIT, {"say": "Done."}, DONE)
    async with served.window("attach", "fixer") as window:
        await window.sees("✓ done")
        stopped = await served.piped("stop", "fixer")
        assert stopped.code == 0
        await window.sees("! stopped")
        window.types("more\r")
        await window.sees("✗ ")
        await window.sees("resume")
        window.types("\x04")
        assert await window.ends() == 0


@pytest.mark.slow
async def test_without_a_terminal_it_follows_in_lines_until_it_is_ended(served: Place) -> None:
    await served.agent(*ASKS, DONE)
    process = await served.start("attach", "fixer")
    assert process.stdout
    seen = b""
    async with asyncio.timeout(LIMIT):
        while b"waits to be allowed" not in seen:
            seen += await process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        out, err = await process.communicate()
    assert process.returncode == 0
    assert b"\x1b" not in seen + out
    assert err == b""


async def test_the_words_of_a_call_that_ran_before_stand_in_their_order(served: Place) -> None:
    await served.agent(
        *ASKS, *judged("Read", {"file_path": "a"}, "r1"), gives("r1", "x"), {"say": "End."}, DONE
    )
    async with served.window("attach", "fixer") as window:
        await window.sees(KEYS)
        window.types("y")
        await window.sees("✓ done")
    async with served.window("attach", "fixer", "--tail", "100") as window:
        await window.sees("✓ done")
        lines = window.screen.text.splitlines()
    start = lines.index("● Bash  npm test")
    assert lines[start + 1].startswith("  ✓ allowed by you")
    assert lines[start + 2].startswith("  └ ")
    assert lines[start + 3 : start + 5] == ["● Read  a", "  └ 1 line"]


async def test_a_session_that_is_not_there_is_told(served: Place) -> None:
    attached = await served.piped("attach", "nobody")
    assert attached.code == 4
    assert "there is no session nobody" in attached.err


async def test_without_a_server_there_is_nothing_to_attach_to(place: Place) -> None:
    attached = await place.piped("attach", "fixer")
    assert attached.code == 3
    assert "bridle up" in attached.err


async def test_a_run_may_be_handed_to_the_server(served: Place) -> None:
    served.cli(PROMPT, INIT, {"say": "From afar."}, DONE)
    run = await served.piped("run", "Go", "--detach", "--name", "far")
    assert (run.code, run.err) == (0, "")
    async with served.window("attach", run.out.strip()) as window:
        await window.sees("● From afar.")
        window.types("\x04")
        assert await window.ends() == 0
