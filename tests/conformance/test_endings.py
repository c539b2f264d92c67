"""Endings: EOF, signals, malformed input."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import msgspec
import psutil

from bridle.errors import KitError, SessionEnded
from bridle.process.transport import Exit
from bridle.protocol.requests import Initialize
from bridle.testing import Hold, ScriptedModel, Turn, tool_use
from tests.process.children import MARK, gone, marked

from .lab import BASH, Fifo, Lab, is_alive
from .talk import LIMIT_SECONDS, Desk, Judge, hear, reached


async def test_eof_idle(lab: Lab) -> None:
    """EOF on stdin while idle: exit 0"""
    async with lab.session() as talk:
        talk.process.close_input()
        assert (await talk.end()).exit_code == 0


async def test_eof_busy(lab: Lab) -> None:
    """EOF on stdin in mid-turn: the turn is finished first, then exit 0"""
    hold = Hold()
    async with lab.session([Turn("Half", hold, " done.")]) as talk:
        turn = await talk.session.send("go")
        await reached(hold)
        talk.process.close_input()
        hold.release()
        assert (await hear(turn)).result.subtype == "success"
        assert (await talk.end()).exit_code == 0


async def test_eof_pending(lab: Lab) -> None:
    """EOF on stdin with a permission pending: the request fails, the model goes on"""
    desk = Desk()
    async with lab.session([Turn(BASH), "I see."], approver=desk) as talk:
        turn = await talk.session.send("go")
        question = await desk.question()
        talk.process.close_input()
        text, is_error = (await hear(turn)).last_output()
        assert (lab.exists("x.txt"), is_error) == (False, True)
        assert "permission" in text
        assert (await talk.end()).exit_code == 0
        assert await question.withdrawn()


async def _signalled(lab: Lab, number: signal.Signals) -> SessionEnded:
    """Send a signal to an idle CLI: how the session then says that it ended."""
    async with lab.session() as talk:
        os.kill(talk.process.pid, number)
        return await talk.end()


async def _signalled_pending(lab: Lab, number: signal.Signals) -> tuple[SessionEnded, str]:
    """The same while a permission waits: the tool does not run. Also tells what the turn got."""
    desk = Desk()
    async with lab.session([Turn(BASH), "Never."], approver=desk) as talk:
        turn = await talk.session.send("go")
        question = await desk.question()
        os.kill(talk.process.pid, number)
        end = await talk.end()
        assert await question.withdrawn()
        assert not lab.exists("x.txt")
        try:
            result = (await hear(turn)).result
        except SessionEnded:
            return end, "no result"
        assert result.is_interrupted
        return end, "a result that says that it was interrupted"


async def test_sigint(lab: Lab) -> None:
    """SIGINT while idle: exit 0"""
    assert (await _signalled(lab, signal.SIGINT)).exit_code == 0


async def test_sigint_pending(lab: Lab) -> None:
    """SIGINT with a permission pending: exit 0, the tool does not run"""
    end, _ = await _signalled_pending(lab, signal.SIGINT)
    assert end.exit_code == 0


async def test_sigterm(lab: Lab) -> None:
    """SIGTERM while idle: exit 143"""
    assert (await _signalled(lab, signal.SIGTERM)).exit_code == 143


async def test_sigterm_pending(lab: Lab) -> None:
    """SIGTERM with a permission pending: exit 143, the tool does not run"""
    end, turn = await _signalled_pending(lab, signal.SIGTERM)
    assert (end.exit_code, turn) == (143, "no result")


async def test_sigkill_pending(lab: Lab) -> None:
    """SIGKILL with a permission pending: the tool does not run"""
    end, turn = await _signalled_pending(lab, signal.SIGKILL)
    assert (end.exit_code, end.signal, turn) == (None, signal.SIGKILL, "no result")


async def test_controller_over_pipes_is_killed(lab: Lab) -> None:
    """kill -9 of a controller over pipes, in bypass mode, with a hook pending: nothing runs"""
    for number in range(3):
        async with ScriptedModel([Turn(BASH), "Done."]) as model:
            env = {**model.environment(lab.home), "IS_SANDBOX": "1", MARK: f"{lab.cwd}-{number}"}
            launch = {
                "command": list(lab.cli.command),
                "cwd": str(lab.cwd),
                "inherit_env": False,
                "env": env,
                "permission_mode": "bypassPermissions",
            }
            words = [
                "-m",
                "tests.conformance.pipe_controller",
                msgspec.json.encode(launch).decode(),
            ]
            controller = await asyncio.create_subprocess_exec(
                sys.executable, *words, stdout=asyncio.subprocess.PIPE
            )
            assert controller.stdout
            async with asyncio.timeout(LIMIT_SECONDS):
                assert await controller.stdout.readline() == b"asked\n"
                assert marked(env[MARK])
                controller.kill()
                await controller.wait()
            assert await gone(marked(env[MARK]), LIMIT_SECONDS)
        assert not lab.exists("t.txt")


async def test_stop(lab: Lab) -> None:
    """Session.stop while idle: the mildest step is enough"""
    async with lab.session(["Hi."]) as talk:
        await talk.say("hi")
        stopped = await talk.session.stop()
        assert stopped.step == ("eof" if lab.is_old else "asked")
        assert stopped.exit == Exit(code=0)
        lab.saw("by EOF" if lab.is_old else "by `end_session`")


async def test_stop_pending(lab: Lab) -> None:
    """Session.stop with a permission pending: the turn is interrupted, the tool does not run"""
    desk = Desk()
    async with lab.session([Turn(BASH), "Never."], approver=desk) as talk:
        turn = await talk.session.send("go")
        question = await desk.question()
        stopped = await talk.session.stop()
        assert await question.withdrawn()
        assert (await hear(turn)).result.is_interrupted
        assert not lab.exists("x.txt")
        assert stopped.step == ("eof" if lab.is_old else "asked")


async def test_stop_tool(lab: Lab) -> None:
    """Session.stop while a command runs: the turn is interrupted, the command is ended"""
    ready = Fifo(lab.cwd / "ready")
    bash = tool_use("Bash", command="echo $$ > ready; exec sleep 300", description="wait")
    async with lab.session([Turn(bash), "Never."], approver=Judge()) as talk:
        turn = await talk.session.send("go")
        command = psutil.Process(int(await ready.read()))
        await talk.session.stop()
        assert (await hear(turn)).result.is_interrupted
        assert not is_alive(command)


async def test_stop_orphan(lab: Lab) -> None:
    """Session.stop with a command left over that left its shell: it is ended too"""
    ready = Fifo(lab.cwd / "ready")
    command = "setsid nohup sleep 300 > /dev/null 2>&1 & echo $! > ready"
    bash = tool_use("Bash", command=command, description="leave")
    async with lab.session([Turn(bash), "Done."], approver=Judge()) as talk:
        turn = await talk.session.send("go")
        orphan = psutil.Process(int(await ready.read()))
        assert (await hear(turn)).result.result == "Done."
        assert is_alive(orphan)
        stopped = await talk.session.stop()
        assert not is_alive(orphan)
        assert stopped.step == "SIGTERM"
        assert stopped.exit == Exit(code=0)


async def _written(lab: Lab, line: bytes) -> None:
    async with lab.run(["Hi."], initialize=Initialize()) as run:
        run.cli.write(line)
        run.cli.prompt("hi")
        try:
            await run.cli.result(limit=20)
        except KitError:
            lab.saw(f"exits with {await run.cli.exit_code()}")
        else:
            lab.saw("survived")


async def test_malformed_input(lab: Lab) -> None:
    """A malformed line on stdin"""
    await _written(lab, b'{"type": "user", broken\n')
    assert lab.observations == ["exits with 1"]


async def test_blank_line(lab: Lab) -> None:
    """A blank line on stdin"""
    await _written(lab, b"\n")
    assert lab.observations == (["exits with 1"] if lab.is_old else ["survived"])


async def test_unknown_type(lab: Lab) -> None:
    """A line of an unknown type on stdin"""
    await _written(lab, b'{"type": "never_heard_of"}\n')
    assert lab.observations == (["exits with 1"] if lab.is_old else ["survived"])
