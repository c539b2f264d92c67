"""A CLI over pipes: what it says comes whole and before its end, whatever else goes wrong."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridle.errors import InvalidLaunch, LaunchError, LaunchFailed
from bridle.process.arguments import ASK_US, MARKER, STREAM_JSON
from bridle.process.child import ChildProcess
from bridle.process.spec import LaunchSpec
from bridle.process.transport import Exit, StopLimits, Stopped, Transport
from bridle.testing import FakeCli

from .children import (
    AT_ONCE,
    Heard,
    Start,
    gone,
    in_time,
    is_alive,
    program,
    python,
    until_gone,
)

MakeFake = Callable[..., FakeCli]

# Waits for a signal, so that a test decides when it goes on.
WAITS = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
{first}
os.write(1, b"ready\\n")
signal.sigwait([signal.SIGUSR1])
{then}
"""


def waits(first: str = "", then: str = "") -> list[str]:
    return python(WAITS.format(first=first, then=then))


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


# --- starting


async def test_it_is_a_transport_and_knows_nothing_before_it_starts() -> None:
    child: Transport = ChildProcess(LaunchSpec(command=["true"]))
    assert (child.version, child.exit, child.stderr) == (None, None, "")
    child.close_input()
    assert await child.stop(StopLimits()) == Stopped("gone", 0.0)
    assert isinstance(child, ChildProcess)
    with pytest.raises(LaunchFailed, match="has not been started"):
        _ = child.pid


async def test_the_words_of_a_launch_reach_the_cli(start: Start, fake_cli: MakeFake) -> None:
    fake = fake_cli([{"say": "Hi."}])
    child, heard = await start(fake.command, model="--continue", extra_args=["--x", "y z"])
    await heard.line()
    given = [*STREAM_JSON, *ASK_US, "--model=--continue", "--replay-user-messages", "--x", "y z"]
    assert fake.report()[0]["argv"][-len(given) :] == given
    assert list(child.argv) == [*fake.command, *given]
    assert fake.report()[0]["pid"] == child.pid


@pytest.mark.parametrize(
    ("version", "asked", "given"),
    [
        ("2.0.75", False, True),
        ("2.0.75", True, True),
        ("2.1.325", False, False),
        ("2.1.325", True, True),
    ],
)
async def test_prompts_are_repeated_where_that_is_asked_or_nothing_else_names_them(
    start: Start, tmp_path: Path, version: str, asked: bool, given: bool
) -> None:
    cli = program(tmp_path / "versions" / version, "#!/bin/sh\necho ready\n")
    child, heard = await start([cli], replay_user_messages=asked)
    await heard.end()
    assert child.version == version
    assert ("--replay-user-messages" in child.argv) is given


