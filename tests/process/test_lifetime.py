"""A CLI outlives its controller, the next one goes on from there, and its end is always told."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from bridle.ids import new_token
from bridle.process.spool import Spool
from bridle.process.transport import Exit, StopLimits
from bridle.process.wake import Wakes

from .children import LIMIT, Heard, gone, is_alive, python
from .spools import DEAF, ECHO, Detach, TakeUp, until_spool

# --- outliving the controller

CONTROLLER = """
import asyncio, json, os, sys
from pathlib import Path
from bridle.process.detached import DetachedProcess
from bridle.process.spec import LaunchSpec
from bridle.process.census import see
from bridle.process.spool import Spool, current_boot
from bridle.process.wake import open_wakes

class Echo:
    def received(self, data): os.write(1, data)
    def complained(self, text): pass
    def ended(self): pass

async def main():
    folder, launch, command = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    wakes = await open_wakes(folder)
    process = DetachedProcess(LaunchSpec(command=command), Spool(folder / launch), wakes, launch)
    await process.start(Echo())
    process.write(b"from the first\\n")
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def killed_controller(folder: Path, command: list[str]) -> tuple[Spool, str]:
    """A controller that starts this, writes a line, sees its echo and is killed."""
    launch = new_token(8)
    words = [sys.executable, "-c", CONTROLLER, str(folder), launch, json.dumps(command)]
    controller = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    assert controller.stdout
    async with asyncio.timeout(LIMIT):
        assert await controller.stdout.readline() == b"from the first\n"
    controller.kill()
    await controller.wait()
    return Spool(folder / launch), launch


async def test_another_controller_goes_on_where_a_killed_one_left_off(
    tmp_path: Path, take_up: TakeUp
) -> None:
    spool, launch = await killed_controller(tmp_path, ECHO)
    assert spool.is_held()
    # What a torn write has left of a line is completed.
    spool.append(b"half of ")
    process, heard = take_up(spool, launch), Heard()
    process.follow(heard, spool.size("stdout"))
    process.write(b"a line\n")
    assert await heard.line() == "half of a line"
    assert process.offset == spool.size("stdout")
    stopped = await process.stop(StopLimits())
    assert (stopped.step, stopped.exit, heard.endings) == ("eof", Exit(code=0), 1)
    assert not spool.is_held()


async def test_all_that_was_said_while_nobody_was_there_is_told(
    tmp_path: Path, take_up: TakeUp, wakes: Wakes
) -> None:
    code = """
        import sys
        print(sys.stdin.readline(), end="", flush=True)
        sys.stdin.readline()
        print("unheard", flush=True)
        print("words", file=sys.stderr)
        sys.exit(3)
    """
    spool, launch = await killed_controller(tmp_path, python(code))
    spool.append(b"go on\n")
    assert spool.ring()
    await until_spool(wakes, spool, lambda: spool.exit() is not None)
    process, heard = take_up(spool, launch), Heard()
    process.follow(heard, 15)
    assert heard.data == b"", "before whoever follows is ready"
    assert await heard.end() == "unheard\n"
    assert (process.exit, process.stderr, heard.endings) == (Exit(code=3), "words\n", 1)
    assert (await process.stop(StopLimits())).step == "gone"


@pytest.mark.slow
async def test_offsets_tell_what_was_told_and_nothing_is_told_twice(
    detach: Detach, take_up: TakeUp
) -> None:
    code = """
        import sys
        for line in sys.stdin:
            print(line, end="", flush=True)
            print("err", line, end="", file=sys.stderr, flush=True)
    """
    process, heard = await detach(python(code))
    process.write(b"one\n")
    await heard.until(lambda: heard.data == b"one\n" and bool(heard.complaints))
    offsets = process.offset, process.stderr_offset
    assert offsets == (4, 8)
    process.release()
    process.spool.append(b"two\n")
    process.spool.ring()
    other, more = take_up(process.spool, process.launch), Heard()
    other.follow(more, *offsets)
    await more.line()
    other.close_input()
    assert await more.end() == "two\n"
    assert more.complaints == ["err two\n"]
    assert (bytes(heard.data), heard.complaints, heard.endings) == (b"one\n", ["err one\n"], 0)


async def test_a_launch_that_never_came_to_a_shim_has_ended(
    tmp_path: Path, take_up: TakeUp
) -> None:
    spool = Spool(tmp_path / "spool")
    spool.make()
    assert spool.abandon()
    process, heard = take_up(spool, new_token(8)), Heard()
    process.follow(heard)
    assert await heard.end() == ""
    assert process.exit == Exit()


# --- how it ends


async def test_when_the_shim_is_killed_the_cli_ends_and_that_is_told(detach: Detach) -> None:
    process, heard = await detach(python("import os, time; os.write(1, b'a\\n'); time.sleep(600)"))
    await heard.line()
    cli = process.spool.cli()
    assert cli
    os.kill(process.pid, signal.SIGKILL)
    await heard.end()
    assert process.exit == Exit()
    assert not is_alive(cli.pid)
    assert (await process.stop(StopLimits())).step == "gone"


async def test_a_cli_that_hears_nothing_is_killed_when_its_shim_was(
    detach: Detach, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridle.process.lifetime.ORPHAN_SECONDS", 0.1)
    process, heard = await detach(DEAF)
    await heard.line()
    cli = process.spool.cli()
    assert cli
    os.kill(process.pid, signal.SIGKILL)
    await heard.end()
    assert process.exit == Exit()
    assert not is_alive(cli.pid)


async def test_a_shim_that_is_dead_when_it_is_found_is_told(
    tmp_path: Path, take_up: TakeUp
) -> None:
    spool, launch = await killed_controller(tmp_path, ECHO)
    shim, cli = spool.shim(), spool.cli()
    assert shim
    assert cli
    os.kill(shim.pid, signal.SIGKILL)
    assert await gone([shim.pid, cli.pid], LIMIT)
    process, heard = take_up(spool, launch), Heard()
    process.follow(heard)
    assert await heard.end() == "from the first\n"
    assert process.exit == Exit()


async def test_the_end_is_told_though_an_orphan_never_stops_writing(detach: Detach) -> None:
    code = """
        import os
        if os.fork() == 0:
            for _ in range(100_000): os.write(1, b"noise\\n")
        os.read(0, 1)
    """
    process, heard = await detach(python(code))
    await heard.line()
    process.close_input()
    await heard.end()
    assert process.exit == Exit(code=0)


@pytest.mark.parametrize("is_shim_killed", [False, True])
async def test_an_end_that_can_not_be_looked_at_is_told_when_it_can(
    detach: Detach, monkeypatch: pytest.MonkeyPatch, is_shim_killed: bool
) -> None:
    """As it is for who has no descriptor left: a real one would take those of the test as well."""
    monkeypatch.setattr("bridle.process.lifetime.RETRY_SECONDS", 0.05)
    process, heard = await detach(ECHO)
    process.write(b"hi\n")
    await heard.line()
    tries, exit_of = 0, Spool.exit

    def blind(spool: Spool) -> Exit | None:
        nonlocal tries
        tries += 1
        if tries <= 3:
            raise OSError(24, "Too many open files")
        return exit_of(spool)

    monkeypatch.setattr(Spool, "exit", blind)
    if is_shim_killed:
        os.kill(process.pid, signal.SIGKILL)
    else:
        process.close_input()
    await heard.end()
    assert process.exit == (Exit() if is_shim_killed else Exit(code=0))
    assert tries > 3
