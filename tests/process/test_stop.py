"""The ladder: each step is reached and told, nothing is left, and it is bounded in time."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bridle.process.child import ChildProcess
from bridle.process.spec import LaunchSpec
from bridle.process.stop import uncancelled
from bridle.process.transport import Exit, StopLimits, Stopped
from bridle.testing import FakeCli
from tests.levels import tries

from . import trees
from .children import Heard, Lifeline, Start, gone, in_time, is_alive, python

MakeFake = Callable[..., FakeCli]

QUICK = StopLimits(graceful=0.05, signal=0.1, total=4)
BOTH = ["SIGINT", "SIGTERM"]
STALL = {"stall": 600}


# --- the steps


@pytest.mark.parametrize(
    ("steps", "limits", "step", "status"),
    [
        ([], StopLimits(), "eof", Exit(code=0)),
        ([STALL], QUICK, "SIGINT", Exit(signal=2)),
        ([{"ignore": ["SIGINT"]}, STALL], QUICK, "SIGTERM", Exit(signal=15)),
        ([{"ignore": BOTH}, STALL], QUICK, "SIGKILL", Exit(signal=9)),
    ],
)
async def test_each_step_of_the_ladder_is_reached_and_told(
    start: Start,
    fake_cli: MakeFake,
    steps: list[dict[str, Any]],
    limits: StopLimits,
    step: str,
    status: Exit,
) -> None:
    child, heard = await start(fake_cli([*steps[:-1], {"say": "Hi."}, *steps[-1:]]).command)
    await heard.line()
    stopped = await child.stop(limits)
    assert (stopped.step, stopped.exit, stopped.survivors) == (step, status, ())
    assert 0 < stopped.seconds < limits.total
    assert heard.endings == 1
    assert not is_alive(child.pid)


async def test_a_process_that_is_gone_needs_no_step(start: Start, fake_cli: MakeFake) -> None:
    child, heard = await start(fake_cli([{"exit": 3}]).command)
    await heard.end()
    with in_time():
        stopped = await child.stop(StopLimits())
    assert (stopped.step, stopped.exit) == ("gone", Exit(code=3))


async def test_one_that_was_asked_and_ends_is_told_so(start: Start) -> None:
    child, _ = await start(python("import os; os.read(0, 1)"))
    stopped = await child.stop(StopLimits(), asked=True)
    assert (stopped.step, stopped.exit) == ("asked", Exit(code=0))


async def test_orphans_of_a_process_that_is_gone_are_spared_the_interrupt(
    start: Start, fake_cli: MakeFake
) -> None:
    fake = fake_cli([{"spawn": {"seconds": 600}}, {"exit": 0}])
    child, heard = await start(fake.command)
    await heard.end()
    stopped = await child.stop(QUICK)
    assert (stopped.step, stopped.exit) == ("SIGTERM", Exit(code=0))
    assert not is_alive(next(e["spawned"] for e in fake.report() if "spawned" in e))


async def test_what_was_written_is_delivered_before_the_end_of_the_input(start: Start) -> None:
    child, heard = await start(python("import sys; print(len(sys.stdin.buffer.read()))"))
    child.write(b"x" * 1_000_000)
    assert (await child.stop(StopLimits())).step == "eof"
    assert heard.data == b"1000000\n"


async def test_a_stopped_process_is_waked_to_hear_that_it_shall_end(start: Start) -> None:
    code = """
        import os, signal, sys
        signal.signal(signal.SIGINT, lambda *_: sys.exit(7))
        os.write(1, b"ready\\n")
        while True: signal.pause()
    """
    child, heard = await start(python(code))
    await heard.line()
    os.kill(child.pid, signal.SIGSTOP)
    stopped = await child.stop(StopLimits(graceful=0.05))
    assert (stopped.step, stopped.exit) == ("SIGINT", Exit(code=7))


# --- asked twice, cancelled, and in a hurry


async def test_asked_again_it_gives_the_same_answer(start: Start, fake_cli: MakeFake) -> None:
    child, heard = await start(fake_cli([{"say": "Hi."}, STALL]).command)
    await heard.line()
    first, second = await asyncio.gather(child.stop(QUICK), child.stop(StopLimits()))
    assert first is second
    assert await child.stop(QUICK) is first
    assert heard.endings == 1


async def test_it_goes_on_however_often_it_is_cancelled(start: Start, fake_cli: MakeFake) -> None:
    steps = [{"ignore": BOTH}, {"spawn": {"seconds": 600}}, {"say": "Hi."}, STALL]
    fake = fake_cli(steps)
    child, heard = await start(fake.command)
    await heard.until(lambda: b"Hi." in heard.data)
    (spawned,) = (e["spawned"] for e in fake.report() if "spawned" in e)
    stopping = asyncio.ensure_future(child.stop(QUICK))
    for _ in range(10):
        await asyncio.sleep(0)
        stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert not is_alive(child.pid)
    assert not is_alive(spawned)
    assert (await child.stop(QUICK)).step == "SIGKILL"


async def test_a_timeout_around_it_is_raised_after_it_has_ended(
    start: Start, fake_cli: MakeFake
) -> None:
    child, heard = await start(fake_cli([{"ignore": BOTH}, {"say": "Hi."}, STALL]).command)
    await heard.line()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await child.stop(QUICK)
    assert not is_alive(child.pid)


def test_a_loop_that_is_closed_in_the_middle_of_it_leaves_nothing(lifeline: Lifeline) -> None:
    pids: list[int] = []

    async def leave() -> None:
        child, heard = ChildProcess(LaunchSpec(command=trees.stubborn(lifeline))), Heard()
        await child.start(heard)
        pids.extend([child.pid, *json.loads(await heard.line())])
        _ = asyncio.ensure_future(child.stop(StopLimits()))  # noqa: RUF006 - nobody waits for it
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    # Its end cancels every task, as a second Ctrl-C does.
    run_and_forget(leave())
    assert asyncio.run(gone(pids, 5))
    assert not lifeline.is_held()


def run_and_forget(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)
    gc.collect()


async def test_work_that_fails_is_told_and_not_the_cancellation() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    waiting = asyncio.ensure_future(uncancelled(fail()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(ZeroDivisionError):
        await waiting


async def test_work_that_is_itself_cancelled_is_told() -> None:
    work = asyncio.ensure_future(asyncio.Event().wait())
    waiting = asyncio.ensure_future(uncancelled(work))
    await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.parametrize(
    "limits",
    [
        StopLimits(graceful=60, signal=0.1, total=0.5),
        StopLimits(graceful=0, signal=60, total=0.5),
        StopLimits(graceful=0, signal=0, total=2),
    ],
)
async def test_all_together_takes_no_longer_than_it_may_and_still_kills(
    start: Start, fake_cli: MakeFake, limits: StopLimits
) -> None:
    child, heard = await start(fake_cli([{"ignore": BOTH}, {"say": "Hi."}, STALL]).command)
    await heard.line()
    with in_time():
        stopped = await child.stop(limits)
    assert (stopped.step, stopped.exit) == ("SIGKILL", Exit(signal=9))


async def test_the_defaults_are_what_is_promised() -> None:
    assert StopLimits() == StopLimits(graceful=5.0, signal=2.0, total=12.0)


@pytest.mark.slow
async def test_how_it_ended_is_known_though_the_news_comes_late(
    start: Start, fake_cli: MakeFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = os.waitpid

    def waitpid(pid: int, flags: int) -> tuple[int, int]:
        told = wait(pid, flags)
        # The process is gone now; the thread that waits for it is slow to tell.
        threading.Event().wait(0.15)
        return told

    monkeypatch.delattr("os.pidfd_open")
    monkeypatch.setattr("os.waitpid", waitpid)
    child, heard = await start(fake_cli([{"ignore": BOTH}, {"say": "Hi."}, STALL]).command)
    await heard.line()
    stopped = await child.stop(StopLimits(graceful=0, signal=0.5, total=1))
    assert (stopped.step, stopped.exit) == ("SIGKILL", Exit(signal=9))


# --- trees that are hard to end, again and again


async def end(child: ChildProcess, lifeline: Lifeline, limits: StopLimits = QUICK) -> Stopped:
    """Stop it, and see that nothing is left and that it was in time."""
    start = time.monotonic()
    stopped = await child.stop(limits)
    took = time.monotonic() - start
    assert not lifeline.is_held()
    assert stopped.survivors == ()
    assert took < limits.total
    return stopped


@pytest.mark.deeper
@pytest.mark.parametrize("round_", range(tries(2, 20)))
async def test_a_tree_that_hears_no_signal_and_hides_and_grows_is_ended(
    start: Start, lifeline: Lifeline, round_: int
) -> None:
    child, heard = await start(trees.stubborn(lifeline))
    pids = json.loads(await heard.line())
    stopped = await end(child, lifeline)
    assert (stopped.step, stopped.exit) == ("SIGKILL", Exit(signal=9))
    assert not any(map(is_alive, [child.pid, *pids]))


@pytest.mark.deeper
@pytest.mark.parametrize("round_", range(tries(2, 20)))
async def test_orphans_that_a_polite_process_leaves_are_ended(
    start: Start, lifeline: Lifeline, round_: int
) -> None:
    child, heard = await start(trees.abandoning(lifeline))
    pids = json.loads(await heard.line())
    stopped = await end(child, lifeline, StopLimits(graceful=3, signal=0.05, total=6))
    assert (stopped.step, stopped.exit) == ("SIGKILL", Exit(code=0))
    assert not any(map(is_alive, pids))


@pytest.mark.deeper
@pytest.mark.parametrize("round_", range(tries(1, 5)))
@pytest.mark.parametrize("deaf", [False, True])
@pytest.mark.parametrize("cleared", [False, True])
async def test_a_process_that_forks_while_it_is_stopped_leaves_no_child(
    start: Start, lifeline: Lifeline, deaf: bool, cleared: bool, round_: int
) -> None:
    child, heard = await start(trees.forking(lifeline, deaf=deaf, cleared=cleared))
    await heard.line()
    stopped = await end(child, lifeline)
    assert (stopped.step == "SIGKILL") is deaf


@pytest.mark.deeper
@pytest.mark.parametrize("round_", range(tries(1, 5)))
async def test_an_orphan_that_becomes_another_program_while_its_root_ends_is_ended(
    start: Start, lifeline: Lifeline, round_: int
) -> None:
    child, heard = await start(trees.racing(lifeline))
    await heard.end()
    assert (await end(child, lifeline)).exit == Exit(code=0)


@pytest.mark.deeper
@pytest.mark.parametrize("round_", range(tries(1, 5)))
async def test_a_process_that_forks_and_ends_all_the_time_is_ended(
    start: Start, lifeline: Lifeline, round_: int
) -> None:
    child, heard = await start(trees.hopping(lifeline))
    await heard.line()
    await end(child, lifeline)


NESTED = """
import asyncio, json, os, signal, sys
from bridle.process.child import ChildProcess
from bridle.process.spec import LaunchSpec

class Echo:
    def received(self, data): os.write(1, data); os.kill(os.getpid(), signal.SIGKILL)
    def complained(self, text): pass
    def ended(self): pass

async def main():
    await ChildProcess(LaunchSpec(command=json.loads(sys.argv[1]))).start(Echo())
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_an_agent_below_an_agent_is_ended_with_it_though_what_started_it_was_killed(
    start: Start, lifeline: Lifeline
) -> None:
    inner = json.dumps(trees.abandoning(lifeline))
    child, heard = await start([sys.executable, "-c", NESTED, inner])
    pids = json.loads(await heard.line())
    await heard.end()
    stopped = await end(child, lifeline)
    assert stopped.exit == Exit(signal=9)
    assert not any(map(is_alive, pids))


async def test_many_stop_at_the_same_time(start: Start, lifeline: Lifeline) -> None:
    children = [await start(trees.abandoning(lifeline)) for _ in range(10)]
    for _, heard in children:
        await heard.line()
    limits = StopLimits(graceful=5, signal=0.1, total=10)
    with in_time():
        await asyncio.gather(*(child.stop(limits) for child, _ in children))
    assert not lifeline.is_held()