async def test_the_environment_of_a_launch_reaches_the_cli(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("TAKEN", "away")
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    child, heard = await start(python(code), env={"GIVEN": "x"}, unset=["TAKEN"])
    env = json.loads(await heard.end())
    assert env[MARKER] == child.launch
    assert (env["GIVEN"], env["DISABLE_AUTOUPDATER"]) == ("x", "1")
    assert {"CLAUDECODE", "TAKEN"} & set(env) == set()


async def test_every_launch_has_a_marker_of_its_own() -> None:
    launches = {ChildProcess(LaunchSpec(command=["true"])).launch for _ in range(100)}
    assert len(launches) == 100


async def test_a_containment_is_put_before_the_command(start: Start) -> None:
    code = "import os; print(os.environ['CONTAINED'])"
    child, heard = await start(python(code), containment=["env", "CONTAINED=yes"])
    assert await heard.end() == "yes\n"
    assert child.argv[:3] == ("env", "CONTAINED=yes", python("")[0])


@pytest.mark.parametrize(
    "options", [{"model": "\0"}, {"env": {"A=": "1"}}, {"disallowed_tools": "Bash"}]
)
def test_a_mistake_is_told_where_it_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidLaunch):
        ChildProcess(LaunchSpec(command=["true"], **options))


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("cwd", "none", "none: there is no such folder"),
        ("cwd", "plain", "plain: there is no such folder"),
        ("command", ["plain"], "there is no program 'plain'"),
        ("containment", ["no-such-sandbox"], "can't start no-such-sandbox"),
    ],
)
async def test_what_can_not_start_is_told_and_leaves_nothing_open(
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    option: str,
    value: Any,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain").write_text("not executable")
    before = open_files()
    with pytest.raises(LaunchError, match=says):
        await start(**{"command": ["/bin/true", "x"], option: value})
    assert open_files() == before


async def test_a_program_that_the_system_can_not_run_is_told(start: Start, tmp_path: Path) -> None:
    await (await start(["/bin/true", "x"]))[1].end()
    before = open_files()
    with pytest.raises(LaunchFailed, match="bad: No such file"):
        await start([program(tmp_path / "bad", "#!/no/such/interpreter\n"), "x"])
    assert open_files() == before


async def test_no_signal_handler_is_installed_and_no_thread_started(start: Start) -> None:
    numbers = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    handlers = {number: signal.getsignal(number) for number in numbers}
    threads = threading.active_count()
    child, heard = await start(waits())
    await heard.line()
    assert threading.active_count() == threads
    assert {number: signal.getsignal(number) for number in numbers} == handlers
    await child.stop(AT_ONCE)
    assert threading.active_count() == threads
    assert {number: signal.getsignal(number) for number in numbers} == handlers


async def test_a_child_leads_its_own_session(start: Start) -> None:
    child, heard = await start(waits())
    await heard.line()
    assert os.getsid(child.pid) == child.pid


@pytest.mark.slow
async def test_nothing_stays_open_after_many_launches(start: Start) -> None:
    async def launch() -> None:
        child, heard = await start(python("import os; os.write(1, b'.\\n'); os.read(0, 1)"))
        await heard.line()
        assert (await child.stop(StopLimits())).step == "eof"

    await launch()
    gc.collect()
    before = open_files()
    for _ in range(20):
        await launch()
    assert open_files() == before


# --- how it ends


@pytest.mark.parametrize(
    ("steps", "status"),
    [
        ([{"exit": 0}], Exit(code=0)),
        ([{"exit": 3}], Exit(code=3)),
        ([{"die": "SIGKILL"}], Exit(signal=9)),
        ([{"die": "SIGSEGV"}], Exit(signal=11)),
    ],
)
async def test_how_it_ended_is_known_when_the_end_is_told(
    start: Start, fake_cli: MakeFake, steps: list[dict[str, Any]], status: Exit
) -> None:
    fake = fake_cli([{"stderr": "last words\n"}, {"say": "Hi."}, *steps])
    child, heard = await start(fake.command)
    assert '"Hi."' in await heard.end()
    assert (child.exit, child.stderr) == (status, "last words\n")
    assert await child.exited(0)
    assert heard.endings == 1


async def test_all_output_comes_before_the_end_though_a_grandchild_holds_the_pipe(
    start: Start,
) -> None:
    code = """
        import os
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "600"])
        os.write(1, b"x" * 59 + b"\\n")
        os.write(1, b"y" * 60_000)
        os._exit(4)
    """
    child, heard = await start(python(code))
    with in_time():
        assert await heard.end() == "x" * 59 + "\n" + "y" * 60_000
    assert child.exit == Exit(code=4)


async def test_the_end_comes_though_a_grandchild_never_stops_writing(start: Start) -> None:
    code = """
        import os
        if os.fork() == 0:
            while True: os.write(1, b"noise\\n" * 1000)
        os.read(0, 1)
    """
    child, heard = await start(python(code))
    await heard.line()
    child.close_input()
    assert (await heard.end()).startswith("noise\n")
    assert child.exit == Exit(code=0)


async def test_the_last_words_are_known_when_everything_comes_at_once(start: Start) -> None:
    then = "os.write(2, b'word\\n' * 10_000 + b'last words'); os._exit(1)"
    child, heard = await start(waits(then=then))
    await heard.line()
    at_the_end: list[str] = []
    heard.ended = lambda: at_the_end.append(child.stderr)  # type: ignore[method-assign]
    os.kill(child.pid, signal.SIGUSR1)
    # The loop sees nothing of it until the process has gone.
    until_gone(child.pid)
    await heard.until(lambda: bool(heard.complaints))
    await child.stop(AT_ONCE)
    assert at_the_end == [child.stderr]
    assert child.stderr == "word\n" * 10_000 + "last words"


async def test_an_output_that_ends_while_the_process_lives_is_told_soon(
    start: Start, fake_cli: MakeFake
) -> None:
    child, heard = await start(fake_cli([{"say": "Hi."}, {"close_stdout": True}]).command)
    await heard.line()
    with in_time():
        await heard.end()
    assert child.exit is None
    assert is_alive(child.pid)
    assert not await child.exited(0)
    assert (await child.stop(StopLimits())).exit == Exit(code=0)
    assert heard.endings == 1


async def test_a_cli_dies_with_its_guardian(start: Start, fake_cli: MakeFake) -> None:
    child, heard = await start(fake_cli([{"say": "Hi."}]).command)
    await heard.line()
    assert child._guardian
    os.kill(child._guardian.pid, signal.SIGKILL)
    await heard.end()
    assert await gone([child.pid], 5)
    assert child.exit == Exit()
    stopped = await child.stop(StopLimits())
    assert (stopped.step, stopped.exit) == ("gone", Exit())


async def test_children_that_nobody_reaps_may_be_reaped_by_the_kernel(
    start: Start, fake_cli: MakeFake
) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        child, heard = await start(fake_cli([{"say": "Hi."}, {"exit": 3}]).command)
        assert '"Hi."' in await heard.end()
        assert child.exit == Exit(code=3)
    finally:
        signal.signal(signal.SIGCHLD, before)


# --- talking to it


async def test_much_is_delivered_whole_and_in_order_to_a_child_that_reads_late(
    start: Start,
) -> None:
    then = """
import hashlib
data = sys.stdin.buffer.read()
print(len(data), hashlib.sha256(data).hexdigest())
"""
    child, heard = await start(waits(then=then))
    await heard.line()
    lines = [b"%06d" % number * 1000 + b"\n" for number in range(900)]
    for line in lines:
        child.write(line)
    child.close_input()
    child.write(b"never seen")
    os.kill(child.pid, signal.SIGUSR1)
    data = b"".join(lines)
    assert len(data) > 5_000_000
    told = (await heard.end()).split("\n")[1]
    assert told == f"{len(data)} {hashlib.sha256(data).hexdigest()}"


async def test_a_child_that_closes_its_input_goes_on_talking(start: Start) -> None:
    child, heard = await start(waits("os.close(0)", "os.write(1, b'still here\\n')"))
    await heard.line()
    for _ in range(3):
        child.write(b"x" * 1_000_000)
    os.kill(child.pid, signal.SIGUSR1)
    assert await heard.end() == "ready\nstill here\n"
    assert child.exit == Exit(code=0)
    child.write(b"after the end")
    child.close_input()


class Failing(Heard):
    """A receiver with a mistake in it."""

    def received(self, data: bytes) -> None:
        super().received(data)
        raise ZeroDivisionError


async def test_a_receiver_that_fails_does_not_stop_the_reading(mark: str) -> None:
    failures: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))
    # A grandchild holds the pipe, so that only the exit can end it.
    first = "if os.fork() == 0: os.execvp('sleep', ['sleep', '600'])"
    child, heard = ChildProcess(LaunchSpec(command=waits(first, "os.write(1, b'more')"))), Failing()
    await child.start(heard)
    await heard.line()
    os.kill(child.pid, signal.SIGUSR1)
    assert await heard.end() == "ready\nmore"
    await child.stop(AT_ONCE)
    assert {type(failure) for failure in failures} == {ZeroDivisionError}
