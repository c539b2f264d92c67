"""`bridle logs`: what happened in a session, with a server and without one."""

from __future__ import annotations

import asyncio
import json
import signal

import pytest

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


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--events",)], ids=["entries", "events"])
async def test_what_comes_is_followed_until_somebody_has_seen_enough(
    served: Place, words: tuple[str, ...]
) -> None:
    await served.agent(PROMPT, INIT, {"say": "One."}, *asks("Bash", {"command": "x"}), DONE)
    process = await served.start("logs", "fixer", "--follow", *words)
    assert process.stdout
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
        await process.communicate()
    assert process.returncode == 130


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
