"""Ending a CLI behind a shim: its whole tree, whoever started it, whatever was killed before."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from pathlib import Path

import pytest

from bridle.process.detached import DetachedProcess
from bridle.process.spec import LaunchSpec
from bridle.process.spool import Spool
from bridle.process.transport import Exit, StopLimits
from bridle.process.wake import open_wakes
from tests.levels import tries

from . import trees
from .children import LIMIT, Heard, Lifeline, gone, in_time, is_alive, python
from .spools import DEAF, READY, Detach, TakeUp

QUICK = StopLimits(graceful=0.05, signal=0.1, total=4)


# --- stopping


@pytest.mark.parametrize(
    ("command", "limits", "step", "status"),
    [
        (READY, StopLimits(), "eof", Exit(code=0)),
        (["/bin/sh", "-c", "echo ready; exec sleep 600 #"], QUICK, "SIGINT", Exit(signal=2)),
        (DEAF, QUICK, "SIGKILL", Exit(signal=9)),
    ],
)
async def test_each_step_of_the_ladder_is_reached_and_its_exit_known(
    detach: Detach, command: list[str], limits: StopLimits, step: str, status: Exit
) -> None:
    process, heard = await detach(command)
    await heard.line()
    first, second = await asyncio.gather(process.stop(limits), process.stop(limits))
    assert first is second
    assert (first.step, first.exit, first.survivors) == (step, status, ())
    assert process.spool.exit() == status
    assert heard.endings == 1
    assert not process.spool.is_held()


async def test_one_that_was_asked_and_ends_is_told_so(detach: Detach) -> None:
    process, heard = await detach(READY)
    await heard.line()
    assert (await process.stop(StopLimits(), asked=True)).step == "asked"


@pytest.mark.deeper
@pytest.mark.parametrize("round_", range(tries(2, 10)))
async def test_a_tree_that_hears_no_signal_and_hides_and_grows_is_ended(
    detach: Detach, lifeline: Lifeline, round_: int
) -> None:
    process, heard = await detach(trees.stubborn(lifeline))
    pids = json.loads(await heard.line())
    stopped = await process.stop(QUICK)
    assert not lifeline.is_held()
    assert (stopped.step, stopped.survivors) == ("SIGKILL", ())
    assert stopped.exit == Exit(signal=9)
    assert not any(map(is_alive, [process.pid, *pids]))


#: Leaves an orphan in its own session, with no parent, no marker and nothing in its environment.
HIDES = """
import os, subprocess, sys
shell = "echo $$; sleep 600; :"
subprocess.run(["env", "-i", "setsid", "-f", "sh", "-c", shell, sys.argv[1]])
os.read(0, 1)
"""


async def test_an_orphan_with_nothing_to_find_it_by_is_ended(detach: Detach, mark: str) -> None:
    process, heard = await detach(python(HIDES, mark))
    orphan = int(await heard.line())
    process.close_input()
    await heard.end()
    assert is_alive(orphan)
    assert is_alive(process.pid)
    stopped = await process.stop(QUICK)
    assert (stopped.step, stopped.exit) == ("SIGTERM", Exit(code=0))
    assert not is_alive(orphan)


async def test_what_is_left_is_ended_though_the_shim_was_killed_before(
    detach: Detach, lifeline: Lifeline
) -> None:
    process, heard = await detach(trees.abandoning(lifeline))
    pids = json.loads(await heard.line())
    os.kill(process.pid, signal.SIGKILL)
    await heard.end()
    stopped = await process.stop(QUICK)
    assert (stopped.exit, stopped.survivors) == (Exit(), ())
    assert not lifeline.is_held()
    assert not any(map(is_alive, pids))


async def test_another_controller_ends_the_whole_tree(
    detach: Detach, take_up: TakeUp, lifeline: Lifeline
) -> None:
    process, heard = await detach(trees.stubborn(lifeline))
    await heard.line()
    process.release()
    other = take_up(process.spool, process.launch)
    other.follow(Heard())
    stopped = await other.stop(QUICK)
    assert (stopped.exit, stopped.survivors) == (Exit(signal=9), ())
    assert not lifeline.is_held()


def test_a_loop_that_is_closed_in_the_middle_of_it_leaves_nothing(
    mark: str, lifeline: Lifeline, tmp_path: Path
) -> None:
    pids: list[int] = []

    async def leave() -> None:
        with contextlib.closing(await open_wakes(tmp_path)) as wakes:
            spec = LaunchSpec(command=trees.stubborn(lifeline))
            process, heard = DetachedProcess(spec, Spool(tmp_path / mark), wakes, mark), Heard()
            await process.start(heard)
            pids.extend([process.pid, *json.loads(await heard.line())])
            _ = asyncio.ensure_future(process.stop(StopLimits()))  # noqa: RUF006 - nobody waits
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    # Its end cancels every task, as a second Ctrl-C does.
    asyncio.run(leave())
    assert asyncio.run(gone(pids, LIMIT))
    assert not lifeline.is_held()


async def test_a_stop_tells_the_end_only_when_the_reading_goes_on(detach: Detach) -> None:
    process, heard = await detach(READY)
    await heard.line()
    process.pause_reading()
    with in_time():
        assert (await process.stop(StopLimits())).step == "eof"
    assert heard.endings == 0
    process.resume_reading()
    await heard.end()
    assert heard.endings == 1
