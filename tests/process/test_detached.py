"""A CLI over a spool: it outlives its controller, and the next one goes on where that left off."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

import bridle
from bridle.errors import LaunchError, LaunchFailed
from bridle.ids import new_token
from bridle.process.arguments import MARKER
from bridle.process.census import see
from bridle.process.detached import DetachedProcess
from bridle.process.spec import LaunchSpec
from bridle.process.spool import Spool, current_boot
from bridle.process.transport import Exit, StopLimits, Stopped, Transport
from bridle.process.wake import Wakes, open_wakes
from bridle.testing import FakeCli

from .children import LIMIT, Heard, gone, in_time, program, python
from .spools import ECHO, READY, Detach, TakeUp, inotify_files, open_files

MakeFake = Callable[..., FakeCli]


# --- starting


async def test_it_is_a_transport_and_knows_nothing_before_it_starts(
    wakes: Wakes, tmp_path: Path
) -> None:
    spool = Spool(tmp_path / "spool")
    process: Transport = DetachedProcess(LaunchSpec(command=["true"]), spool, wakes, new_token(8))
    assert (process.version, process.exit, process.stderr) == (None, None, "")
    process.close_input()
    assert await process.stop(StopLimits()) == Stopped("gone", 0.0)
    assert isinstance(process, DetachedProcess)
    with pytest.raises(LaunchFailed, match="has not been started"):
        _ = process.pid
    process.release()


async def test_a_session_runs_over_it(fake_cli: MakeFake, wakes: Wakes, tmp_path: Path) -> None:
    fake = fake_cli([{"prompt": True}, {"say": "Hi."}, {"result": "Hi."}])
    spec = LaunchSpec(command=fake.command)
    process = DetachedProcess(spec, Spool(tmp_path / "spool"), wakes, new_token(8))
    async with bridle.connect(transport=process) as session:
        turn = await session.send("hello")
        assert (await turn.result(LIMIT)).text == "Hi."
    assert (await session.stop()).step == "asked"
    assert process.exit == Exit(code=0)
    process.release()


async def test_the_words_and_the_environment_of_a_launch_reach_the_cli(detach: Detach) -> None:
    code = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]))"
    process, heard = await detach(python(code), model="m", env={"GIVEN": "x"}, cwd="/tmp")
    words, env, cwd = json.loads(await heard.end())
    assert "--model=m" in words
    assert (env["GIVEN"], env[MARKER], cwd) == ("x", process.launch, "/tmp")


async def test_signals_of_our_terminal_do_not_reach_it(detach: Detach) -> None:
    """Ctrl-C goes to a group of processes, a hangup to a session; it is in none of ours."""
    process, heard = await detach(python("import os; print(os.getsid(0), os.getpgid(0))"))
    session, group = map(int, (await heard.end()).split())
    shim = process.spool.shim()
    assert shim
    assert session == shim.pid
    assert os.getsid(0) != session
    assert os.getpgid(0) != group


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("cwd", "none", "none: there is no such folder"),
        ("command", ["plain"], "there is no program 'plain'"),
        ("containment", ["no-such-sandbox"], "can't start no-such-sandbox"),
    ],
)
async def test_what_can_not_start_is_told_and_leaves_nothing_open(
    detach: Detach, tmp_path: Path, option: str, value: Any, says: str
) -> None:
    before = open_files()
    with pytest.raises(LaunchError, match=says):
        await detach(**{"command": ["/bin/true", "x"], option: value})
    assert open_files() == before


async def test_a_program_that_fails_to_run_says_so_in_its_last_words(
    detach: Detach, tmp_path: Path
) -> None:
    process, heard = await detach([program(tmp_path / "bad", "#!/no/such/interpreter\n"), "x"])
    await heard.end()
    assert process.exit == Exit(code=127)
    assert "bad: No such file" in process.stderr


async def test_a_launch_that_was_abandoned_is_told(wakes: Wakes, tmp_path: Path) -> None:
    spool, before = Spool(tmp_path / "spool"), psutil.Process().children()
    spool.make()
    spool.abandon()
    process = DetachedProcess(LaunchSpec(command=READY), spool, wakes, new_token(8))
    with pytest.raises(LaunchFailed, match="the launch was abandoned"):
        await process.spawn()
    assert psutil.Process().children() == before


async def test_a_shim_that_fails_tells_why(
    wakes: Wakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise RuntimeError('no such luck')")
    monkeypatch.setattr("bridle.process.spawn._SHIM", str(broken))
    spool = Spool(tmp_path / "spool")
    process = DetachedProcess(LaunchSpec(command=READY), spool, wakes, new_token(8))
    with pytest.raises(LaunchFailed, match="RuntimeError: no such luck"):
        await process.spawn()
    assert (await process.stop(StopLimits())).survivors == ()


async def test_one_that_is_cancelled_while_it_starts_leaves_nothing(
    wakes: Wakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text("import time; time.sleep(600)")
    monkeypatch.setattr("bridle.process.spawn._SHIM", str(slow))
    monkeypatch.setattr("bridle.process.detached.BEGIN_SECONDS", 0.2)
    spool, before = Spool(tmp_path / "spool"), open_files()
    others = set(psutil.Process().children())
    process = DetachedProcess(LaunchSpec(command=READY), spool, wakes, new_token(8))
    with pytest.raises(LaunchFailed, match=r"no shim in 0\.2 s"):
        await process.spawn()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await process.spawn()
    left = set(psutil.Process().children()) - others
    assert await gone([child.pid for child in left], LIMIT)
    assert open_files() == before


# --- talking to it


async def test_much_is_delivered_whole_and_in_order(detach: Detach) -> None:
    code = """
        import hashlib, sys
        data = sys.stdin.buffer.read()
        print(len(data), hashlib.sha256(data).hexdigest())
    """
    process, heard = await detach(python(code))
    lines = [b"%06d" % number * 1000 + b"\n" for number in range(900)]
    for line in lines:
        process.write(line)
    process.close_input()
    process.write(b"never seen")
    data = b"".join(lines)
    assert await heard.end() == f"{len(data)} {hashlib.sha256(data).hexdigest()}\n"
    process.write(b"after the end")
    process.close_input()


async def test_what_it_says_comes_whole_before_its_end(detach: Detach) -> None:
    code = "import os; os.write(1, b'x' * 59 + b'\\n' + b'y' * 3_000_000); os.write(2, b'last')"
    process, heard = await detach(python(f"{code}; os._exit(4)"))
    assert await heard.end() == "x" * 59 + "\n" + "y" * 3_000_000
    assert (process.exit, process.stderr, heard.complaints) == (Exit(code=4), "last", ["last"])
    assert (process.offset, process.stderr_offset) == (3_000_060, 4)


async def test_a_neighbour_that_never_stops_talking_starves_nobody(detach: Detach) -> None:
    loud, noise = await detach(python("import os\nwhile True: os.write(1, b'noise\\n' * 10_000)"))
    process, heard = await detach(ECHO)
    with in_time():
        for number in range(50):
            process.write(b"%d\n" % number)
            await heard.until(lambda end=b"%d\n" % number: heard.data.endswith(end))  # type: ignore[misc]
    await noise.line()  # it may have begun late
    loud.release()
    await _end_released(loud)


async def _end_released(process: DetachedProcess) -> None:
    """It was let go because it writes faster than a test wants to read."""
    for seen in process._tree().look():
        seen.signal(signal.SIGKILL)


async def test_nothing_is_told_while_the_reading_is_paused(detach: Detach) -> None:
    process, heard = await detach(ECHO)
    process.write(b"one\n")
    await heard.line()
    process.pause_reading()
    process.write(b"two\n")
    process.close_input()
    assert await process.exited(LIMIT)
    assert (bytes(heard.data), heard.endings) == (b"one\n", 0)
    process.resume_reading()
    assert await heard.end() == "one\ntwo\n"


async def test_where_nothing_wakes_it_works_all_the_same(mark: str, tmp_path: Path) -> None:
    wakes = await open_wakes(tmp_path, force="polling")
    spool, heard = Spool(tmp_path / "spool"), Heard()
    process = DetachedProcess(LaunchSpec(command=ECHO), spool, wakes, new_token(8))
    await process.start(heard)
    process.write(b"hello\n")
    assert await heard.line() == "hello"
    assert (await process.stop(StopLimits())).step == "eof"
    assert (heard.endings, process.exit) == (1, Exit(code=0))
    wakes.close()


async def test_without_pidfds_it_works_all_the_same(
    detach: Detach, take_up: TakeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("os.pidfd_open")
    process, heard = await detach(ECHO)
    process.write(b"hello\n")
    await heard.line()
    process.release()
    other, more = take_up(process.spool, process.launch), Heard()
    other.follow(more, 6)
    other.write(b"more\n")
    assert await more.line() == "more"
    os.kill(other.pid, signal.SIGKILL)
    assert await more.end() == "more\n"
    assert other.exit == Exit()


# --- pausing all of it


async def test_all_but_the_shim_is_stopped_where_it_is_and_goes_on(detach: Detach) -> None:
    code = "import subprocess; subprocess.Popen(['sleep', '600']); subprocess.run('cat')"
    process, heard = await detach(python(code))
    process.write(b"ready\n")
    await heard.line()
    await process.pause()
    states = {seen.pid: psutil.Process(seen.pid).status() for seen in process._tree().look()}
    assert states.pop(process.pid) != psutil.STATUS_STOPPED
    assert set(states.values()) == {psutil.STATUS_STOPPED}
    assert len(states) == 3
    process.write(b"later\n")
    process.unpause()
    await heard.until(lambda: heard.data == b"ready\nlater\n")


async def test_one_that_is_paused_can_be_stopped(detach: Detach) -> None:
    process, heard = await detach(READY)
    await heard.line()
    await process.pause()
    assert (await process.stop(StopLimits())).step == "eof"


# --- what it costs


async def test_each_that_is_followed_holds_two_files(detach: Detach) -> None:
    await detach(READY)
    before = open_files()
    started = [await detach(READY) for _ in range(5)]
    for _, heard in started:
        await heard.line()
    assert open_files() == before + 2 * len(started)
    for process, _ in started:
        await process.stop(StopLimits())
    assert open_files() == before


@pytest.mark.slow
async def test_nothing_stays_open_and_nobody_unburied_after_many_launches(
    detach: Detach, take_up: TakeUp
) -> None:
    async def launch() -> None:
        process, heard = await detach(READY)
        await heard.line()
        process.release()
        other = take_up(process.spool, process.launch)
        other.follow(Heard())
        assert (await other.stop(StopLimits())).step == "eof"
        other.release()

    others = set(psutil.Process().children())
    await launch()
    gc.collect()
    before = open_files()
    for _ in range(10):
        await launch()
    assert open_files() == before
    # Whom nobody watched when it ended is buried with the next launch.
    assert len(set(psutil.Process().children()) - others) <= 1


@pytest.mark.slow
async def test_hundreds_are_followed_with_one_instance(
    tmp_path: Path, take_up: TakeUp, wakes: Wakes
) -> None:
    spools = [Spool(tmp_path / str(number)) for number in range(300)]
    everyone: list[tuple[DetachedProcess, Heard]] = []
    own = see(os.getpid())
    assert own
    for spool in spools:
        spool.make()
        # As if this process were the shim: it lives, and will not be ended by this test.
        (spool.folder / "shim").write_text(f"{own.pid} {own.born} {current_boot()}")
        process = DetachedProcess(LaunchSpec(command=["true"]), spool, wakes, new_token(8))
        process.follow(heard := Heard())
        everyone.append((process, heard))
    assert inotify_files() == 1
    for number, spool in enumerate(spools):
        with (spool.folder / "stdout").open("ab") as file:
            file.write(b"%d\n" % number)
    for number, (process, heard) in enumerate(everyone):
        assert await heard.line() == str(number)
        process.release()
