"""Control never waits for data: nobody reads, much is pending, a giant line arrives."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

import bridle
from bridle import Allow, CanUseTool
from bridle.testing import FakeCli

MakeFake = Callable[..., FakeCli]
SMALL = '{"type":"assistant","message":{"id":"m","model":"m","content":[]}}\n'
LIMIT = 90


@pytest.mark.slow
async def test_an_interrupt_is_answered_with_a_million_unread_and_ten_approvals_pending(
    fake_cli: MakeFake,
) -> None:
    asks: list[dict[str, Any]] = [
        {"ask": {"tool_name": "Bash"}, "id": f"ask-{number}", "wait": False} for number in range(10)
    ]
    flood = {"repeat": 1_000, "steps": [{"raw": SMALL * 1_000}]}
    ending = [{"await_request": "interrupt"}, {"result": {"subtype": "error_during_execution"}}]
    fake = fake_cli([{"prompt": True}, *asks, flood, {"big": 60_000_000}, *ending])
    pending: list[CanUseTool] = []
    asked = asyncio.Event()

    async def never(request: CanUseTool) -> Allow:
        pending.append(request)
        if len(pending) == 10:
            asked.set()
        await asyncio.Event().wait()
        return Allow()

    before = psutil.Process().memory_info().rss
    async with bridle.connect(command=fake.command, approver=never) as session:
        turn = await session.send("go")
        await asyncio.wait_for(asked.wait(), LIMIT)
        await asyncio.wait_for(session.interrupt(timeout=LIMIT), LIMIT)
        result = await turn.result(LIMIT)
        grown = (psutil.Process().memory_info().rss - before) / 1e6
        assert result.subtype == "error_during_execution"
        assert len(turn._exchange) == 1_000_002
        assert [len(str(await anext(turn))) > 0 for _ in range(3)] == [True] * 3
    assert grown < 500


@pytest.mark.slow
async def test_a_loud_session_does_not_starve_a_quiet_one(fake_cli: MakeFake) -> None:
    flood = {"repeat": 300, "steps": [{"raw": SMALL * 1_000}]}
    loud = fake_cli([{"prompt": True}, flood, {"result": "loud"}])
    asks = [{"ask": {"tool_name": "Bash"}}] * 50
    quiet = fake_cli([{"prompt": True}, *asks, {"result": "quiet"}])
    async with (
        bridle.connect(command=loud.command) as shouting,
        bridle.connect(command=quiet.command, approver=lambda _: Allow()) as asking,
    ):
        first = await shouting.send("go")
        second = await asking.send("go")
        assert (await second.result(LIMIT)).text == "quiet"
        assert not first.is_done
        assert (await first.result(LIMIT)).text == "loud"


@pytest.mark.slow
async def test_a_line_over_the_limit_is_survived_and_counted(fake_cli: MakeFake) -> None:
    fake = fake_cli([{"prompt": True}, {"big": 70_000_000}, {"result": "after"}])
    async with bridle.connect(command=fake.command) as session:
        assert (await (await session.send("go")).result(LIMIT)).text == "after"
        assert session.counters.oversized == 1


@pytest.mark.slow
async def test_a_log_does_not_make_a_long_line_slow(fake_cli: MakeFake, tmp_path: Path) -> None:
    """Joined once, and not again with every piece: that would be quadratic."""
    lines: list[bytes] = []
    took: list[float] = []
    for log in (None, tmp_path / "log.ndjson", lambda _, line: lines.append(line)):
        fake = fake_cli([{"prompt": True}, {"big": 30_000_000}, {"result": "after"}])
        start = time.process_time()
        async with bridle.connect(command=fake.command, log=log) as session:
            assert (await (await session.send("go")).result(LIMIT)).text == "after"
        took.append(time.process_time() - start)
    # Without a log, then with two kinds of it: by the square it would be fifty times as long.
    assert max(took) < 12 * took[0]
    assert max(map(len, lines)) > 30_000_000
