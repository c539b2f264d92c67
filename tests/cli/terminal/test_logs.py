"""`bridle logs`: what happened in a session, with a server and without one."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from bridle.cli.client import Client
from bridle.cli.terminal import logs
from bridle.cli.terminal.outlet import Outlet
from bridle.cli.terminal.printer import Printer
from bridle.cli.terminal.rendering import Look
from bridle.cli.terminal.screen import PlainScreen
from bridle.cli.terminal.sitting import Sitting
from bridle.cli.terminal.status import Underway
from bridle.cli.terminal.view import PeopleView
from bridle.server.app import make_app
from bridle.server.house import open_house
from bridle.views.entries import Text
from tests.cli import forks
from tests.server.conftest import PERSON
from tests.supervisor.homes import Home

from .places import DONE, INIT, PROMPT, Place, asks
from .windows import LIMIT


async def talked(place: Place) -> None:
    """A session that has had a turn, and whose server is down."""
    cli = (PROMPT, INIT, {"say": "One."}, {"say": "Two."}, DONE)
    await place.agent(*cli)
    async with place.window("attach", "fixer") as window:
        await window.sees("✓ done")
        window.types("\x04")
        await window.ends()


@pytest.mark.slow
async def test_logs_are_read_from_the_home_while_no_server_is_up(served: Place) -> None:
    await talked(served)
    await served.down()
    whole = await served.piped("logs", "fixer")
    assert (whole.code, whole.err) == (0, "")
    assert whole.out.startswith("> Go\n\n● One.\n\n● Two.\n\n✓ done · 12 s · $0.0421\n")
    assert "\x1b" not in whole.out

    end = await served.piped("logs", "fixer", "--tail", "2", "--verbose")
    assert "Two." not in end.out
    assert "stopped" in end.out

    # What is not shown does not count.
    for count, first in ((1, "! stopped"), (3, "✓ done"), (0, "")):
        last = await served.piped("logs", "fixer", "--tail", str(count))
        assert last.out.startswith(first)
        assert bool(last.out) is bool(count)

    entries = await served.piped("logs", "fixer", "--json")
    lines = [json.loads(line) for line in entries.out.splitlines()]
    assert [line["position"] for line in lines] == list(range(1, len(lines) + 1))
    assert {"prompt", "text", "turn_end"} <= {line["kind"] for line in lines}

    for since, is_there in (("1h", True), ("99999999999", False)):
        some = await served.piped("logs", "fixer", "--since", since)
        assert ("One." in some.out) is is_there


@pytest.mark.slow
async def test_events_are_shown_as_they_were_written_down(served: Place) -> None:
    await talked(served)
    await served.down()
    shown = await served.piped("logs", "fixer", "--events")
    lines = shown.out.splitlines()
    assert [line for line in lines[:3] if "session.created" in line]
    assert [int(line.split()[0]) for line in lines] == list(range(1, len(lines) + 1))
    last = await served.piped("logs", "fixer", "--events", "--tail", "1", "--json")
    (event,) = [json.loads(line) for line in last.out.splitlines()]
    assert (event["seq"], event["kind"]) == (len(lines), "session.state")


@pytest.mark.parametrize("words", [(), ("--events",)], ids=["entries", "events"])
async def test_what_comes_is_followed_until_somebody_has_seen_enough(
    served: Place, words: tuple[str, ...]
) -> None:
    await served.agent(PROMPT, INIT, {"say": "One."}, *asks("Bash", {"command": "x"}), DONE)
    process = await forks.Piped.start(
        ("logs", "fixer", "--follow", *words), served.work, served.env, 1 << 20
    )
    seen = b""
    async with asyncio.timeout(LIMIT):
        while b"One." not in seen:
            seen += await process.stdout.readline()
        while b"approve " not in seen and b"approval.requested" not in seen:
            seen += await process.stdout.readline()
        listed = await served.piped("approvals", "--json")
        (approval,) = [one["id"] for one in json.loads(listed.out)]
        assert (await served.piped("approve", approval)).code == 0
        while "✓ done".encode() not in seen and b'"now":"idle"' not in seen:
            seen += await process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
    await process.close()


@pytest.mark.slow
async def test_of_a_session_that_has_ended_nothing_is_waited_for(served: Place) -> None:
    await talked(served)
    assert (await served.piped("stop", "fixer")).code == 0
    for words in ((), ("--events",)):
        followed = await served.piped("logs", "fixer", "--follow", *words)
        assert followed.code == 0
        assert "One." in followed.out
    attached = await served.piped("attach", "fixer")
    assert attached.code == 5
    assert attached.err == "bridle: fixer is stopped; `bridle resume fixer`\n"


async def test_of_a_session_that_was_not_started_nothing_is_waited_for(served: Place) -> None:
    made = ("--name", "fixer", "--no-start", "--option", 'command=["true"]')
    assert (await served.piped("start", *made)).code == 0
    followed = ("logs", "fixer", "--follow")
    found = [await served.piped(*followed, *words) for words in ((), ("--events",))]
    assert [one.code for one in found] == [0, 0]
    assert "session.created" in found[1].out


async def test_following_needs_a_server(place: Place) -> None:
    followed = await place.piped("logs", "fixer", "-f")
    assert followed.code == 3
    assert "bridle up" in followed.err


@pytest.mark.parametrize("since", ["soon", "10x", "-5m"])
async def test_a_time_that_is_none_is_told(place: Place, since: str) -> None:
    told = await place.piped("logs", "fixer", f"--since={since}")
    assert told.code == 2
    assert "is no time" in told.err


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("10m", 600), ("1.5h", 5_400), ("2d", 172_800), ("0s", 0)]
)
def test_a_time_may_be_said_by_how_long_ago_it_was(text: str, seconds: float) -> None:
    before = time.time()
    assert before - seconds <= logs.time_of(text) <= time.time() - seconds
    assert (logs.time_of("1700000000"), logs.time_of("0.5")) == (1_700_000_000.0, 0.5)


@pytest_asyncio.fixture
async def said(home: Home) -> AsyncIterator[Client]:
    """A client of a server, where the session `a` has had a turn, and `b` had none."""
    async with home.open() as supervisor, open_house(home.folder, supervisor) as house:
        steps = (PROMPT, INIT, *({"say": f"Word {number}."} for number in range(5)), DONE)
        await home.start(supervisor, *steps, name="a")
        is_done = lambda record: record.turns == 1 and record.published == "idle"  # noqa: E731
        await supervisor.wait("a", is_done, LIMIT)
        await home.start(supervisor, name="b", start=False, prompt=None, command=["true"])
        transport = httpx.ASGITransport(make_app(house, PERSON))  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            yield Client(http, "here")


async def shown(
    client: Client, file: Path, session: str = "a", *, of: str = "entries", **wanted: Any
) -> list[str]:
    """What is printed of a log, line by line."""
    with file.open("w+") as out:
        async with Outlet(out.fileno()) as outlet:
            screen = PlainScreen(outlet)
            printer = Printer(Look(is_verbose=True))
            sitting = Sitting(outlet, PeopleView(screen, printer, Underway()), screen, Underway())
            if of == "entries":
                is_text = lambda entry: isinstance(entry, Text)  # noqa: E731
                await logs.show_transcript(client, session, sitting, logs.Wanted(**wanted), is_text)
            else:
                await logs.show_events(
                    client, session, sitting, logs.Wanted(**wanted), is_json=of == "json"
                )
        out.seek(0)
        return out.read().splitlines()


@pytest.mark.parametrize("page", [3, logs.PAGE])
async def test_of_a_log_the_last_of_what_is_shown_is_counted(
    said: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(logs, "PAGE", page)
    file = tmp_path / "out"

    async def words(**wanted: Any) -> list[str]:
        lines = await shown(said, file, **wanted)
        return [line.removeprefix("● Word ") for line in lines if "Word" in line]

    assert await words() == ["0.", "1.", "2.", "3.", "4."]
    assert await words(tail=2) == ["3.", "4."]
    assert await words(tail=5) == await words(tail=9) == await words(since=1.0)
    assert await words(tail=0) == await words(since=time.time() + 60) == []
    assert await words(tail=2, since=time.time() + 60) == []


@pytest.mark.parametrize("page", [3, logs.PAGE])
async def test_of_events_each_is_a_line(
    said: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(logs, "PAGE", page)
    file = tmp_path / "out"
    lines = await shown(said, file, of="events")
    assert [int(line.split()[0]) for line in lines] == list(range(1, len(lines) + 1))
    kinds = [line.split()[2] for line in lines]
    assert {"session.created", "agent.said", "session.state"} <= set(kinds)
    when = time.strftime("%H:", time.localtime())
    assert all(line.split()[1].startswith(when[0]) for line in lines)
    assert await shown(said, file, of="events", tail=2) == lines[-2:]
    assert await shown(said, file, of="events", tail=0) == []
    assert await shown(said, file, of="events", tail=len(lines) + 1) == lines
    assert await shown(said, file, of="events", since=time.time() + 60) == []
    events = [json.loads(line) for line in await shown(said, file, of="json")]
    assert [event["seq"] for event in events] == list(range(1, len(lines) + 1))
    assert [event["kind"] for event in events] == kinds
    assert len(await shown(said, file, "b", of="events")) < len(lines)
